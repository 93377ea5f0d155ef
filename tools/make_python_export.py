#!/usr/bin/env python3
"""Tiny directories as Transformers' own exporter writes them (stack traces apart), for our runner.

Writes tests/cases/python_export/<name>/ (export.json, config.json, model.onnx, model.onnx.data) and beside each
<name>.json with inputs and the outputs of the Transformers model, as tests/golden/README.md describes them.
t5_generation/ has prefill and decode of the same T5, and encoder/ inside, since export_for_generation leaves that out;
t5_generation.json has what generate() makes. llama_static/ has prefill and decode with a static cache.
"""

import json
import logging
import pathlib
import tempfile

import torch
import transformers
from transformers.exporters import OnnxConfig, OnnxExporter

import reference
import reference_cases

FOLDER = pathlib.Path(__file__).parents[1] / "tests" / "cases" / "python_export"


def cases():
    """One layer each, so that the files stay small. The first run's inputs are what the exporter traces."""
    decoder = reference_cases.decoder("llama", num_hidden_layers=1)
    types = {"token_type_ids": [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0]]}
    left = reference_cases.padded(7, 4, "left")
    right = {**reference_cases.padded(7, 5, "right"), **types}
    longer = reference_cases.plain(12, 2)
    return {
        "llama": reference_cases.Forward(decoder, [reference_cases.Run(left), reference_cases.Run(longer)]),
        "bert": reference_cases.Forward(
            reference_cases.bert("Model", num_hidden_layers=1),
            [reference_cases.Run(right), reference_cases.Run({**longer, "token_type_ids": [[0] * 6 + [1] * 6]})],
        ),
        "t5": reference_cases.Forward(
            reference_cases.encoder_decoder("t5", num_layers=1),
            [reference_cases.Run(reference_cases.beside(left, 3)), reference_cases.Run(reference_cases.beside(longer, 5))],
        ),
    }


def save(exported, folder):
    for component in exported.components.values():
        for node in component.program.graph.all_nodes():
            node.metadata_props.pop("pkg.torch.onnx.stack_trace", None)  # would hold this machine's paths
    exported.save_pretrained(folder)


def generation():
    """A decode step that has seen two tokens, for its past to stay open."""
    case = reference_cases.Forward(reference_cases.encoder_decoder("t5", num_layers=1))
    inputs = reference.as_tensors(reference_cases.padded(7, 4, "right"))
    config = transformers.GenerationConfig(max_new_tokens=12, eos_token_id=None, decoder_start_token_id=reference_cases.PAD)
    model = reference.build(case)
    rows = model.generate(**inputs, generation_config=config)[:, 1:].tolist()
    new_ids = [row[: row.index(1) + 1] if 1 in row else row for row in rows]  # what follows EOS is padding
    exported = OnnxExporter().export_for_generation(
        model, dict(inputs), OnnxConfig(dynamic=True), generation_config=config, multi_token_decode=True
    )
    save(exported, FOLDER / "t5_generation")
    save(OnnxExporter().export(model.get_encoder(), dict(inputs), OnnxConfig(dynamic=True)), FOLDER / "t5_generation/encoder")
    prompts = [row[: sum(mask)] for row, mask in zip(inputs["input_ids"].tolist(), inputs["attention_mask"].tolist())]
    document = {"case": "t5_generation", "config": case.config, **reference.versions()}
    reference.write(FOLDER / "t5_generation.json", {**document, "runs": [{"prompts": prompts, "new_ids": new_ids}]})


def static_generation():
    """llama_static/: prefill and decode over a cache of slots, captured from a left-padded batch."""
    case = reference_cases.Forward(reference_cases.decoder("llama", num_hidden_layers=1))
    inputs = reference.as_tensors(reference_cases.padded(7, 4, "left"))
    model = reference.build(case)
    new_ids = model.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[:, 7:].tolist()
    config = transformers.GenerationConfig(cache_implementation="static", max_cache_len=24, eos_token_id=None)
    exported = OnnxExporter().export_for_generation(
        model, dict(inputs), OnnxConfig(dynamic=True), generation_config=config, multi_token_decode=True
    )
    save(exported, FOLDER / "llama_static")
    prompts = [row[7 - sum(mask) :] for row, mask in zip(inputs["input_ids"].tolist(), inputs["attention_mask"].tolist())]
    document = {"case": "llama_static", "config": case.config, **reference.versions()}
    reference.write(FOLDER / "llama_static.json", {**document, "runs": [{"prompts": prompts, "new_ids": new_ids}]})


def descriptions():
    """described/<name>.json: export.json alone, with the config of the model."""
    image = reference.as_tensors(reference_cases.images(2, 32, 32))
    text = reference.as_tensors(reference_cases.plain(7))
    generation = transformers.GenerationConfig(max_new_tokens=4, eos_token_id=None)
    vit = reference_cases.vit_cases()["vit_default"]
    mamba = reference_cases.Forward(reference_cases.MAMBA)
    exports = {
        "vit": (vit, lambda model: OnnxExporter().export(model, image, OnnxConfig(dynamic=True))),
        "mamba": (
            mamba,
            lambda model: OnnxExporter().export_for_generation(
                model, text, OnnxConfig(dynamic=True), generation_config=generation
            ),
        ),
    }
    (FOLDER / "described").mkdir(exist_ok=True)
    for name, (case, export) in exports.items():
        with tempfile.TemporaryDirectory() as folder:
            export(reference.build(case)).save_pretrained(folder)
            manifest = json.loads((pathlib.Path(folder) / "export.json").read_text())
        document = {"config": case.config, **reference.versions(), "manifest": manifest}
        (FOLDER / f"described/{name}.json").write_text(json.dumps(document, indent=1) + "\n")


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    with torch.no_grad():
        for name, case in cases().items():
            inputs = reference.as_tensors(case.runs[0].inputs)
            exported = OnnxExporter().export(reference.build(case), inputs, OnnxConfig(dynamic=True))
            save(exported, FOLDER / name)
            document = {"case": name, "config": case.config, **reference.versions(), "task": "forward"}
            reference.write(FOLDER / f"{name}.json", {**document, "runs": list(reference.forward_runs(case))})
        generation()
        static_generation()
        descriptions()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The speed of captured models' ONNX beside that of the same models' definitions: `time_imported.py [RUNS]`.

Middle-sized models with hash weights; both files of a model run in turn, in one process, on one thread; medians.
Prints milliseconds of the processor's time of both, their ratio, and their numbers of nodes.
Needs Transformers 5.23.0, torch 2.13.0, onnxruntime; TRANSHIP_CLI is the command line.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import onnx
import onnxruntime
import torch
import transformers
from transformers.exporters import DynamoConfig, DynamoExporter

import reference
import reference_cases

DECODER = {"vocab_size": 4096, "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4, "num_attention_heads": 8,
           "num_key_value_heads": 4, "max_position_embeddings": 1024}
HEADS = {"head_dim": 64}
EXPERTS = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 256}
BERT = {"vocab_size": 4096, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 8,
        "max_position_embeddings": 512}
T5 = {"vocab_size": 4096, "d_model": 512, "d_kv": 64, "d_ff": 1408, "num_heads": 8, "num_layers": 4, "num_decoder_layers": 4,
      "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}
VIT = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 8, "image_size": 224,
       "patch_size": 16}


def models():
    """Name, configuration, other arguments of the call."""
    return [
        ("Llama", reference_cases.decoder("llama", **DECODER), {}),
        ("Qwen3", reference_cases.decoder("qwen3", **DECODER, **HEADS), {}),
        ("BERT", {**reference_cases.bert("Model"), **BERT}, {}),
        ("T5", reference_cases.encoder_decoder("t5", **T5), {}),
        ("ViT", {**reference_cases.VIT, **VIT}, {"interpolate_pos_encoding": True}),
        ("Qwen3-MoE", reference_cases.decoder("qwen3_moe", **DECODER, **HEADS, **EXPERTS), {}),
    ]


def inputs_of(config, batch, length):
    generator = torch.Generator().manual_seed(batch * length)
    if config["model_type"] == "vit":
        return {"pixel_values": torch.randn(batch, 3, 224, 16 * length, generator=generator)}
    ids = torch.randint(2, 4096, (batch, length), generator=generator)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return {**inputs, "decoder_input_ids": ids[:, : length // 2]} if config["model_type"] == "t5" else inputs


def past_of(session, length):
    """A cache of that many tokens for what else a decode takes."""
    caches = [value for value in session.get_inputs() if "past_key_values" in value.name]
    return {value.name: torch.zeros(1, value.shape[1], length, value.shape[3]) for value in caches}


def tranship(*arguments):
    subprocess.run([os.environ["TRANSHIP_CLI"], *map(str, arguments), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def export_both(config, call, folder):
    """Paths of the definition's and of the capture's ONNX of a forward."""
    (folder / "config.json").write_text(json.dumps(config))
    inputs = inputs_of(config, 2, 12)
    tranship("export", folder / "config.json", "--synthetic", "--to", "onnx", "--task", "forward",
             "--graph-inputs=" + ",".join(inputs), "-o", folder / "definition")
    model = reference.build(reference_cases.Forward(config))
    DynamoExporter().export(model, {**inputs, **call}, DynamoConfig(dynamic=True)).save_pretrained(folder / "captured")
    tranship("export", folder / "captured" / "model.pt2", "--to", "onnx", "-o", folder / "imported")
    return [folder / kind / "model.onnx" for kind in ("definition", "imported")]


def export_both_decodes(config, folder):
    """Paths of the definition's and of the capture's ONNX of a step that has seen some tokens."""
    (folder / "config.json").write_text(json.dumps(config))
    prompt = inputs_of(config, 2, 12)
    prompt["attention_mask"][1, :3] = 0
    tranship("export", folder / "config.json", "--synthetic", "--to", "onnx", "--task", "generation",
             "--graph-inputs=attention_mask,position_ids", "-o", folder / "definition")
    generation = transformers.GenerationConfig(max_new_tokens=4, eos_token_id=None, pad_token_id=0)
    exported = DynamoExporter().export_for_generation(
        reference.build(reference_cases.Forward(config)), prompt, DynamoConfig(dynamic=True), generation_config=generation
    )
    exported.save_pretrained(folder / "captured")
    tranship("export", folder / "captured" / "decode.pt2", "--to", "onnx", "-o", folder / "imported")
    return [folder / "definition" / "decode.onnx", folder / "imported" / "model.onnx"]


def nodes(graph):
    inner = [a for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return len(graph.node) + sum(nodes(attribute.g) for attribute in inner)


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def seconds_of(session, feed):
    start = time.thread_time()
    session.run(None, feed)
    return time.thread_time() - start


def compare(name, paths, inputs, past, runs):
    counts = [nodes(onnx.load(path, load_external_data=False).graph) for path in paths]
    sessions = [open_session(path) for path in paths]
    feeds = []
    for session in sessions:
        known = {**inputs, **(past_of(session, past) if past else {})}
        feeds.append({value.name: known[value.name].numpy() for value in session.get_inputs()})
    pairs = list(zip(sessions, feeds))
    for pair in pairs * 2:
        seconds_of(*pair)
    times = [[seconds_of(*pair) for pair in pairs] for _ in range(runs)]
    definition, imported = (statistics.median(column) * 1e3 for column in zip(*times))
    print(f"{name:16} {definition:9.2f} ms {imported:9.2f} ms {definition / imported:7.3f}   {counts[0]} / {counts[1]}", flush=True)


def main(runs):
    transformers.logging.set_verbosity_error()
    torch.set_grad_enabled(False)
    print(f"{'model':16} {'definition':>12} {'imported':>12} {'ratio':>7}   nodes")
    for name, config, call in models():
        with tempfile.TemporaryDirectory() as folder:
            paths = export_both(config, call, pathlib.Path(folder))
            compare(name, paths, inputs_of(config, 1, 14 if config["model_type"] == "vit" else 256), 0, runs)
    for name, config, _ in models():
        if config["model_type"] not in ("llama", "qwen3", "qwen3_moe"):
            continue
        past = 256
        step = {"input_ids": torch.tensor([[5]]), "attention_mask": torch.ones(1, past + 1, dtype=torch.int64),
                "position_ids": torch.tensor([[past]])}
        with tempfile.TemporaryDirectory() as folder:
            paths = export_both_decodes(config, pathlib.Path(folder))
            compare(f"{name} decode", paths, step, past, 20 * runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)

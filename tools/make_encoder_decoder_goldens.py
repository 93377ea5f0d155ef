#!/usr/bin/env python3
"""Writes tests/golden/encoder_decoder.json: what Transformers' generate() makes of tiny encoder-decoders (hash_weights.py).

    python tools/make_encoder_decoder_goldens.py

Each model has its config and runs: inputs as lists, a generation configuration, the new ids without what the decoder
began with, and the smallest gap of the two best scores, which says that no rounding decides.
"""

import json
import logging
import pathlib

import numpy as np
import torch
import transformers

import hash_weights
import reference
import reference_cases

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "encoder_decoder.json"
NEW_TOKENS = 24


def padded(rows, pad):
    longest = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": mask}


def generated(model, inputs, num_begun, given):
    config = {"do_sample": False, "max_new_tokens": NEW_TOKENS, "eos_token_id": None, **given}
    result = model.generate(
        **inputs,
        generation_config=transformers.GenerationConfig(**config, decoder_start_token_id=reference_cases.PAD),
        output_scores=True,
        return_dict_in_generate=True,
    )
    best = torch.stack(result.scores, 1).topk(2, -1).values
    gap = (best[..., 0] - best[..., 1]).min()
    return result.sequences[:, num_begun:].tolist(), json.loads(str(np.float32(gap)))


def t5():
    case = reference_cases.Forward(reference_cases.encoder_decoder("t5"))
    model = reference.build(case)
    prompts = [[5, 17, 3, 80, 41], [11], [7, 2, 9, 31, 8, 60, 13]]
    runs = []
    for given in (
        {},
        {"repetition_penalty": 1.5},
        {"forced_bos_token_id": 44, "suppress_tokens": [34, 70], "begin_suppress_tokens": [74, 37]},
        {"forced_eos_token_id": 1, "min_new_tokens": 3},
    ):
        ids, gap = generated(model, padded(prompts, reference_cases.PAD), 1, given)
        runs.append({"prompts": prompts, "config": given, "new_ids": ids, "smallest_gap": gap})
    begun = {"decoder_input_ids": torch.tensor([[9, 8], [7, 6], [5, 4]])}
    ids, gap = generated(model, {**padded(prompts, reference_cases.PAD), **begun}, 3, {})
    runs.append({"prompts": prompts, "decoder_input_ids": begun["decoder_input_ids"].tolist(), "config": {}, "new_ids": ids, "smallest_gap": gap})
    return {"name": "t5", "config": case.config, "runs": runs}


SPEECH = {
    "lang_to_id": {"<|en|>": 46, "<|de|>": 43, "<|fr|>": 42, "<|haw|>": 44},
    "task_to_id": {"translate": 50, "transcribe": 51},
    "no_timestamps_token_id": 52,
    "is_multilingual": True,
    "return_timestamps": False,
    "max_length": 20,
    "suppress_tokens": [7, 8, 9, 1000],
    "begin_suppress_tokens": [10, 1],
    "decoder_start_token_id": 3,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "bos_token_id": 0,
}


def whisper():
    """What generate() makes of short sounds, by the language that it finds out or is told."""
    case = reference_cases.Forward(reference_cases.encoder_decoder("whisper"))
    sounds = reference_cases.sounds(3, salt=5)
    english = {"is_multilingual": False, "lang_to_id": ..., "task_to_id": ..., "forced_decoder_ids": [[1, 52]]}
    runs = []
    for changes in (
        {},
        {"language": "de"},
        {"language": "<|haw|>", "task": "translate"},
        {"task": "translate"},
        {"forced_decoder_ids": [[1, None], [2, 50]]},
        {"forced_decoder_ids": [[1, 42], [2, 51], [3, 52]], "max_new_tokens": 9},
        {"no_timestamps_token_id": ..., "max_length": 40},
        english,
    ):
        given = {key: value for key, value in {**SPEECH, **changes}.items() if value is not ...}
        model = reference.build(case)
        model.generation_config = transformers.GenerationConfig(**given)
        result = model.generate(
            **reference.as_tensors(sounds), force_unique_generate_call=True, return_dict_in_generate=True, output_scores=True
        )
        config = transformers.GenerationConfig(**given)
        begun = model._retrieve_init_tokens(
            reference.as_tensors(sounds)["input_features"],
            batch_size=3,
            generation_config=config,
            config=model.config,
            num_segment_frames=40,
            kwargs={},
        )
        scores = torch.stack(result.scores, 1)
        best = scores.topk(2, -1).values
        gaps = best[..., 0] - best[..., 1]
        rows = []
        for row, ids in enumerate(result.sequences.tolist()):
            assert ids[: begun.shape[1]] == begun[row].tolist(), (ids, begun)
            new = ids[begun.shape[1] :]
            rows.append(new[: new.index(1) + 1] if 1 in new else new)
        runs.append({"generation_config": given, "prompts": begun.tolist(), "new_ids": rows, "smallest_gap": json.loads(str(np.float32(gaps[gaps.isfinite()].min())))})
    return {"name": "whisper", "config": case.config, **sounds, "runs": runs}


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    with torch.no_grad():
        models = [t5(), whisper()]
    lines = []
    for model in models:
        rows = ",\n".join("      " + json.dumps(run, separators=(",", ":")) for run in model.pop("runs"))
        head = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in model.items())
        lines.append(f'    {{{head}, "runs": [\n{rows}\n    ]}}')
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    body = ",\n".join(lines)
    OUT.write_text("{\n" + json.dumps(versions)[1:-1] + ',\n  "models": [\n' + body + "\n  ]\n}\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes tests/golden/sampling.json: what Transformers 5.23.0 makes of logits before it chooses a token.

    python tools/make_sampling_goldens.py

The processors and their order are those of generate(): model._get_logits_processor(). Each case has the logits of a
step, the tokens so far, a generation configuration, and the scores after all processors (null: minus infinity), with
the token that greedy decoding takes. "tokens" are what generate() itself makes of a tiny llama (hash_weights.py). "stops" says
with how many new tokens a stop string ends a text, by the tokenizers of tests/cases/tokenizer.
"""

import json
import math
import pathlib

import numpy as np
import torch
import transformers
from transformers import AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM, StopStringCriteria

import hash_weights

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
OUT = TESTS / "golden" / "sampling.json"
VOCAB_SIZE = 61

# name, configuration, ids of the prompt, new ids
CASES = [
    ("greedy", {}, [3, 1, 4], [1, 5]),
    ("sampling with the defaults", {"do_sample": True}, [3, 1, 4], [1, 5]),
    ("temperature", {"do_sample": True, "temperature": 0.7, "top_k": 0}, [3], []),
    ("high temperature", {"do_sample": True, "temperature": 1.9, "top_k": 0}, [3], []),
    ("top_k", {"do_sample": True, "top_k": 5}, [3], []),
    ("top_k of one", {"do_sample": True, "top_k": 1}, [3], []),
    ("top_k over the vocabulary", {"do_sample": True, "top_k": 1000}, [3], []),
    ("top_p", {"do_sample": True, "top_k": 0, "top_p": 0.83}, [3], []),
    ("top_p of nearly nothing", {"do_sample": True, "top_k": 0, "top_p": 0.01}, [3], []),
    ("top_p of zero", {"do_sample": True, "top_k": 0, "top_p": 0.0}, [3], []),
    ("top_p of nearly all", {"do_sample": True, "top_k": 0, "top_p": 0.999}, [3], []),
    ("all three", {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9}, [3], []),
    ("repetition_penalty", {"repetition_penalty": 1.3}, [3, 1, 4, 1], [5, 9, 5]),
    ("repetition_penalty under one", {"repetition_penalty": 0.8}, [3, 1, 4, 1], [5, 9, 5]),
    ("repetition_penalty that changes the best", {"repetition_penalty": 40.0}, list(range(0, 60, 2)), [7]),
    ("all at once", {"do_sample": True, "temperature": 1.4, "top_k": 30, "top_p": 0.7, "repetition_penalty": 1.2}, [8, 6, 7], [5, 3, 0, 9]),
    ("min_new_tokens not reached", {"min_new_tokens": 3, "eos_token_id": [2, 40]}, [3], [1, 5]),
    ("min_new_tokens reached", {"min_new_tokens": 2, "eos_token_id": [2, 40]}, [3], [1, 5]),
    ("min_length not reached", {"min_length": 4, "eos_token_id": 17}, [3], [1, 5]),
    ("eos forbidden, then sampled", {"do_sample": True, "min_new_tokens": 9, "eos_token_id": [2, 40], "top_k": 4, "top_p": 0.5}, [3], []),
    ("forced_bos after one token", {"forced_bos_token_id": 9}, [3], []),
    ("forced_bos after the second", {"forced_bos_token_id": 9}, [3], [9]),
    ("forced_bos of a longer prompt", {"forced_bos_token_id": 9}, [3, 1], []),
    ("forced_eos at the end", {"forced_eos_token_id": [17, 5], "max_length": 4}, [3], [1, 5]),
    ("forced_eos before the end", {"forced_eos_token_id": 17, "max_length": 4}, [3], [1]),
    ("suppress_tokens", {"suppress_tokens": [10, 20, 30, 1000]}, [3], [1]),
    ("suppress_tokens, then sampled", {"suppress_tokens": [10, 20, 30], "do_sample": True, "top_k": 5}, [3], [1]),
    ("begin_suppress_tokens", {"begin_suppress_tokens": [10, 20, 30]}, [3, 1], []),
    ("begin_suppress_tokens later", {"begin_suppress_tokens": [10, 20, 30]}, [3, 1], [5]),
    ("begin_suppress_tokens at forced_bos", {"begin_suppress_tokens": [9, 20], "forced_bos_token_id": 9}, [3], []),
    ("begin_suppress_tokens after forced_bos", {"begin_suppress_tokens": [9, 20], "forced_bos_token_id": 9}, [3], [9]),
]

# tokenizer, prompt, text that follows, stop strings
STOPS = [
    ("bytelevel", "The quick", " brown fox jumps over the lazy dog", ["jumps"]),
    ("bytelevel", "The quick", " brown fox jumps over the lazy dog", ["x ju"]),
    ("bytelevel", "The quick", " brown fox jumps over the lazy dog", ["lazy", "over the", "absent"]),
    ("bytelevel", "The quick", " brown fox jumps over the lazy dog", ["cat"]),
    ("bytelevel", "The quick brown", " fox", ["brown"]),
    ("bytelevel", "The quick brown", " fox", ["wn f"]),
    ("bytelevel", "One\n", "\nTwo\n\nThree", ["\n\n"]),
    ("bytelevel", "One", "Two<|im_end|>Three", ["<|im_end|>"]),
    ("bytelevel", "One", "Two<|im_end|>Three", ["o<|im_end|>T"]),
    ("bytelevel", "caf", "\u00e9 \u4eca\u65e5\u306f\u4e16\u754c\u3002 \U0001f600!", ["\u4e16\u754c"]),
    ("bytelevel", "caf", "\u00e9 \u4eca\u65e5\u306f\u4e16\u754c\u3002 \U0001f600!", ["\U0001f600"]),
    ("metaspace", "The quick", " brown fox jumps over the lazy dog", ["jumps"]),
    ("metaspace", "The quick", " brown fox\njumps\n\nover the lazy dog", ["\n"]),
    ("metaspace", "The quick", " brown fox\njumps\n\nover the lazy dog", ["\n\n"]),
    ("metaspace", "The quick", " brown fox\njumps\n\nover the lazy dog", ["s\n\no"]),
    ("metaspace", "The quick", " \u20ac brown \U0001f600 fox", ["\u20ac"]),
    ("metaspace", "The quick", " \u20ac brown \U0001f600 fox", ["\U0001f600 f"]),
]


CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-06,
    "bos_token_id": 0,
    "eos_token_id": None,
}


def llama():
    model = LlamaForCausalLM(LlamaConfig.from_dict(CONFIG)).eval()
    hash_weights.fill(model)
    model.generation_config = GenerationConfig()
    return model


def plain(value):
    return json.loads(str(np.float32(value)))


def logits_of(name, generator):
    logits = torch.randn(VOCAB_SIZE, generator=generator) * 2.5
    if "top_k" in name:  # equal ones at the border
        logits[[10, 20, 30]] = logits.topk(5).values[-1]
    if "eos" in name or "min_" in name:
        logits[[2, 40, 17]] = 9.0
    return logits


def processed(model, name, given, prompt, new, generator):
    logits = logits_of(name, generator)
    config = GenerationConfig(**given)
    config.update(**GenerationConfig._get_default_generation_params(), defaults_only=True)
    model._prepare_special_tokens(config, device="cpu")
    if config.min_new_tokens is not None:
        config.min_length = config.min_new_tokens + len(prompt)
    processors = model._get_logits_processor(config, input_ids_seq_length=len(prompt), device="cpu", model_kwargs={})
    scores = processors(torch.tensor([prompt + new]), logits[None].clone())[0]
    return {
        "name": name,
        "config": given,
        "prompt": prompt,
        "new": new,
        "logits": [plain(value) for value in logits],
        "scores": [None if value == -math.inf else plain(value) for value in scores],
        "greedy": scores.argmax().item(),
    }


def generated(model):
    """Greedy tokens of a left-padded batch and their gaps; some repeat, so a penalty shows too."""
    prompts = [[5, 17, 3], [11], [7, 2, 9, 31, 8, 60, 1]]
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in prompts])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    for penalty in (1.0, 1.5):
        result = model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=24,
            repetition_penalty=penalty,
            pad_token_id=0,
            output_scores=True,
            return_dict_in_generate=True,
        )
        best = torch.stack(result.scores, 1).topk(2, -1).values
        yield {
            "repetition_penalty": penalty,
            "prompts": prompts,
            "new_ids": result.sequences[:, longest:].tolist(),
            "smallest_gap": plain((best[..., 0] - best[..., 1]).min()),
        }


def stopped():
    for name, prompt, text, stops in STOPS:
        tokenizer = AutoTokenizer.from_pretrained(TESTS / "cases" / "tokenizer" / name)
        prompt_ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        criterion = StopStringCriteria(tokenizer, stops)
        ends = [criterion(torch.tensor([prompt_ids + ids[: i + 1]]), None).item() for i in range(len(ids))]
        yield {
            "tokenizer": name,
            "prompt_ids": prompt_ids,
            "ids": ids,
            "stop_strings": stops,
            "num_new": ends.index(True) + 1 if True in ends else None,
            "text": tokenizer.decode(ids, skip_special_tokens=True),
        }


def main():
    model = llama()
    generator = torch.Generator().manual_seed(7)
    cases = [processed(model, *case, generator) for case in CASES]
    ties = [[0.5, 2.0, -1.0, 2.0, 2.0], [-3.0, -3.0], [0.0, -0.0, 0.0]]
    document = {
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "arg_max": [{"scores": row, "index": torch.tensor(row).argmax().item()} for row in ties],
        "cases": cases,
        "config": CONFIG,
        "tokens": list(generated(model)),
        "stops": list(stopped()),
    }
    parts = []
    for key, value in document.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            parts.append(f'  "{key}": ' + json.dumps(value, separators=(",", ":")))
    OUT.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    for run in document["tokens"]:
        print(run["repetition_penalty"], run["new_ids"], run["smallest_gap"])
    for stop in document["stops"]:
        print(stop["tokenizer"], stop["stop_strings"], stop["num_new"], "of", len(stop["ids"]))


if __name__ == "__main__":
    main()

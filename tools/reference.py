#!/usr/bin/env python3
"""Golden numbers by Transformers, never by us: `reference.py --out tests/golden [--only PATTERN]`.

Writes logits/<case>.json for the tiny models of reference_cases.py (weights: hash_weights.py), and with
--smollm2 FILE.gguf and --minilm DIR the numbers of the two real checkpoints. Format: tests/golden/README.md.
Needs Transformers 5.23.0 and torch 2.13.0; never needed to build or to run tranship.
"""

import argparse
import copy
import fnmatch
import json
import logging
import pathlib

import numpy as np
import torch
import transformers

import hash_weights
import reference_cases

OUTPUTS = (
    "logits",
    "last_hidden_state",
    "pooler_output",
    "start_logits",
    "end_logits",
    "encoder_last_hidden_state",
)


RENAMED = ("vit", "qwen3_moe")  # a checkpoint's names are not those of the model's parameters


def build(case):
    """A fresh model: some rope types remember how long an input they have seen."""
    config = copy.deepcopy(case.config)
    config_class = transformers.CONFIG_MAPPING[config["model_type"]]
    model_class = getattr(transformers, config["architectures"][0])
    model = model_class(config_class.from_dict(config), **getattr(case, "arguments", {}))
    for name in getattr(case, "own_tensors", []):
        module, weight = name.rsplit(".", 1)
        module = model.get_submodule(module)
        setattr(module, weight, torch.nn.Parameter(getattr(module, weight).clone()))
    if config["model_type"] in RENAMED and not getattr(case, "own_tensors", []):
        return hash_weights.saved(model).eval()
    hash_weights.fill(model)
    return model.eval()


def watch_routers(model, hits):
    """Adds the experts that each router chooses to hits[router]. No choice may be close: rounding would change it."""

    def watch(module, _, results):
        probabilities = results[0].softmax(-1).sort(-1, descending=True).values
        gap = (probabilities[:, module.top_k - 1] - probabilities[:, module.top_k]).min().item()
        if gap < 2e-5:
            raise ValueError(f"a router's choice is close: {gap}")
        hits.setdefault(id(module), set()).update(results[2].ravel().tolist())

    for module in model.modules():
        if type(module).__name__.endswith("TopKRouter"):
            module.register_forward_hook(watch)


def number(value):
    """The shortest text that is this float32."""
    return json.loads(str(np.float32(value)))


def stored(tensor, positions=None):
    """A tensor for JSON; `positions` keeps these places of axis 1 (the shape stays the whole tensor's)."""
    array = tensor.detach().to(torch.float32).numpy()
    if not np.isfinite(array).all():
        raise ValueError("an output is not finite")
    out = {"shape": list(array.shape)}
    if positions is not None and array.ndim >= 2:
        out["positions"] = positions
        array = array[:, positions]
    out["values"] = [number(value) for value in array.ravel()]
    return out


def as_tensors(inputs):
    """Nested lists; {"numbers": name, "shape": shape} is what hash_weights.numbers() makes."""
    dtypes = {"input_features": torch.float32}

    def tensor(name, values):
        if isinstance(values, dict):
            return torch.from_numpy(hash_weights.numbers(values["numbers"], tuple(values["shape"])))
        return torch.tensor(values, dtype=dtypes.get(name, torch.int64))

    return {name: tensor(name, values) for name, values in inputs.items()}


def forward_runs(case):
    hits = {}
    for run in case.runs:
        model = build(case)
        watch_routers(model, hits.setdefault(len(hits), {}))
        result = model(**as_tensors(run.inputs), **getattr(case, "call", {}))
        outputs = {name: result[name] for name in OUTPUTS if result.get(name) is not None}
        # Only outputs with a sequence axis are thinned.
        ids = run.inputs.get("input_ids")
        yield {
            "inputs": run.inputs,
            "outputs": {
                name: stored(value, run.positions if value.ndim == 3 and (ids is None or value.shape[1] == len(ids[0])) else None)
                for name, value in outputs.items()
            },
        }
    experts = case.config.get("num_experts") or case.config.get("num_local_experts")
    if experts and not any(run and all(len(chosen) == experts for chosen in run.values()) for run in hits.values()):
        raise ValueError("in no run has each expert a token")


def generation_runs(case):
    """Prefill and decode as generate() does them, but with tokens given, so that no tie can change the path."""
    for prompt in case.prompts:
        model = build(case)
        mask = copy.deepcopy(prompt["attention_mask"])
        inputs = {**prompt, "position_ids": reference_cases.mask_positions(mask)}
        length = len(mask[0])
        watch_routers(model, {})
        cache = transformers.DynamicCache(config=model.config)
        result = model(**as_tensors(inputs), past_key_values=cache, use_cache=True)
        kept = sorted({length // 2, length - 1})
        steps = [{"inputs": inputs, "outputs": {"logits": stored(result.logits, kept)}}]
        next_ids = reference_cases.token_ids(len(mask), case.num_steps, 6)
        for step in range(case.num_steps):
            mask = [row + [1] for row in mask]
            inputs = {
                "input_ids": [[row[step]] for row in next_ids],
                "attention_mask": mask,
                "position_ids": [row[-1:] for row in reference_cases.mask_positions(mask)],
            }
            result = model(**as_tensors(inputs), past_key_values=cache, use_cache=True)
            steps.append({"inputs": inputs, "outputs": {"logits": stored(result.logits)}})
        yield {"steps": steps}


def state_runs(case):
    """Prefill and decode of a model whose cache is states: a step takes a token, and nothing else."""
    for prompt in case.prompts:
        model = build(case)
        result = model(**as_tensors(prompt), use_cache=True)
        length = len(prompt["input_ids"][0])
        kept = sorted({0, length // 2, length - 1})
        steps = [{"inputs": prompt, "outputs": {"logits": stored(result.logits, kept)}}]
        for step in zip(*reference_cases.token_ids(len(prompt["input_ids"]), case.num_steps, 6)):
            inputs = {"input_ids": [[token] for token in step]}
            result = model(**as_tensors(inputs), cache_params=result.cache_params, use_cache=True)
            steps.append({"inputs": inputs, "outputs": {"logits": stored(result.logits)}})
        yield {"steps": steps}


def encoder_decoder_runs(case):
    """The encoder, prefill and decode as generate() does them, with tokens given."""
    for encoder_inputs, num_tokens in case.prompts:
        model = build(case)
        given = as_tensors(encoder_inputs)
        encoded = model.get_encoder()(**given)
        length = encoded.last_hidden_state.shape[1]
        kept = sorted({0, length // 2, length - 1}) if length > 10 else None
        states = {"last_hidden_state": stored(encoded.last_hidden_state, kept)}
        steps = [{"component": "encoder", "inputs": encoder_inputs, "outputs": states}]
        cache = transformers.EncoderDecoderCache(transformers.DynamicCache(), transformers.DynamicCache())
        masks = {name: encoder_inputs[name] for name in ("attention_mask",) if name in encoder_inputs}
        ids = reference_cases.token_ids(encoded.last_hidden_state.shape[0], num_tokens + case.num_steps, 6)
        for start, end in [(0, num_tokens), *((at, at + 1) for at in range(num_tokens, num_tokens + case.num_steps))]:
            inputs = {**masks, "decoder_input_ids": [row[start:end] for row in ids]}
            result = model(**as_tensors(inputs), encoder_outputs=encoded, past_key_values=cache, use_cache=True)
            component = "decode" if start else "prefill"
            steps.append({"component": component, "inputs": inputs, "outputs": {"logits": stored(result.logits)}})
        yield {"steps": steps}


def token_runs(case, num_tokens=16):
    """What generate() makes of prompts of several lengths, padded on the left. No two tokens may be close."""
    for prompts in ([[5, 17, 33]], [[5, 17, 33, 8, 61], [44], [9, 70]]):
        longest = max(map(len, prompts))
        inputs = {
            "input_ids": [[0] * (longest - len(prompt)) + prompt for prompt in prompts],
            "attention_mask": [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts],
        }
        config = transformers.GenerationConfig(max_new_tokens=num_tokens, eos_token_id=None, pad_token_id=0)
        result = build(case).generate(
            **as_tensors(inputs), generation_config=config, output_logits=True, return_dict_in_generate=True
        )
        best = torch.stack(result.logits).topk(2).values
        if (best[..., 0] - best[..., 1]).min() < 2e-3:
            raise ValueError("two tokens are close")
        yield {"prompts": prompts, "new_ids": result.sequences[:, longest:].tolist()}


def write(path, document, lists=("runs",)):
    """JSON with an entry of `lists` on each line: a change of a run shows as the change of a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = []
    for key, value in document.items():
        if key in lists:
            rows = ",\n".join("    " + json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            parts.append(f'  "{key}": ' + json.dumps(value))
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def versions():
    return {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}


def tiny(out, only):
    cases = {**reference_cases.causal_cases(), **reference_cases.bert_cases(), **reference_cases.t5_cases()}
    cases.update(reference_cases.whisper_cases())
    for more in (reference_cases.moe_cases, reference_cases.mamba_cases, reference_cases.vit_cases):
        cases.update(more())
    named = [(name, forward_runs, case) for name, case in cases.items()]
    named += [(f"generation_{name}", state_runs, case) for name, case in reference_cases.state_cases().items()]
    named += [(f"generation_{name}", generation_runs, case) for name, case in reference_cases.generation_cases().items()]
    pairs = reference_cases.encoder_decoder_cases()
    named += [(f"generation_{name}", encoder_decoder_runs, case) for name, case in pairs.items()]
    for name, case in reference_cases.token_cases().items():
        if fnmatch.fnmatch(f"tokens_{name}", only):
            document = {"config": case.config, **versions(), "runs": list(token_runs(case))}
            write(out / "tokens" / f"{name}.json", document)
            print(f"tokens_{name}")
    for name, runs, case in named:
        if not fnmatch.fnmatch(name, only):
            continue
        document = {"case": name, "config": case.config, **versions()}
        document["task"] = "forward" if runs is forward_runs else "generation"
        if getattr(case, "absent_tensors", None):
            document["absent_tensors"] = case.absent_tensors
        if getattr(case, "own_tensors", None):
            model = build(case)
            document["own_tensors"] = {key: list(model.get_parameter(key).shape) for key in case.own_tensors}
        document["runs"] = list(runs(case))
        write(out / "logits" / f"{name}.json", document)
        print(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="tests/golden")
    parser.add_argument("--only", default="*", help="shell pattern of case names")
    parser.add_argument("--smollm2", type=pathlib.Path, help="SmolLM2-135M-Instruct as GGUF: also smollm2.json")
    parser.add_argument("--minilm", type=pathlib.Path, help="folder of all-MiniLM-L6-v2: also minilm.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    with torch.no_grad():
        tiny(arguments.out, arguments.only)
        if arguments.smollm2 or arguments.minilm:
            import reference_real

            if arguments.minilm:
                write(arguments.out / "minilm.json", {**versions(), **reference_real.minilm(arguments.minilm)}, ("sentences",))
            if arguments.smollm2:
                write(arguments.out / "smollm2.json", {**versions(), **reference_real.smollm2(arguments.smollm2)}, ("prompts",))


if __name__ == "__main__":
    main()

"""Caches of fixed length: PyTorch writes them in place, ONNX Runtime gets them as inputs and outputs of one shape."""

import copy
import dataclasses
import json

import pytest
import torch
import transformers
from transformers.exporters import ExportedModel

import reference
import reference_cases
from conftest import ROOT, assert_close, check_logits

SLOTS = 48
STATIC = ("--cache-implementation=static", f"--max-cache-len={SLOTS}")
GENERATION = {
    name: case
    for name, case in reference_cases.generation_cases().items()
    if case.config["model_type"] not in ("mamba", "t5", "whisper")
}


def slot_mask(attention_mask, length, slots=SLOTS):
    """bool [batch, 1, length, slots]: the last tokens of a mask see themselves and what is before them."""
    total = attention_mask.shape[1]
    seen = torch.zeros(attention_mask.shape[0], 1, length, slots, dtype=torch.bool)
    rows = torch.arange(total - length, total)[:, None]
    seen[..., :total] = (torch.arange(total) <= rows) & attention_mask.bool()[:, None, None]
    return seen


def as_static(inputs):
    inputs = reference.as_tensors(inputs)
    length = inputs["input_ids"].shape[1]
    return {**inputs, "attention_mask": slot_mask(inputs["attention_mask"], length)}


@pytest.mark.parametrize("to", ["dynamo", "onnx"])
@pytest.mark.parametrize("name", sorted(GENERATION))
def test_prefill_and_decode_return_what_the_cached_model_returns(name, to, export, no_grad):
    case = GENERATION[name]
    golden = json.loads((ROOT / f"tests/golden/logits/generation_{name}.json").read_text())
    for run in golden["runs"]:
        rows = len(run["steps"][0]["inputs"]["input_ids"])
        folder = export(case.config, "--task", "generation", *STATIC, f"--static=batch={rows}", to=to)
        exported = ExportedModel.from_pretrained(folder)
        cache = None
        for step in run["steps"]:
            inputs = as_static(step["inputs"])
            runner = exported.runners["prefill" if cache is None else "decode"]
            result = runner(**inputs, **({} if cache is None else {"past_key_values": cache}))
            cache = result.past_key_values
            assert type(cache) is transformers.StaticCache
            check_logits(result.logits, step, case)
            seen = len(step["inputs"]["attention_mask"][0])
            assert [int(layer.cumulative_length) for layer in cache.layers] == [seen] * len(cache.layers)


@pytest.mark.parametrize("name", ["llama_default", "mistral_sliding_window", "qwen3_default", "qwen3_moe_default"])
def test_the_decode_loop_of_the_guide(name, export, no_grad, tmp_path):
    """One graph takes the prompt and then each token; the caller's cache is written in place."""
    case = GENERATION[name]
    folder = export(case.config, "--task", "generation", *STATIC, "--multi-token-decode", to="dynamo")
    exported = ExportedModel.from_pretrained(folder)
    decode = exported.runners["decode"]
    _, example_kwargs = exported.components["decode"].program.example_inputs
    past_key_values = copy.deepcopy(example_kwargs["past_key_values"])
    past_key_values.reset()
    buffers = [layer.keys.data_ptr() for layer in past_key_values.layers]

    def causal_mask(positions, cache_len):
        return (torch.arange(cache_len)[None, :] <= positions[:, None])[None, None]

    prompt_ids = torch.tensor([[5, 17, 33, 8, 61]])
    prompt_len, num_tokens = prompt_ids.shape[1], 32
    positions = torch.arange(prompt_len)
    logits = decode(
        input_ids=prompt_ids,
        attention_mask=causal_mask(positions, SLOTS),
        position_ids=positions[None],
        past_key_values=past_key_values,
    ).logits
    next_token = logits[:, -1:].argmax(-1)
    tokens = [int(next_token)]
    input_ids = torch.empty((1, 1), dtype=torch.long)
    position_ids = torch.empty((1, 1), dtype=torch.long)
    attention_mask = torch.empty((1, 1, 1, SLOTS), dtype=torch.bool)
    slots = torch.arange(SLOTS)
    for position in range(prompt_len, prompt_len + num_tokens - 1):
        input_ids.copy_(next_token)
        position_ids.fill_(position)
        attention_mask[0, 0, 0].copy_(slots <= position)
        logits = decode(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
        ).logits
        next_token = logits[:, -1:].argmax(-1)
        tokens.append(int(next_token))
    model = reference.build(case)
    expected = model.generate(prompt_ids, max_new_tokens=num_tokens, do_sample=False, eos_token_id=None)
    assert tokens == expected[0, prompt_len:].tolist()
    assert buffers == [layer.keys.data_ptr() for layer in past_key_values.layers]
    assert int(past_key_values.layers[0].cumulative_length) == prompt_len + num_tokens - 1


def test_names_are_those_of_transformers_own_export(export):
    case = GENERATION["llama_default"]
    folder = export(case.config, "--task", "generation", *STATIC, "--multi-token-decode", "--static=batch=2", to="dynamo")
    ours = ExportedModel.from_pretrained(folder).components["decode"].program
    inputs = reference.as_tensors(reference_cases.padded(7, 4, "left"))
    exporter = transformers.exporters.DynamoExporter()
    theirs = exporter.export_for_generation(
        reference.build(case),
        {name: inputs[name] for name in ("input_ids", "attention_mask")},
        config=transformers.exporters.DynamoConfig(dynamic=True),
        generation_config=transformers.GenerationConfig(cache_implementation="static", max_cache_len=SLOTS),
        multi_token_decode=True,
    ).components["decode"].program
    assert ours.graph_signature.user_inputs == theirs.graph_signature.user_inputs
    assert ours.call_spec.in_spec == theirs.call_spec.in_spec
    assert ours.call_spec.out_spec == theirs.call_spec.out_spec


PAIRS = reference_cases.encoder_decoder_cases()


@pytest.mark.parametrize("name", ["t5_default", "t5_long", "whisper_default"])
def test_a_decoder_beside_an_encoder_returns_what_the_cached_model_returns(name, export, no_grad):
    case = PAIRS[name]
    golden = json.loads((ROOT / f"tests/golden/logits/generation_{name}.json").read_text())
    folder = export(case.config, "--task", "generation", *STATIC, to="onnx")
    exported = ExportedModel.from_pretrained(folder)
    model = reference.build(case)
    for run in golden["runs"]:
        encoder, cache, seen = None, None, 0
        for step in run["steps"]:
            inputs = reference.as_tensors(step["inputs"])
            if step["component"] == "encoder":
                if "input_features" in inputs:
                    inputs["input_features"] = inputs["input_features"].float()
                encoder = model.get_encoder()(**inputs)
                continue
            seen += inputs["decoder_input_ids"].shape[1]
            runner = exported.runners["prefill" if cache is None else "decode"]
            result = runner(**inputs, encoder_outputs=encoder, **({} if cache is None else {"past_key_values": cache}))
            cache = result.past_key_values
            assert type(cache) is transformers.EncoderDecoderCache
            assert type(cache.self_attention_cache) is type(cache.cross_attention_cache) is transformers.StaticCache
            expected = step["outputs"]["logits"]
            values = torch.tensor(expected["values"]).reshape(expected["shape"])
            assert_close(result.logits, values, case.config, seen)
            assert {int(layer.cumulative_length) for layer in cache.self_attention_cache.layers} == {seen}
            states = encoder.last_hidden_state.shape[1]
            assert {int(layer.cumulative_length) for layer in cache.cross_attention_cache.layers} == {states}


@pytest.mark.parametrize("name", ["t5_default", "whisper_default"])
def test_names_beside_an_encoder_are_those_of_transformers_own_export(name, export, no_grad):
    """Transformers gives both halves of the cache as many layers as the encoder has."""
    case = PAIRS[name]
    is_text = name.startswith("t5")
    config = {**case.config, **({"num_decoder_layers": case.config["num_layers"]} if is_text else {})}
    case = dataclasses.replace(case, config=config)
    masks = "attention_mask,decoder_attention_mask" if is_text else "decoder_attention_mask"
    inputs = reference.as_tensors(case.prompts[1][0])
    length = 20 if "input_features" in inputs else inputs["input_ids"].shape[1]
    sizes = f"--static=batch=2,sequence={length}" if is_text else "--static=batch=2"
    folder = export(config, "--task", "generation", *STATIC, sizes, f"--graph-inputs={masks}", to="dynamo")
    ours = ExportedModel.from_pretrained(folder).components["decode"].program
    settings = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    if "input_features" in inputs:
        inputs["input_features"] = inputs["input_features"].float()
    theirs = transformers.exporters.DynamoExporter().export_for_generation(
        reference.build(case),
        inputs,
        config=transformers.exporters.DynamoConfig(dynamic=True),
        generation_config=transformers.GenerationConfig(cache_implementation="static", max_cache_len=SLOTS, **settings),
    ).components["decode"].program
    assert sorted(ours.graph_signature.user_inputs) == sorted(theirs.graph_signature.user_inputs)
    assert ours.call_spec.in_spec == theirs.call_spec.in_spec

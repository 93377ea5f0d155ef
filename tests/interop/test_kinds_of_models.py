"""Transformers' ExportedModel runs our experts, states and images, also of checkpoints that Transformers saved."""

import math

import pytest
import torch
import transformers
from transformers.exporters import ExportedModel

import reference
import reference_cases
from conftest import run_cli

CASES = {**reference_cases.moe_cases(), **reference_cases.mamba_cases(), **reference_cases.vit_cases()}
FORWARD = [
    "qwen3_moe_default",
    "qwen3_moe_raw_probabilities",
    "qwen3_moe_mlp_only_layers",
    "mamba_default",
    "mamba_sizes",
    "mamba_model",
    "vit_default",
    "vit_model",
    "vit_wide",
]
FORMATS = ["onnx", "dynamo"]
LONGEST_SUM = 192  # a patch of an image


def assert_close(actual, expected):
    """4 eps sqrt(K) max|expected| (DESIGN.md)."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    tolerance = 4 * torch.finfo(torch.float32).eps * math.sqrt(LONGEST_SUM) * expected.abs().max().item()
    assert (actual - expected).abs().max().item() <= tolerance


def assert_same(actual, expected):
    assert type(actual) is type(expected)
    for output in reference.OUTPUTS:
        assert (actual.get(output) is None) == (expected.get(output) is None), output
        if expected.get(output) is not None:
            assert_close(actual[output], expected[output])


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", FORWARD)
def test_forward_returns_what_the_model_returns(name, to, export, no_grad):
    case = CASES[name]
    for run in case.runs:
        folder = export(case.config, "--task", "forward", "--graph-inputs=" + ",".join(run.inputs), to=to)
        inputs = reference.as_tensors(run.inputs)
        assert_same(ExportedModel.from_pretrained(folder)(**inputs), reference.build(case)(**inputs, **case.call))


@pytest.mark.parametrize("to", FORMATS)
def test_states_go_from_our_prefill_to_our_decode_and_to_the_model(to, export, no_grad):
    case = CASES["mamba_default"]
    exported = ExportedModel.from_pretrained(export(case.config, "--task", "generation", to=to))
    model = reference.build(case)
    prompt = reference.as_tensors(reference_cases.padded(7, 4, "left"))
    ours, theirs = exported.runners["prefill"](**prompt), model(**prompt, use_cache=True)
    assert type(ours) is type(theirs)
    assert_close(ours.logits, theirs.logits)
    for step in range(4):
        assert type(ours.cache_params) is transformers.DynamicCache
        for our_layer, their_layer in zip(ours.cache_params.layers, theirs.cache_params.layers, strict=True):
            assert type(our_layer) is type(their_layer)
            assert_close(our_layer.conv_states[0], their_layer.conv_states[0])
            assert_close(our_layer.recurrent_states[0], their_layer.recurrent_states[0])
        ids = torch.tensor([[11 + step], [29 + step]])
        runner = exported.runners["decode"] if step < 3 else model  # the model goes on with our cache
        ours = runner(input_ids=ids, cache_params=ours.cache_params)
        theirs = model(input_ids=ids, cache_params=theirs.cache_params, use_cache=True)
        assert_close(ours.logits, theirs.logits)


@pytest.mark.parametrize("name", ["qwen3_moe_default", "mamba_biases", "vit_default", "vit_model"])
def test_a_checkpoint_that_transformers_saved(name, tmp_path, no_grad):
    case = CASES[name]
    model = reference.build(case)
    model.save_pretrained(tmp_path / "checkpoint")
    run = case.runs[1]
    names = "--graph-inputs=" + ",".join(run.inputs)
    run_cli("export", tmp_path / "checkpoint", "--to", "onnx", "-o", tmp_path / "out", "--task", "forward", names)
    inputs = reference.as_tensors(run.inputs)
    assert_same(ExportedModel.from_pretrained(tmp_path / "out")(**inputs), model(**inputs, **case.call))

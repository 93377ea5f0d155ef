"""Transformers' ExportedModel loads what tranship wrote, and returns the class and the numbers of the model itself."""

import json

import pytest
import torch
import transformers
from transformers.exporters import ExportedModel

import reference
import reference_cases
from conftest import CASES, ROOT, assert_close, check_logits, exact_forward_inputs

FORMATS = ["onnx", "dynamo"]
FORWARD = [
    *(f"{family}_default" for family in ("llama", "mistral", "qwen2", "qwen3")),
    *(f"{family}_model" for family in ("llama", "mistral", "qwen2", "qwen3")),
    *(f"{family}_sequence_classification" for family in ("llama", "mistral", "qwen2", "qwen3")),
    "llama_both_biases_tied",
    "llama_dynamic",
    "llama_longrope",
    "llama_yarn",
    "llama_llama3",
    "mistral_sliding_window",
    "qwen2_layer_types",
    "bert_model",
    "bert_masked_lm",
    "bert_sequence_classification",
    "bert_token_classification",
    "bert_question_answering",
    "t5_default",
    "t5_gated_silu",
    "t5_num_decoder_layers",
    "t5_model",
    "t5_encoder_model",
    "whisper_default",
    "whisper_model",
]
GENERATION = [
    "llama_default",
    "llama_tied_biases",
    "llama_dynamic",
    "llama_longrope",
    "mistral_sliding_window",
    "qwen2_layer_types",
    "qwen3_default",
]


@pytest.mark.parametrize("name", FORWARD)
def test_forward_returns_what_the_model_returns(name, export, no_grad):
    case = CASES[name]
    for run in case.runs:
        folder = export(case.config, "--task", "forward", exact_forward_inputs(run))
        exported = ExportedModel.from_pretrained(folder)
        inputs = reference.as_tensors(run.inputs)
        actual, expected = exported(**inputs), reference.build(case)(**inputs)
        assert type(actual) is type(expected)
        for output in reference.OUTPUTS:
            assert (actual.get(output) is None) == (expected.get(output) is None), output
            if expected.get(output) is not None:
                assert_close(actual[output], expected[output], case.config, max(value.shape[-1] for value in inputs.values()))


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", ["t5_default", "t5_model", "whisper_default"])
def test_forward_of_an_encoder_decoder_returns_both_caches(name, to, export, no_grad):
    case = CASES[name]
    folder = export(case.config, "--task", "forward", exact_forward_inputs(case.runs[1]), to=to)
    inputs = reference.as_tensors(case.runs[1].inputs)
    actual = ExportedModel.from_pretrained(folder)(**inputs).past_key_values
    expected = reference.build(case)(**inputs).past_key_values
    assert type(actual) is type(expected)
    for part in ("self_attention_cache", "cross_attention_cache"):
        for ours, theirs in zip(getattr(actual, part).layers, getattr(expected, part).layers, strict=True):
            assert_close(ours.keys, theirs.keys, case.config, 7)
            assert_close(ours.values, theirs.values, case.config, 7)


@pytest.mark.parametrize("name", ["llama_default", "qwen2_layer_types"])
def test_forward_returns_a_cache(name, export, no_grad):
    case = CASES[name]
    folder = export(case.config, "--task", "forward", exact_forward_inputs(case.runs[0]))
    inputs = reference.as_tensors(reference_cases.plain(7))
    actual = ExportedModel.from_pretrained(folder)(**inputs).past_key_values
    expected = reference.build(case)(**inputs).past_key_values
    assert type(actual) is type(expected)
    for ours, theirs in zip(actual.layers, expected.layers, strict=True):
        assert_close(ours.keys, theirs.keys, case.config, 7)
        assert_close(ours.values, theirs.values, case.config, 7)


def test_inputs_that_the_graph_lacks_are_dropped(export, no_grad):
    case = CASES["bert_model"]
    folder = export(case.config, "--task", "forward", "--graph-inputs=input_ids,attention_mask")
    inputs = reference.as_tensors(reference_cases.plain(7))
    exported = ExportedModel.from_pretrained(folder)
    actual = exported(**inputs, token_type_ids=torch.ones_like(inputs["input_ids"]))
    assert torch.equal(actual.last_hidden_state, exported(**inputs).last_hidden_state)


@pytest.mark.parametrize("name", GENERATION)
def test_prefill_and_decode_return_what_the_cached_model_returns(name, export, no_grad):
    case = reference_cases.generation_cases()[name]
    exported = ExportedModel.from_pretrained(export(case.config, "--task", "generation"))
    assert list(exported.runners) == ["prefill", "decode"]
    golden = json.loads((ROOT / f"tests/golden/logits/generation_{name}.json").read_text())
    for run in golden["runs"]:
        cache = None
        for step in run["steps"]:
            inputs = reference.as_tensors(step["inputs"])
            if cache is None:
                result = exported.runners["prefill"](**inputs)
            else:
                result = exported.runners["decode"](**inputs, past_key_values=cache)
            cache = result.past_key_values
            assert type(result) is transformers.modeling_outputs.CausalLMOutputWithPast
            assert type(cache) is transformers.DynamicCache
            check_logits(result.logits, step, case)


ENCODER_DECODERS = {
    "t5_default": transformers.modeling_outputs.BaseModelOutputWithPastAndCrossAttentions,
    "whisper_default": transformers.modeling_outputs.BaseModelOutput,
}


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_encoder_prefill_and_decode_return_what_the_cached_model_returns(name, to, export, no_grad):
    case = reference_cases.encoder_decoder_cases()[name]
    exported = ExportedModel.from_pretrained(export(case.config, "--task", "generation", to=to))
    assert list(exported.runners) == ["encoder", "prefill", "decode"]
    golden = json.loads((ROOT / f"tests/golden/logits/generation_{name}.json").read_text())
    for run in golden["runs"]:
        cache = encoded = None
        for step in run["steps"]:
            runner = exported.runners[step["component"]]
            inputs = reference.as_tensors(step["inputs"])
            if step["component"] == "encoder":
                encoded = result = runner(**inputs)
                assert type(result) is ENCODER_DECODERS[name]
                continue
            if step["component"] == "decode":
                inputs["past_key_values"] = cache
            result = runner(**inputs, encoder_outputs=encoded)
            cache = result.past_key_values
            assert type(result) is transformers.modeling_outputs.Seq2SeqLMOutput
            assert type(cache) is transformers.EncoderDecoderCache
            assert cache.is_updated == dict.fromkeys(range(len(cache)), True)
            assert torch.equal(result.encoder_last_hidden_state, encoded.last_hidden_state)
            expected = step["outputs"]["logits"]
            values = torch.tensor(expected["values"]).reshape(expected["shape"])
            assert_close(result.logits, values, case.config, encoded.last_hidden_state.shape[1])


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_a_cache_of_the_model_itself_goes_on_in_our_decode(name, to, export, no_grad):
    """Prefill by Transformers, then our decode, then Transformers again on what that gave."""
    case = reference_cases.encoder_decoder_cases()[name]
    exported = ExportedModel.from_pretrained(export(case.config, "--task", "generation", to=to))
    model = reference.build(case)
    encoder_inputs = reference.as_tensors(case.prompts[0][0])
    encoded = model.get_encoder()(**encoder_inputs)
    masks = {key: encoder_inputs[key] for key in ("attention_mask",) if key in encoder_inputs}
    ids = torch.tensor(reference_cases.token_ids(encoded.last_hidden_state.shape[0], 3, 6))
    whole = model(**masks, encoder_outputs=encoded, decoder_input_ids=ids).logits
    begun = model(**masks, encoder_outputs=encoded, decoder_input_ids=ids[:, :1], use_cache=True)
    step = {**masks, "encoder_outputs": encoded, "decoder_input_ids": ids[:, 1:2]}
    ours = exported.runners["decode"](**step, past_key_values=begun.past_key_values)
    step["decoder_input_ids"] = ids[:, 2:]
    theirs = model(**step, past_key_values=ours.past_key_values, use_cache=True)
    length = encoded.last_hidden_state.shape[1]
    assert_close(ours.logits, whole[:, 1:2], case.config, length)
    assert_close(theirs.logits, whole[:, 2:], case.config, length)


def test_configs_come_along(export):
    case = CASES["llama_default"]
    exported = ExportedModel.from_pretrained(export(case.config, "--task", "generation"))
    assert exported.export_format == "onnx"
    assert type(exported.config) is transformers.LlamaConfig
    for key in ("hidden_size", "num_key_value_heads", "rms_norm_eps", "tie_word_embeddings", "vocab_size"):
        assert getattr(exported.config, key) == case.config[key]
    assert exported.config.rope_parameters["rope_theta"] == case.config["rope_theta"]
    assert exported.dtype == torch.float32

"""PyTorch and Transformers load the .pt2 files that tranship wrote, and compute what the model computes."""

import json
import os
import zipfile

import pytest
import torch
import transformers
from torch.export.pt2_archive._package import load_pt2
from transformers.exporters import ExportedModel
from transformers.exporters.metadata import register_treespec_types

import reference
import reference_cases
from conftest import CASES, ROOT, assert_close, check_logits, exact_forward_inputs

ALL_CASES = {**CASES, **reference_cases.moe_cases(), **reference_cases.mamba_cases(), **reference_cases.vit_cases()}

GENERATION = sorted(reference_cases.generation_cases())
# A synthetic checkpoint has every tensor that is asked for: what is absent on purpose cannot be told there.
FORWARD = sorted(
    name
    for name, case in CASES.items()
    if not getattr(case, "arguments", {}) and not getattr(case, "own_tensors", [])
)
# One of each kind is decomposed and saved again too: that takes seconds.
AGAIN = {
    "llama_default",
    "llama_dynamic",
    "llama_sequence_classification",
    "mistral_sliding_window",
    "qwen2_layer_types",
    "qwen3_model",
    "bert_model",
    "bert_question_answering",
}


def export_pt2(export, config, *options):
    return export(config, *options, to="dynamo")


def longest_axis(inputs):
    return max(size for value in inputs.values() for size in value.shape)


def load_program(folder, component):
    """The ExportedProgram, by the loader that says what is wrong."""
    metadata = json.loads((folder / "export.json").read_text())["components"][component]["metadata"]
    for spec in ("in_spec", "out_spec"):
        register_treespec_types(metadata[spec])
    return load_pt2(folder / f"{component}.pt2").exported_programs["model"]


def stays_the_same(program, tmp_path):
    """The program after its decomposition, and after it was saved and loaded again."""
    decomposed = program.run_decompositions({})
    for changed in (program, decomposed):
        torch.export.save(changed, tmp_path / "again.pt2")
        yield torch.export.load(tmp_path / "again.pt2").module()
    yield decomposed.module()


@pytest.mark.parametrize("name", FORWARD)
def test_forward_returns_what_the_model_returns(name, export, no_grad, tmp_path):
    case = CASES[name]
    for number, run in enumerate(case.runs):
        folder = export_pt2(export, case.config, "--task", "forward", exact_forward_inputs(run))
        exported = ExportedModel.from_pretrained(folder)
        inputs = reference.as_tensors(run.inputs)
        expected = reference.build(case)(**inputs)
        callables = [exported]
        if number == 0 and name in AGAIN:
            callables += stays_the_same(load_program(folder, "model"), tmp_path)
        for call in callables:
            actual = call(**inputs)
            assert type(actual) is type(expected)
            for output in reference.OUTPUTS:
                assert (actual.get(output) is None) == (expected.get(output) is None), output
                if expected.get(output) is not None:
                    assert_close(actual[output], expected[output], case.config, longest_axis(inputs))


@pytest.mark.parametrize("name", GENERATION)
def test_prefill_and_decode_return_what_the_cached_model_returns(name, export, no_grad, tmp_path):
    case = reference_cases.generation_cases()[name]
    folder = export_pt2(export, case.config, "--task", "generation")
    exported = ExportedModel.from_pretrained(folder)
    assert list(exported.runners) == ["prefill", "decode"]
    runners = [list(exported.runners.values())]
    if name in AGAIN:
        again = [stays_the_same(load_program(folder, component), tmp_path) for component in exported.runners]
        runners += zip(*again, strict=True)
    golden = json.loads((ROOT / f"tests/golden/logits/generation_{name}.json").read_text())
    for prefill, decode in runners:
        for run in golden["runs"]:
            cache, output_class = {}, type(reference.build(case)(input_ids=torch.tensor([[5]])))
            for step in run["steps"]:
                result = (decode if cache else prefill)(**reference.as_tensors(step["inputs"]), **cache)
                cache = {"past_key_values": result.past_key_values}
                assert type(result) is output_class
                assert type(result.past_key_values) is transformers.DynamicCache
                check_logits(result.logits, step, case)


def test_calls_of_other_shapes_are_refused(export):
    case = CASES["llama_default"]
    folder = export_pt2(export, case.config, "--task", "forward", "--graph-inputs=attention_mask")
    module = load_program(folder, "model").module()
    ids = torch.zeros(2, 7, dtype=torch.int64)
    for mask in (ids[:, :5], ids[:1]):
        with pytest.raises(AssertionError, match="Guard failed"):
            module(input_ids=ids, attention_mask=mask)


def test_static_sizes_are_fixed(export, no_grad):
    case = CASES["llama_default"]
    folder = export_pt2(export, case.config, "--task", "forward", "--static=batch=1,sequence=7")
    program = load_program(folder, "model")
    assert not program.range_constraints
    inputs = reference.as_tensors(reference_cases.plain(7))
    inputs = {name: value[:1] for name, value in inputs.items()}
    actual, expected = program.module()(**inputs), reference.build(case)(**inputs)
    assert_close(actual.logits, expected.logits, case.config, 7)
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(**{name: value[:, :5] for name, value in inputs.items()})


def test_ranges_are_constraints(export):
    folder = export_pt2(export, CASES["llama_default"].config, "--task", "forward", "--dim=sequence=4:16")
    program = load_program(folder, "model")
    assert sorted((r.lower, r.upper) for r in program.range_constraints.values())[1] == (4, 16)
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(**reference.as_tensors(reference_cases.plain(17)))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_half_floats_stay_what_they_are(dtype, export, no_grad):
    case = CASES["qwen3_default"]
    folder = export_pt2(export, case.config, "--task", "forward", f"--dtype={dtype}", exact_forward_inputs(case.runs[0]))
    exported = ExportedModel.from_pretrained(folder)
    assert exported.dtype == {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    for value in exported.program.state_dict.values():
        assert value.dtype == exported.dtype
    inputs = reference.as_tensors(case.runs[0].inputs)
    actual, expected = exported(**inputs).logits, reference.build(case)(**inputs).logits
    assert actual.dtype == exported.dtype
    worst = (actual.float() - expected).abs().max() / expected.abs().max()
    assert worst <= 8 * torch.finfo(exported.dtype).eps, worst  # weights and activations are rounded: 2 layers


def test_weights_have_the_checkpoints_names_and_tied_ones_are_one(export):
    case = reference_cases.generation_cases()["llama_tied_biases"]
    folder = export_pt2(export, case.config, "--task", "generation")
    expected = {name for name, _ in reference.build(case).named_parameters()}
    for component in ("prefill", "decode"):
        assert set(load_program(folder, component).state_dict) == expected
        with zipfile.ZipFile(folder / f"{component}.pt2") as archive:
            assert archive.testzip() is None
            weights = [record for record in archive.infolist() if "/data/weights/weight_" in record.filename]
            assert len(weights) == len(expected)
            for record in weights:
                assert record.compress_type == zipfile.ZIP_STORED


def test_sample_inputs_are_a_call(export, no_grad):
    folder = export_pt2(export, CASES["llama_default"].config, "--task", "generation")
    for component in ("prefill", "decode"):
        program = load_program(folder, component)
        arguments, keywords = program.example_inputs
        assert arguments == ()
        result = program.module()(**keywords)
        assert torch.isfinite(result.logits).all()
    assert type(keywords["past_key_values"]) is transformers.DynamicCache
    assert keywords["past_key_values"].layers[0].keys.shape == (2, 2, 8, 8)


def test_names_are_those_of_transformers_own_export(export):
    case = CASES["llama_default"]
    folder = export_pt2(export, case.config, "--task", "forward", "--graph-inputs=attention_mask")
    ours = load_program(folder, "model")
    inputs = reference.as_tensors(reference_cases.plain(7))
    exporter = transformers.exporters.DynamoExporter()
    config = transformers.exporters.DynamoConfig(dynamic=True)
    theirs = exporter.export(reference.build(case), inputs, config=config).program
    assert ours.graph_signature.user_inputs == theirs.graph_signature.user_inputs
    assert set(ours.graph_signature.parameters) == set(theirs.graph_signature.parameters)
    assert ours.call_spec.in_spec == theirs.call_spec.in_spec
    assert ours.call_spec.out_spec == theirs.call_spec.out_spec


# One in CI, one of each family in `make full`: each takes a compiler half a minute and more.
SCANS = pytest.mark.xfail(
    torch.__version__ < "2.13", strict=True, reason="2.12 compiles no scan that stacks, of PyTorch's own neither"
)
COMPILED = ["llama_default", "mistral_default", "qwen2_default", "qwen3_default", "bert_model", "t5_default"]
COMPILED += ["whisper_default", "qwen3_moe_default", pytest.param("mamba_default", marks=SCANS), "vit_default"]


@pytest.mark.parametrize("name", COMPILED if "TRANSHIP_FULL" in os.environ else COMPILED[:1])
def test_aotinductor_compiles_it(name, export, no_grad, tmp_path):
    case = ALL_CASES[name]
    compiled = {}
    for run in case.runs:
        names = exact_forward_inputs(run)
        if names not in compiled:
            program = load_program(export_pt2(export, case.config, "--task", "forward", names), "model")
            path = str(tmp_path / f"{len(compiled)}.pt2")
            torch._inductor.aoti_compile_and_package(program, package_path=path)
            compiled[names] = torch._inductor.aoti_load_package(path)
        inputs = reference.as_tensors(run.inputs)
        actual, expected = compiled[names](**inputs), reference.build(case)(**inputs, **getattr(case, "call", {}))
        for output in reference.OUTPUTS:
            if expected.get(output) is not None:
                assert_close(actual[output], expected[output], case.config, longest_axis(inputs))

"""The files are good ONNX: the checker takes them, ONNX Runtime has no complaint, and the graphs are small."""

import os

import onnx
import onnxruntime
import pytest
from transformers.exporters import OnnxConfig, OnnxExporter

import reference
import reference_cases
from conftest import CASES, exact_forward_inputs

FORWARD = [
    "llama_default",
    "llama_model",
    "llama_sequence_classification",
    "llama_both_biases",
    "llama_dynamic",
    "llama_longrope",
    "mistral_sliding_window",
    "qwen2_layer_types",
    "qwen3_default",
    "bert_model",
    "bert_masked_lm",
    "bert_sequence_classification",
    "bert_token_classification",
    "bert_question_answering",
]


def graphs(export, name, *options):
    """Paths of the .onnx files of a case: model.onnx, or prefill.onnx and decode.onnx."""
    if name.startswith("generation_"):
        config = reference_cases.generation_cases()[name.removeprefix("generation_")].config
        folder = export(config, "--task", "generation", *options)
    else:
        inputs = exact_forward_inputs(CASES[name].runs[0])
        folder = export(CASES[name].config, "--task", "forward", inputs, *options)
    found = sorted(folder.glob("*.onnx"))
    assert found
    return found


EVERY = [*FORWARD, *(f"generation_{name}" for name in ("llama_default", "llama_dynamic", "mistral_sliding_window"))]


STATIC = ("--cache-implementation=static", "--max-cache-len=48", "--multi-token-decode")


@pytest.mark.parametrize("opset", [20, 23, 24])
@pytest.mark.parametrize("name", EVERY)
def test_the_checker_takes_it(name, opset, export, tmp_path):
    check(graphs(export, name, f"--opset={opset}"), tmp_path)


@pytest.mark.parametrize("opset", [20, 23, 24])
@pytest.mark.parametrize("name", ["generation_llama_default", "generation_mistral_sliding_window"])
def test_the_checker_takes_caches_of_slots(name, opset, export, tmp_path):
    check(graphs(export, name, f"--opset={opset}", *STATIC), tmp_path)


def check(paths, tmp_path):
    for path in paths:
        onnx.checker.check_model(str(path), full_check=True)
        inferred = tmp_path / path.name
        onnx.shape_inference.infer_shapes_path(str(path), str(inferred), check_type=True, strict_mode=True, data_prop=True)
        assert inferred.stat().st_size > 0


@pytest.mark.parametrize("name", EVERY)
def test_onnx_runtime_opens_it_without_a_word(name, export, capfd):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 2  # warnings
    for path in graphs(export, name):
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    assert capfd.readouterr() == ("", "")


def count_nodes(model):
    return len(model.graph.node) + sum(len(function.node) for function in model.functions)


# The reference exporter cannot trace dynamic rope: its length is read from the data.
@pytest.mark.parametrize("name", [name for name in FORWARD if name != "llama_dynamic"])
def test_the_graph_is_no_larger_than_the_reference_exporters(name, export, tmp_path):
    case = CASES[name]
    inputs = reference.as_tensors(case.runs[1].inputs)
    OnnxExporter().export(reference.build(case), inputs, OnnxConfig(dynamic=True)).save_pretrained(tmp_path)
    theirs = count_nodes(onnx.load(tmp_path / "model.onnx", load_external_data=False))
    (path,) = graphs(export, name)
    ours = count_nodes(onnx.load(path, load_external_data=False))
    print(f"{name}: {ours} nodes, the reference exporter has {theirs}")
    assert ours <= theirs


def external_locations(path):
    model = onnx.load(path, load_external_data=False)
    entries = (entry for tensor in model.graph.initializer for entry in tensor.external_data)
    return {entry.value for entry in entries if entry.key == "location"}


def test_prefill_and_decode_share_one_copy_of_the_weights(export):
    decode, prefill = graphs(export, "generation_llama_default")
    assert (decode.name, prefill.name) == ("decode.onnx", "prefill.onnx")
    assert external_locations(decode) == external_locations(prefill) == {"prefill.onnx.data"}
    folder = prefill.parent
    assert (folder / "decode.onnx.data").stat().st_size == 0
    data = folder / "prefill.onnx.data"
    assert not data.is_symlink() and data.stat().st_nlink == 1
    model = reference.build(reference_cases.generation_cases()["llama_default"])
    assert data.stat().st_size <= sum(parameter.nbytes for parameter in model.parameters()) * 1.1 + 4096


def test_inline_weights_need_no_data_file(export, tmp_path):
    case = CASES["llama_default"]
    folder = export(case.config, "--task", "forward", "--no-external-data")
    assert external_locations(folder / "model.onnx") == set()
    moved = tmp_path / "alone.onnx"
    os.replace(folder / "model.onnx", moved)
    onnx.checker.check_model(str(moved), full_check=True)

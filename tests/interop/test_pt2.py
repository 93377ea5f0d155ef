"""What PyTorch and Transformers capture into a .pt2 goes through tranship to ONNX and to .pt2; Python loads that."""

import json

import numpy
import onnxruntime
import pytest
import torch
from torch.export.pt2_archive._package import load_pt2
from transformers.exporters import DynamoConfig, DynamoExporter, ExportedModel

import reference
from conftest import CASES, ROOT, assert_close, run_cli

CAPTURED = ["llama_default", "qwen3_default", "bert_model", "bert_sequence_classification", "t5_default"]


def capture(name, folder):
    """Captures a case's model with its largest inputs into a folder -> the case, the model and the inputs."""
    case = CASES[name]
    model = reference.build(case)
    inputs = max((reference.as_tensors(run.inputs) for run in case.runs), key=lambda i: sum(v.numel() for v in i.values()))
    DynamoExporter().export(model, dict(inputs), DynamoConfig(dynamic=True)).save_pretrained(folder)
    return case, model, inputs


@pytest.mark.parametrize("name", CAPTURED)
def test_a_captured_model_returns_what_the_model_returns(name, tmp_path, no_grad):
    case, model, inputs = capture(name, tmp_path / "captured")
    run_cli("export", tmp_path / "captured" / "model.pt2", "--to", "onnx", "-o", tmp_path / "onnx")
    exported = ExportedModel.from_pretrained(tmp_path / "onnx")
    actual, expected = exported(**inputs), model(**inputs)
    assert type(actual) is type(expected)
    for output in reference.OUTPUTS:
        if expected.get(output) is not None:
            assert_close(actual[output], expected[output], case.config, inputs["input_ids"].shape[1])


@pytest.mark.parametrize("name", CAPTURED)
def test_verify_runs_a_capture_beside_its_exports_and_its_checkpoint(name, tmp_path, no_grad):
    _, model, _ = capture(name, tmp_path / "captured")
    model.save_pretrained(tmp_path / "checkpoint")
    run_cli("export", tmp_path / "captured" / "model.pt2", "--to", "onnx", "-o", tmp_path / "onnx")
    run_cli("verify", tmp_path / "captured", "--against", tmp_path / "checkpoint")
    run_cli("verify", tmp_path / "onnx", "--against", tmp_path / "captured" / "model.pt2")
    run_cli("verify", tmp_path / "onnx", "--against", tmp_path / "captured")
    with (tmp_path / "checkpoint" / "model.safetensors").open("r+b") as weights:
        weights.seek(-64, 2)
        weights.write(b"\x3f" * 64)
    with pytest.raises(AssertionError, match="wrong, see above"):
        run_cli("verify", tmp_path / "captured", "--against", tmp_path / "checkpoint")


def test_the_five_lines_of_the_guide(tmp_path, no_grad):
    """docs/pt2.md, with a model that is there."""
    model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    inputs = {"src": torch.randn(2, 5, 8)}
    axes = {name: {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO} for name in inputs}
    torch.export.save(torch.export.export(model, (), inputs, dynamic_shapes=axes), tmp_path / "model.pt2")
    run_cli("export", tmp_path / "model.pt2", "--to", "onnx", "-o", tmp_path / "onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / "model.onnx"), providers=["CPUExecutionProvider"])
    for size in ((2, 5, 8), (3, 9, 8)):
        x = torch.randn(size)
        actual = session.run(None, {"src": x.numpy()})[0]
        assert numpy.abs(actual - model(x).numpy()).max() < 1e-5


FIXTURES = sorted((ROOT / "tests/cases/pt2").glob("*.pt2"))
NOT_AGAIN = {"writes": "buffers", "writes_functional": "buffers"}


def load(path):
    return load_pt2(path).exported_programs["model"].module()


def tensor_of(golden):
    values = [float(v.replace("Infinity", "inf")) if isinstance(v, str) else v for v in golden["values"]]
    return torch.tensor(values).to(getattr(torch, golden["dtype"])).reshape(golden["shape"])


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_what_pytorch_captured_is_written_again_for_pytorch(path, tmp_path, no_grad):
    if path.stem in NOT_AGAIN:
        with pytest.raises(AssertionError, match=NOT_AGAIN[path.stem]):
            run_cli("export", path, "--to", "dynamo", "-o", tmp_path)
        return
    run_cli("export", path, "--to", "dynamo", "-o", tmp_path)
    before, after = load(path), load(tmp_path / "model.pt2")
    for call in json.loads(path.with_suffix(".json").read_text())["calls"]:
        inputs = [tensor_of(golden) for golden in call["inputs"].values()]
        if path.stem == "tree":  # its inputs are nested
            a, b, c, d = inputs
            arguments, keywords = (a, (b, c), {"k": d}, 2), {"nothing": None, "flag": True}
        else:
            arguments, keywords = inputs, {}
        expected, actual = before(*arguments, **keywords), after(*arguments, **keywords)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6, equal_nan=True)

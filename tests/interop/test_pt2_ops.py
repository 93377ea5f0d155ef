"""Every operator, as tranship writes it for PyTorch, computes what PyTorch computes for it (tests/golden/ops.json)."""

import json
import os
import subprocess

import pytest
import torch
from torch.export.pt2_archive._package import load_pt2

from conftest import ROOT

OPS = ROOT / "tests/golden/ops.json"
CASES = {case["name"]: case for case in json.loads(OPS.read_text())["cases"]}
DTYPES = {"f32": torch.float32, "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool}
# Kinds whose graphs PyTorch traces again: sub-graphs, and sizes that data decide. Other decompositions are PyTorch's own.
DECOMPOSED = ("if", "loop", "scan", "moe", "non_zero", "item", "scatter", "pad", "top_k")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of the archives, and what cannot be said in ATen, with the reason."""
    folder = tmp_path_factory.mktemp("ops")
    done = subprocess.run(
        [os.environ["TRANSHIP_OPS_TO_PT2"], OPS, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def tensor(stored):
    values = [float(v) if isinstance(v, str) else v for v in stored["values"]]
    return torch.tensor(values, dtype=DTYPES[stored["dtype"]]).reshape(stored["shape"])


def check(module, case):
    found = module(**{name: tensor(value) for name, value in case["inputs"].items()})
    assert list(found) == list(case["outputs"])
    for name, stored in case["outputs"].items():
        expected = tensor(stored)
        assert found[name].dtype == expected.dtype
        torch.testing.assert_close(found[name], expected, rtol=4e-6, atol=4e-6, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_pytorch_computes(name, written):
    folder, unsupported = written
    if name in unsupported:
        pytest.skip(unsupported[name])
    program = load_pt2(folder / f"{name}.pt2").exported_programs["model"]
    check(program.module(), CASES[name])
    if any(word in name for word in DECOMPOSED):
        check(program.run_decompositions({}).module(), CASES[name])


def test_all_can_be_said(written):
    assert written[1] == {}

"""What all interop tests share: the command line, tiny cases, and the tolerance."""

import json
import logging
import math
import os
import pathlib
import subprocess
import sys

import pytest
import torch
import transformers

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import reference  # noqa: E402
import reference_cases  # noqa: E402

CASES = {**reference_cases.causal_cases(), **reference_cases.bert_cases(), **reference_cases.t5_cases()}
CASES.update(reference_cases.whisper_cases())

torch.set_num_threads(os.cpu_count())
transformers.logging.set_verbosity_error()
# PyTorch's own warning about pickles of classes has a broken format, which pytest makes an error.
logging.getLogger("torch._export.serde.serialize").setLevel(logging.ERROR)


def run_cli(*arguments):
    """Runs tranship; its error is the test's."""
    command = [os.environ["TRANSHIP_CLI"], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return done.stdout


def tolerance(config, length, expected):
    """4 eps sqrt(K) max|expected|, K the longest sum (DESIGN.md)."""
    widths = ("hidden_size", "intermediate_size", "d_model", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim")
    longest = max(*(config[width] for width in widths if width in config), length)
    return 4 * torch.finfo(torch.float32).eps * math.sqrt(longest) * expected.abs().max().item()


def assert_close(actual, expected, config, length):
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    worst = (actual - expected).abs().max().item()
    assert worst <= tolerance(config, length, expected), f"differs by {worst}"


def check_logits(found, step, case):
    """A step of a golden case, whose logits may be kept at some positions only."""
    expected = step["outputs"]["logits"]
    kept = expected.get("positions", list(range(expected["shape"][1])))
    values = torch.tensor(expected["values"]).reshape(expected["shape"][0], len(kept), -1)
    assert list(found.shape) == expected["shape"]
    assert_close(found[:, kept], values, case.config, len(step["inputs"]["attention_mask"][0]))


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


@pytest.fixture(scope="session")
def export(tmp_path_factory):
    """export(config, *options, to=format): the folder that tranship wrote for a made-up checkpoint of that config."""
    made = {}

    def make(config, *options, to="onnx"):
        key = json.dumps([config, to, options], sort_keys=True)
        if key not in made:
            folder = tmp_path_factory.mktemp("export")
            (folder / "config.json").write_text(json.dumps(config))
            run_cli("export", folder / "config.json", "--synthetic", "--to", to, "-o", folder / "out", *options)
            made[key] = folder / "out"
        return made[key]

    return make


def exact_forward_inputs(run):
    """--graph-inputs for what a run passes, so that nothing of it is dropped."""
    return "--graph-inputs=" + ",".join(run.inputs)

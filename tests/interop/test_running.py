"""docs/running/generate.py, as a person runs it: ONNX Runtime alone gives Transformers' tokens."""

import subprocess
import sys

import pytest
import torch

import reference
import reference_cases
from conftest import ROOT

PROMPT = [5, 17, 33, 8, 61]
NUM_TOKENS = 24
GENERATION = reference_cases.generation_cases()


@pytest.mark.parametrize("options", [(), ("--ort-fusions=cpu", "--static=batch=1")])
@pytest.mark.parametrize("name", ["llama_default", "mistral_sliding_window", "qwen3_default"])
def test_the_loop_in_python_gives_the_tokens_of_transformers(name, options, export, no_grad):
    case = GENERATION[name]
    folder = export(
        case.config, "--cache-implementation=static", "--max-cache-len=48", "--multi-token-decode", *options
    )
    program = [sys.executable, ROOT / "docs/running/generate.py", folder, NUM_TOKENS, *PROMPT]
    done = subprocess.run([str(word) for word in program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    model = reference.build(case)
    expected = model.generate(
        torch.tensor([PROMPT]), max_new_tokens=NUM_TOKENS, do_sample=False, eos_token_id=None
    )
    assert [int(word) for word in done.stdout.split()] == expected[0, len(PROMPT) :].tolist()

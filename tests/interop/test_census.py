"""A sample of the census: tiny models of Transformers, captured by it, go through tranship to ONNX and to .pt2."""

import os
import subprocess
import sys

from conftest import ROOT


def test_a_sample_of_transformers_models_goes_both_ways(tmp_path):
    """docs/coverage.md has all of them."""
    command = [sys.executable, ROOT / "tools/census.py", "run", "--classes", ROOT / "tests/census/sample.txt"]
    command += ["--strict", "--work", tmp_path, "--jobs", str(os.cpu_count())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout

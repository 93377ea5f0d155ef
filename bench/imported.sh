#!/usr/bin/env bash
# Whether what PyTorch captured runs as fast as what the definitions make: medians of interleaved runs in ONNX Runtime, of
# Llama, Qwen3, BERT, T5, ViT and Qwen3-MoE with 4 layers of 512.
#
# usage: bench/imported.sh [RUNS]
# TRANSHIP_PYTHON: a Python with Transformers (tools/setup.sh venv). Prints definition's over import's time: the higher
# the better; the project's own limit is 0.95.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export TRANSHIP_CLI=${TRANSHIP_CLI:-$root/build/release/tranship}
exec "${TRANSHIP_PYTHON:?a Python with Transformers}" "$root/tools/time_imported.py" "${1:-15}"

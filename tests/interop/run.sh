#!/usr/bin/env bash
# Runs one file of Python tests, for ctest. `make interop` sets the environment.
set -euo pipefail
: "${TRANSHIP_PYTHON:?run this as make interop}" "${TRANSHIP_CLI:?}"
cd "$(dirname "${BASH_SOURCE[0]}")"
export PYTHONDONTWRITEBYTECODE=1
exec "$TRANSHIP_PYTHON" -m pytest -q -p no:cacheprovider --durations=5 "$1"

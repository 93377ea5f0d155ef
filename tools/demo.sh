#!/usr/bin/env bash
# `make demo`: a real checkpoint to ONNX, and a question to it. Environment: as `make demo` sets it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tranship=build/release/tranship
artifact=build/demo/smollm2
: "${TRANSHIP_SMOLLM2:?no SmolLM2: run this as make demo}"

show() { printf '\n$ %s\n' "$*"; "$@"; }

started=$(date +%s.%N)
show "$tranship" export "$TRANSHIP_SMOLLM2" --to onnx -o "$artifact"
printf 'Exported in %.1f s:\n' "$(awk "BEGIN { print $(date +%s.%N) - $started }")"
(cd "$artifact" && find . -maxdepth 1 -type f -size +0 -printf '%s %f\n' | sort -k 2 | numfmt --to=iec --padding=8)
show "$tranship" generate "$artifact" --chat --prompt "What is the capital of France?" --stats

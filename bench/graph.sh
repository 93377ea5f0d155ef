#!/usr/bin/env bash
# What it costs to build and print a model's graphs from its configuration alone: whole processes, median of 5.
# The limits are the project's own: 50 ms for Qwen3-0.6B, a second for Llama 405B.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cli=${TRANSHIP_CLI:-$here/../build/release/tranship}
for config in "$here"/configs/*.json; do
  for ((i = 0; i < 5; ++i)); do
    start=$(date +%s%N)
    "$cli" inspect "$config" --graph >/dev/null
    echo $((($(date +%s%N) - start) / 1000))
  done | sort -n | awk -v name="$(basename "$config" .json)" 'NR == 3 { printf "  %-16s %6.1f ms\n", name, $1 / 1000 }'
done

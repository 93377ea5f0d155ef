#!/usr/bin/env bash
# What an export costs, beside `cp` of what it wrote: medians of interleaved runs, on this machine, now.
#
# usage: bench/export.sh CHECKPOINT [RUNS]          (make bench makes the checkpoint and calls this)
# prints: seconds of both, their ratio, peak anonymous memory, and seconds of --weights reference.
set -euo pipefail
checkpoint=$1
runs=${2:-5}
cli=${TRANSHIP_CLI:-$(cd "$(dirname "$0")/.." && pwd)/build/release/tranship}
work=$(mktemp -d "${TMPDIR:-/tmp}/tranship-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT

seconds() { # command... -> wall seconds
  local start end
  start=$(date +%s%N)
  "$@" >/dev/null
  end=$(date +%s%N)
  awk -v a="$start" -v b="$end" 'BEGIN { printf "%.3f\n", (b - a) / 1e9 }'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

cat "$checkpoint"/*.safetensors >/dev/null # both sides read a warm file
"$cli" export "$checkpoint" --to onnx -o "$work/artifact" --quiet >/dev/null
for ((i = 0; i < runs; ++i)); do
  rm -rf "$work/out"
  sync
  seconds "$cli" export "$checkpoint" --to onnx -o "$work/out" --quiet >>"$work/export"
  rm -rf "$work/out"
  sync
  seconds cp -r --reflink=never --sparse=never "$work/artifact" "$work/out" >>"$work/cp"
done
rm -rf "$work/out"

# Peak of the process's anonymous memory, sampled from the kernel's own account.
"$cli" export "$checkpoint" --to onnx -o "$work/out" --quiet >/dev/null &
pid=$!
peak=0
while kill -0 $pid 2>/dev/null; do
  now=$(awk '/^RssAnon/ { print $2 }' /proc/$pid/status 2>/dev/null || true)
  [ "${now:-0}" -gt "$peak" ] && peak=$now
  sleep 0.005
done
wait $pid

export_s=$(median <"$work/export")
cp_s=$(median <"$work/cp")
mkdir "$work/beside"
cp "$checkpoint"/config.json "$checkpoint"/*.safetensors "$work/beside"
for ((i = 0; i < runs; ++i)); do
  seconds "$cli" export "$work/beside" --to onnx -o "$work/beside" --weights reference --quiet >>"$work/reference"
done
reference_bytes=$(cat "$work/beside"/*.onnx "$work/beside"/*.onnx.data "$work/beside"/export.json | wc -c)
awk -v e="$export_s" -v c="$cp_s" -v p="$peak" -v r="$(median <"$work/reference")" -v b="$reference_bytes" -v n="$runs" 'BEGIN {
  printf "medians of %d interleaved runs\n", n
  printf "  export                %7.3f s\n  cp of what it wrote   %7.3f s\n  ratio                 %7.2f\n", e, c, e / c
  printf "  peak anonymous memory %7.1f MB\n", p / 1024
  printf "  --weights reference   %7.3f s, %.2f MB written\n", r, b / 1e6
}'

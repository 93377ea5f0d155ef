#!/usr/bin/env bash
# What an export costs, beside `cp` of what it wrote and beside other exporters: medians of interleaved runs, on this
# machine, now.
#
# usage: bench/export.sh CHECKPOINT [RUNS [PEER_RUNS]]     (make bench and make peers make the checkpoint and call this)
# TRANSHIP_PEERS: a virtual environment with other exporters (tools/setup.sh peers); without it they are left out.
# prints: seconds of each, as a multiple of cp's too, peak anonymous memory, and seconds of --weights reference.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
checkpoint=$1
runs=${2:-5}
peer_runs=${3:-1}
peers=()
[ -z "${TRANSHIP_PEERS:-}" ] || peers=(mobius genai transformers)

. "$root/bench/measure.sh"

tranship() { "$cli" export "$checkpoint" --to onnx -o "$work/out" --quiet; }
peer() { "$TRANSHIP_PEERS/bin/python" "$root/tools/export_with_peer.py" "$1" "$checkpoint" "$work/out"; }

# run_peer NAME: one run of another exporter: its seconds and its memory.
run_peer() {
  local start=$EPOCHREALTIME
  fresh
  peak 0.1 peer "$1" >>"$work/$1.memory" || { echo "$1 failed" >&2; return; }
  awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }' >>"$work/$1.seconds"
}

cat "$checkpoint"/*.safetensors >/dev/null # all sides read a warm file
fresh
tranship >/dev/null
mv "$work/out" "$work/artifact"
for ((i = 0; i < runs; ++i)); do
  fresh
  seconds tranship >>"$work/tranship.seconds"
  fresh
  seconds copy_of "$work/artifact" >>"$work/cp.seconds"
  for name in "${peers[@]}"; do
    [ "$i" -ge "$peer_runs" ] || run_peer "$name"
  done
done
fresh
peak 0.005 tranship >"$work/tranship.memory"
fresh

mkdir "$work/beside"
cp "$checkpoint"/config.json "$checkpoint"/*.safetensors "$work/beside"
for ((i = 0; i < runs; ++i)); do
  seconds "$cli" export "$work/beside" --to onnx -o "$work/beside" --weights reference --quiet >>"$work/reference.seconds"
done
reference_bytes=$(cat "$work/beside"/*.onnx "$work/beside"/*.onnx.data "$work/beside"/export.json | wc -c)

cp_seconds=$(median <"$work/cp.seconds")
line() { # LABEL NAME
  awk -v label="$1" -v s="$(median <"$work/$2.seconds")" -v cp="$cp_seconds" -v kb="$(median <"$work/$2.memory")" \
    'BEGIN { printf "  %-24s %8.3f s %8.2f x cp   peak anonymous memory %8.1f MB\n", label, s, s / cp, kb / 1024 }'
}
echo "medians of $runs interleaved runs$([ ${#peers[@]} -eq 0 ] || echo ", of the other exporters $peer_runs")"
printf '  %-24s %8.3f s\n' 'cp of what it wrote' "$cp_seconds"
line 'tranship export' tranship
awk -v s="$(median <"$work/reference.seconds")" -v b="$reference_bytes" \
  'BEGIN { printf "  %-24s %8.3f s, %.2f MB written\n", "  --weights reference", s, b / 1e6 }'
for name in "${peers[@]}"; do
  [ ! -s "$work/$name.seconds" ] || line "$name" "$name"
done

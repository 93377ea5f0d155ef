#!/usr/bin/env bash
# What the decode loop costs beside the runtime, and what a step costs in a small and a large cache: medians of interleaved
# runs, on this machine, now.
#
# usage: bench/generation.sh CHECKPOINT [RUNS [TOKENS]]      (a folder or a .gguf; make bench makes one, and bench_steps)
# prints: tokens a second of prompt and text and the loop's share of the time, of each form of cache; then, for the fused
# forms, milliseconds of a step with 256 and with 8192 slots, after as many tokens.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
checkpoint=$1
runs=${2:-7}
tokens=${3:-32}
steps=${TRANSHIP_BENCH_STEPS:-$root/build/release/bench_steps}

. "$root/bench/measure.sh"

slots="--cache-implementation static --max-cache-len 512"
# name: options of the export
forms=(
  "grows:"
  "grows_fused:--ort-fusions cpu"
  "slots:$slots"
  "slots_fused:$slots --ort-fusions cpu"
  "slots_fused_alone:$slots --ort-fusions cpu --multi-token-decode --static batch=1"
)
for form in "${forms[@]}"; do
  name=${form%%:*}
  # shellcheck disable=SC2086
  "$cli" export "$checkpoint" --to onnx -o "$work/$name" --quiet ${form#*:} >/dev/null
done

for ((i = 0; i < runs; ++i)); do
  for form in "${forms[@]}"; do
    name=${form%%:*}
    "$steps" "$work/$name" loop 100 "$tokens" >>"$work/$name.loop"
  done
  for name in grows_fused slots_fused; do
    for capacity in 256 8192; do
      "$steps" "$work/$name" step 128 "$tokens" "$capacity" >>"$work/$name.$capacity"
    done
  done
done

column() { awk -v i="$2" '{ print $i }' "$1" | median; }
printf '  %-18s %8s %8s %8s\n' cache "prompt/s" "text/s" "loop"
for form in "${forms[@]}"; do
  name=${form%%:*}
  printf '  %-18s %8.1f %8.1f %7.2f%%\n' "$name" "$(column "$work/$name.loop" 1)" "$(column "$work/$name.loop" 2)" \
    "$(column "$work/$name.loop" 3)"
done
for name in grows_fused slots_fused; do
  awk -v name="$name" -v a="$(column "$work/$name.256" 1)" -v b="$(column "$work/$name.8192" 1)" \
    'BEGIN { printf "  %s: a step takes %.2f ms with 256 slots, %.2f ms with 8192 (x %.3f)\n", name, a, b, b / a }'
done

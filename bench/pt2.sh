#!/usr/bin/env bash
# What PyTorch's archives cost: writing one beside `cp` of the same bytes, medians of interleaved runs, and the memory
# that writing it takes, and reading it again.
#
# usage: bench/pt2.sh CHECKPOINT [RUNS]        (make bench makes the checkpoint and calls this)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
checkpoint=$1
runs=${2:-5}
. "$root/bench/measure.sh"

write() { "$cli" export "$checkpoint" --to dynamo --task forward -o "$work/out" --quiet; }
read_it() { "$cli" export "$work/artifact/model.pt2" --to onnx -o "$work/out" --quiet; }

cat "$checkpoint"/*.safetensors >/dev/null # both sides read a warm file
fresh
write
mv "$work/out" "$work/artifact"
for ((i = 0; i < runs; ++i)); do
  fresh
  seconds write >>"$work/write.seconds"
  fresh
  seconds copy_of "$work/artifact" >>"$work/cp.seconds"
done
fresh
written=$(peak 0.005 write)
fresh
read=$(peak 0.005 read_it)

bytes=$(stat -c %s "$work/artifact/model.pt2")
awk -v n="$runs" -v b="$bytes" 'BEGIN { printf "model.pt2, %.2f GB, dtypes as in the checkpoint; medians of %d interleaved runs\n", b / 1e9, n }'
awk -v s="$(median <"$work/cp.seconds")" 'BEGIN { printf "  %-24s %8.3f s\n", "cp of it", s }'
awk -v s="$(median <"$work/write.seconds")" -v cp="$(median <"$work/cp.seconds")" -v kb="$written" \
  'BEGIN { printf "  %-24s %8.3f s %8.2f x cp   peak anonymous memory %8.1f MB\n", "writing it", s, s / cp, kb / 1024 }'
awk -v kb="$read" 'BEGIN { printf "  %-24s %25s   peak anonymous memory %8.1f MB\n", "reading it, to onnx", "", kb / 1024 }'

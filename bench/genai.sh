#!/usr/bin/env bash
# How fast graphs generate beside those of onnxruntime-genai's own builder, in one loop (genai's), and how fast our loop
# is beside genai's on one graph: medians of interleaved runs, on this machine, now. f32, two threads.
#
# usage: bench/genai.sh CHECKPOINT [RUNS [LENGTHS]]      (make peers makes the checkpoint and bench_steps, and calls this)
# TRANSHIP_PEERS: the virtual environment of tools/setup.sh peers. Needs 13 GB of disk, 12 GB of memory.
# prints: seconds to load, tokens per second of reading a prompt of each length and of what follows, memory; of ours as a
# multiple of the builder's.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
checkpoint=$1
runs=${2:-7}
lengths=${3:-512 1536}
python=${TRANSHIP_PEERS:?the environment of tools/setup.sh peers}/bin/python
steps=${TRANSHIP_BENCH_STEPS:-$root/build/release/bench_steps}
. "$root/bench/measure.sh"

# Both sides' weights in large pages. In small ones a step reads 18 to 35 GB/s, by where in memory a process came to lie.
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}

# A copy of the checkpoint, in links, with a tokenizer: genai's builder and our loop want one.
mkdir "$work/checkpoint"
ln -s "$(realpath "$checkpoint")"/* "$root"/tests/cases/tokenizer/bytelevel/tokenizer*.json "$work/checkpoint"

export_ours() { # NAME OPTION...
  local name=$1
  shift
  "$cli" export "$work/checkpoint" --to onnx -o "$work/$name" --components decode --also genai --static batch=1 --quiet "$@" >/dev/null
}
export_theirs() { # NAME PEER
  "$python" "$root/tools/export_with_peer.py" "$2" "$checkpoint" "$work/$1" >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; return 1; }
}

export_ours plain
export_ours fused --ort-fusions cpu
export_ours fused-last --ort-fusions cpu --last-token-logits
export_theirs builder genai
export_theirs builder-last genai-last
for name in plain fused builder fused-last builder-last; do # the same settings for all
  sed -i 's/"session_options": {/"session_options": {"intra_op_num_threads": 2,/' "$work/$name/genai_config.json"
done

race() { "$python" "$root/tools/race_genai.py" "$@"; }
echo "logits of all tokens"
race "$runs" "$lengths" "$work/fused" "$work/builder"
echo "logits of the last token"
race "$runs" "$lengths" "$work/fused-last" "$work/builder-last"
echo "what fusing gains"
race "$runs" "$lengths" "$work/fused" "$work/plain"

new_tokens=33
for ((i = 0; i < runs; ++i)); do
  for length in $lengths; do
    "$steps" "$work/fused" loop "$length" "$new_tokens" >>"$work/ours.$length"
    race --alone "$work/fused" "$length" "$new_tokens" >>"$work/theirs.$length"
  done
done
column() { awk -v i="$2" '{ print $i }' "$1" | median; }
echo "our loop beside genai's, on the fused graph: tokens per second after the prompt, ratio, our loop's share of the time"
for length in $lengths; do
  awk -v length_="$length" -v ours="$(column "$work/ours.$length" 2)" -v theirs="$(column "$work/theirs.$length" 1)" \
    -v share="$(column "$work/ours.$length" 3)" \
    'BEGIN { printf "  decode %-7d %9.2f %9.2f %7.3f %6.2f%%\n", length_, ours, theirs, ours / theirs, share }'
done

#!/usr/bin/env bash
# How fast graphs generate beside those of onnxruntime-genai's own builder, in one loop (genai's), and how fast our loop
# is beside genai's on one graph: medians of interleaved runs, on this machine, now. f32, two threads.
#
# usage: bench/genai.sh CHECKPOINT [RUNS [LENGTHS]]      (make peers makes the checkpoint and calls this)
# TRANSHIP_PEERS: the virtual environment of tools/setup.sh peers. Needs 13 GB of disk.
# prints: seconds to load, tokens per second of reading a prompt of each length and of what follows, memory; of ours as a
# multiple of the builder's.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
checkpoint=$1
runs=${2:-7}
lengths=${3:-512 1536}
new_tokens=16
python=${TRANSHIP_PEERS:?the environment of tools/setup.sh peers}/bin/python
. "$root/bench/measure.sh"

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
names="plain fused builder fused-last builder-last"
for name in $names; do # the same settings for all
  sed -i 's/"session_options": {/"session_options": {"intra_op_num_threads": 2,/' "$work/$name/genai_config.json"
done

time_genai() { "$python" "$root/tools/time_genai.py" "$@"; }
time_ours() { # DIR PROMPT_LENGTH: the same, by our loop; a letter is a token, and one begins the text
  head -c $(($2 - 1)) /dev/zero | tr '\0' 'a' >"$work/prompt"
  "$cli" generate "$1" --prompt-file "$work/prompt" --greedy --max-new-tokens "$new_tokens" --threads 2 --json --quiet
}
for ((i = 0; i < runs; ++i)); do
  for name in $names; do time_genai "$work/$name" "$new_tokens" $lengths >>"$work/$name.json"; done
  for length in $lengths; do
    time_ours "$work/fused" "$length" >>"$work/loop-$length.json"
  done
done
"$python" "$root/tools/compare_times.py" "$work" $lengths

#!/usr/bin/env bash
# Fuzzes the readers of files with libFuzzer and sanitizers, JOBS of them at a time (one a core).
#
#   fuzz.sh [SECONDS [READER...]]       so many seconds a reader: 30, and all readers, if not said
#   fuzz.sh --runs COUNT [READER...]    so many executions a reader, however long they take
#
# Prints the executions of each. What a reader fell over is kept in build/fuzz/findings/ (exit status 1): run
# build/fuzz/tests/fuzz/READER_fuzz FILE to see it again, and put it into the corpus when it is mended.
# Inputs come from tests/fuzz/corpus and from earlier runs: those that reach new code are kept in build/fuzz/corpus/.
# In CI the first inputs are the same each time (a seed): what fails there fails again.
# The compiler is the one that `tools/setup.sh fuzz` finds or installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "fuzz: $*" >&2; }

limit=-max_total_time=30
if [ "${1:-}" = --runs ]; then
  limit=-runs=${2:?a COUNT belongs to --runs}
  shift 2
elif [ $# -gt 0 ]; then
  limit=-max_total_time=$1
  shift
fi
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=($(cd tests/fuzz && ls -- *_fuzz.cpp | sed 's/_fuzz\.cpp$//'))
jobs=${JOBS:-$(nproc)}

build() {
  local clang log=build/fuzz/build.log
  clang=$(tools/setup.sh fuzz)
  mkdir -p build/fuzz
  { cmake --preset fuzz -DCMAKE_CXX_COMPILER="$clang" ${TRANSHIP_SDK:+-DTRANSHIP_SDK="$TRANSHIP_SDK"} &&
    cmake --build build/fuzz -j "$jobs" --target "${readers[@]/%/_fuzz}"; } >"$log" 2>&1 ||
    { grep -m 20 -E 'error|FAILED' "$log" >&2 || tail -n 20 "$log" >&2; say "the build failed: $log"; return 1; }
}

# The longest input that is made. Longer ones only cost time: every part of a format fits into this.
longest_bytes() {
  case $1 in
    generation_config | onnx_config) echo 512 ;;
    tokenizer) echo 2048 ;;
    export_json | gguf | ir) echo 2600 ;;
    pt2_program) echo 3072 ;;
    pt2) echo 5120 ;;
    *) echo 1024 ;;
  esac
}

# fuzz READER: one line with the executions, and the report of a finding.
fuzz() {
  local reader=$1 kept=build/fuzz/corpus/$1 new=$scratch/$1 log=$scratch/$1.log findings=build/fuzz/findings status=0
  local begun=$EPOCHSECONDS executions
  mkdir -p "$kept" "$new" "$findings"
  # Twice as fast: freed blocks are remembered for about as long as one execution takes, where blocks were allocated is
  # not, and how rare each edge is neither. The checks are the same.
  local asan=quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0:max_malloc_fill_size=128
  ASAN_OPTIONS=$asan:external_symbolizer_path=$(command -v addr2line) UBSAN_OPTIONS=print_stacktrace=1 \
    build/fuzz/tests/fuzz/"${reader}_fuzz" "$new" "$kept" tests/fuzz/corpus/"$reader" "$limit" \
    ${CI:+-seed=1} -entropic=0 -max_len="$(longest_bytes "$reader")" -timeout=10 -rss_limit_mb=2048 \
    -print_funcs=0 -print_final_stats=1 -artifact_prefix="$findings/$reader-" >"$log" 2>&1 || status=$?
  cp -r "$new/." "$kept"
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  printf '%-18s %12s executions in %5d s%s\n' "$reader" "$executions" $((EPOCHSECONDS - begun)) \
    "$([ $status -eq 0 ] || echo '  A FINDING')"
  [ $status -eq 0 ] && return
  grep -E -A 12 -m 1 '^fuzz: |ERROR: |runtime error' "$log" || tail -n 20 "$log"
  grep 'Test unit written' "$log" || true
  return 1
}

build
scratch=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) # where new inputs, thousands of them, cost no disk
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
failed=0
running=0
for reader in "${readers[@]}"; do
  [ $running -lt "$jobs" ] || { wait -n || failed=1; running=$((running - 1)); }
  fuzz "$reader" &
  running=$((running + 1))
done
for ((; running > 0; --running)); do wait -n || failed=1; done
exit $failed

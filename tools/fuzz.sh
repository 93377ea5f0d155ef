#!/usr/bin/env bash
# Fuzzes the readers of files with libFuzzer and sanitizers, each for some seconds from its corpus (tests/fuzz/corpus).
#
#   fuzz.sh [SECONDS [READER...]]   30 seconds a reader, and all readers, if not said
#
# Prints the executions of each. What a reader fell over is kept in build/fuzz/findings/ (exit status 1): run
# build/fuzz/tests/fuzz/READER_fuzz FILE to see it again, and put it into the corpus when it is mended.
# The compiler is the one that `tools/setup.sh fuzz` finds or installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-30}
shift || true
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=($(cd tests/fuzz && ls -- *_fuzz.cpp | sed 's/_fuzz\.cpp$//'))

say() { echo "fuzz: $*" >&2; }

build() {
  local clang log=build/fuzz/build.log
  clang=$(tools/setup.sh fuzz)
  mkdir -p build/fuzz
  { cmake --preset fuzz -DCMAKE_CXX_COMPILER="$clang" ${TRANSHIP_SDK:+-DTRANSHIP_SDK="$TRANSHIP_SDK"} &&
    cmake --build build/fuzz -j "${JOBS:-$(nproc)}" --target "${readers[@]/%/_fuzz}"; } >"$log" 2>&1 ||
    { grep -m 20 -E 'error|FAILED' "$log" >&2 || tail -n 20 "$log" >&2; say "the build failed: $log"; return 1; }
}

# fuzz READER: one line with the executions, and the report of a finding.
fuzz() {
  local reader=$1 corpus=$scratch/corpus/$1 log=$scratch/$1.log findings=build/fuzz/findings status=0
  mkdir -p "$corpus" "$findings"
  cp -L tests/fuzz/corpus/"$reader"/* "$corpus"
  UBSAN_OPTIONS=print_stacktrace=1 build/fuzz/tests/fuzz/"${reader}_fuzz" "$corpus" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -max_len=32768 -print_final_stats=1 -artifact_prefix="$findings/$reader-" \
    >"$log" 2>&1 || status=$?
  printf '%-18s %12s executions' "$reader" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  [ $status -eq 0 ] && { echo; return; }
  echo '  A FINDING'
  grep -E -A 12 -m 1 '^fuzz: |ERROR: |runtime error' "$log" || tail -n 20 "$log"
  grep 'Test unit written' "$log" || true
  return 1
}

build
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
for reader in "${readers[@]}"; do fuzz "$reader" || failed=1; done
exit $failed

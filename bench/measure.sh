# What the benchmarks measure with; to be sourced. Wants $root, the repository; sets $cli, the command line, and $work, a
# folder that goes when the script ends.

cli=${TRANSHIP_CLI:-$root/build/release/tranship}
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

# peak INTERVAL command...: its peak anonymous memory in kB, sampled from the kernel's own account. The command may be a
# function: what it runs is a child of a child.
peak() {
  local interval=$1 pid most=0 key value _ process
  shift
  "$@" >/dev/null 2>"$work/log" &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    for process in $pid $(cat /proc/$pid/task/$pid/children 2>/dev/null); do
      while read -r key value _; do
        [ "$key" = RssAnon: ] && [ "$value" -gt "$most" ] && most=$value
      done 2>/dev/null </proc/"$process"/status || true
    done
    sleep "$interval"
  done
  wait $pid || { tail -n 5 "$work/log" >&2; return 1; }
  echo "$most"
}

fresh() { # what the last one wrote is gone, and nothing waits to be written
  rm -rf "$work/out"
  sync
}

copy_of() { # FOLDER -> beside it, each byte written
  cp -r --reflink=never --sparse=never "$1" "$work/out"
}

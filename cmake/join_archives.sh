#!/bin/sh
# Runs an archiver's script (ar -M): join_archives.sh AR SCRIPT.
# The archiver's plugins complain about the bitcode in Rust's standard library; its own verdict is what counts.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$1" -M < "$2" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }

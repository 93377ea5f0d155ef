#!/usr/bin/env python3
"""The tables of bench/genai.sh: `compare_times.py FOLDER LENGTH...`, the folder that holds its runs as lines of JSON."""

import json
import pathlib
import statistics
import sys

PAIRS = [("fused", "builder", "logits of all tokens"), ("fused-last", "builder-last", "logits of the last token"),
         ("fused", "plain", "fused beside plain")]


def medians(path):
    """Of each figure over all runs."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def main(folder, *lengths):
    folder = pathlib.Path(folder)
    for ours, theirs, title in PAIRS:
        a, b = medians(folder / f"{ours}.json"), medians(folder / f"{theirs}.json")
        print(f"{title}: {ours}, {theirs}, ratio")
        for name in a:
            print(f"  {name:<14} {a[name]:9.2f} {b[name]:9.2f} {a[name] / b[name]:7.3f}")
    print("our loop beside genai's on the fused graph: tokens per second after the prompt, ratio")
    genai = medians(folder / "fused.json")
    for length in lengths:
        runs = [json.loads(line)["stats"] for line in (folder / f"loop-{length}.json").read_text().splitlines()]
        assert all(run["prompt_tokens"] == int(length) for run in runs), "the prompt has another length"
        speed = statistics.median(run["decode_tokens_per_second"] for run in runs)
        print(f"  decode {length:<7} {speed:9.2f} {genai[f'decode {length}']:9.2f} {speed / genai[f'decode {length}']:7.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])

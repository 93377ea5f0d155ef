#!/usr/bin/env python3
"""How fast onnxruntime-genai generates with a directory: `time_genai.py DIR NEW_TOKENS PROMPT_LENGTH...`.

Prints one JSON object: seconds to load, and for each length of the prompt the tokens per second of reading it and of
what follows (the median step); then the most memory that the process had, in MB.
Needs onnxruntime-genai (tools/setup.sh venv).
"""

import json
import pathlib
import random
import statistics
import sys
import time

import onnxruntime_genai


def time_prompt(model, length, num_tokens):
    """Tokens per second: of the prompt, and of each token after it."""
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(max_length=length + num_tokens, do_sample=False)
    generator = onnxruntime_genai.Generator(model, parameters)
    generator_of_ids = random.Random(length)
    ids = [generator_of_ids.randrange(5, 900) for _ in range(length)]
    begun = time.perf_counter()
    generator.append_tokens(ids)
    generator.generate_next_token()
    prompt = time.perf_counter() - begun
    steps = []
    for _ in range(num_tokens - 1):
        begun = time.perf_counter()
        generator.generate_next_token()
        steps.append(time.perf_counter() - begun)
    assert len(generator.get_sequence(0)) == length + num_tokens, "it ended early"
    return length / prompt, 1 / statistics.median(steps)


def most_memory():
    """In MB: what the kernel has counted."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main(folder, num_tokens, *lengths):
    begun = time.perf_counter()
    model = onnxruntime_genai.Model(folder)
    result = {"load": time.perf_counter() - begun}
    for length in lengths:
        prefill, decode = time_prompt(model, int(length), int(num_tokens))
        result[f"prefill {length}"] = prefill
        result[f"decode {length}"] = decode
    result["memory"] = most_memory()
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])

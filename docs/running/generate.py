"""Tokens from an export with a static cache, in ONNX Runtime alone: greedy, one sequence.

tranship export MODEL --to onnx -o DIR --cache-implementation static --max-cache-len 512 --multi-token-decode
usage: generate.py DIR NUM_TOKENS ID...      the prompt's ids; prints the new ones
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime as ort

folder, num_tokens = pathlib.Path(sys.argv[1]), int(sys.argv[2])
prompt = [int(word) for word in sys.argv[3:]]

manifest = json.loads((folder / "export.json").read_text())
assert manifest["export_format"] == "onnx", manifest["export_format"]
session = ort.InferenceSession(folder / manifest["components"]["decode"]["file"], providers=["CPUExecutionProvider"])

# Buffers of so many slots, each an input and an output in one place: decode writes into them.
num_slots = len(prompt) + num_tokens
dtypes = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}
binding = session.io_binding()
counters = {}
for port in session.get_inputs():
    if not port.name.startswith("input."):
        continue
    sizes = {"batch": 1, "cache_length": num_slots}
    shape = [sizes.get(axis, axis) for axis in port.shape]
    buffer = ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, dtypes[port.type]))
    binding.bind_ortvalue_input(port.name, buffer)
    if port.name.endswith(".cumulative_length"):  # how many slots are taken: ours to count
        counters[port.name] = buffer
    else:
        binding.bind_ortvalue_output("output." + port.name.removeprefix("input."), buffer)


def read(ids, taken):
    """Reads tokens after those that are there -> the logits of the last one."""
    places = np.arange(taken, taken + len(ids))
    binding.bind_cpu_input("input_ids", np.array([ids], np.int64))
    binding.bind_cpu_input("position_ids", places[None])
    seen = np.arange(num_slots)[None] <= places[:, None]  # its own slot and those before it
    binding.bind_cpu_input("attention_mask", seen[None, None])
    for counter in counters.values():
        counter.update_inplace(np.array(taken, np.int64))
    binding.bind_output("logits")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[-1][0, -1]


tokens, ids, taken = [], prompt, 0
while len(tokens) < num_tokens:
    logits = read(ids, taken)
    taken += len(ids)
    ids = [int(logits.argmax())]
    tokens += ids
print(*tokens)

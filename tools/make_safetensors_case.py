"""Writes tests/cases/safetensors/every_dtype.safetensors with the `safetensors` package (0.8) and PyTorch (2.13).

The file is an independent witness for the reader and the writer in src/checkpoint/: element i of each tensor is
i - 2 (unsigned dtypes: i, BOOL: whether i is odd), and the bytes are those that the package lays out.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file

SIGNED = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
SIGNED += [torch.int64, torch.int32, torch.int16, torch.int8]
UNSIGNED = [torch.uint64, torch.uint32, torch.uint16, torch.uint8]


def tensors():
    counting = torch.arange(6, dtype=torch.float32)
    made = {"signed." + str(t).removeprefix("torch."): (counting - 2).to(t).reshape(2, 3) for t in SIGNED}
    made |= {"unsigned." + str(t).removeprefix("torch."): counting.to(torch.int64).to(t).reshape(3, 2) for t in UNSIGNED}
    made["bool"] = (counting % 2 == 1).reshape(6)
    made["scalar"] = torch.tensor(2.5)
    made["empty"] = torch.zeros(0, 4, dtype=torch.float16)
    made['quoted "name" \u00e9'] = torch.tensor([7], dtype=torch.int8)
    return made


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1] / "tests/cases/safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors(), folder / "every_dtype.safetensors")


if __name__ == "__main__":
    main()

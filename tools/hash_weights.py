"""Weights that are a fixed function of a tensor's name: the same numbers as hash_source() in C++.

A fixture is then a config and a few hundred numbers, not a checkpoint. Matrices and above are uniform
with deviation 1/sqrt(fan_in), so activations stay alive; vectors named "...weight" are 1 +- 0.1, other
vectors +- 0.1.
"""

import math

import numpy as np

_MASK = (1 << 64) - 1


def seed(name: str) -> int:
    """FNV-1a, 64 bits, over the name's UTF-8 bytes."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return value


def uniform(name: str, count: int) -> np.ndarray:
    """`count` numbers in [-1, 1), float64: SplitMix64's output at seed(name) + 1, 2, 3 ... steps."""
    with np.errstate(over="ignore"):
        steps = np.arange(1, count + 1, dtype=np.uint64)
        z = np.uint64(seed(name)) + steps * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53 * 2.0 - 1.0


def tensor(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The tensor of that name, rounded to float32."""
    v = uniform(name, math.prod(shape)).reshape(shape)
    if len(shape) >= 2:
        v = v * math.sqrt(3.0 / math.prod(shape[1:]))
    elif name.endswith("weight"):
        v = 1.0 + 0.1 * v
    else:
        v = 0.1 * v
    return np.asarray(v, dtype=np.float32)


def numbers(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """An input: ten times the vector of that name, in another shape. -> f32 in [-1, 1)."""
    return (tensor(name, (math.prod(shape),)) * np.float32(10)).reshape(shape)


def saved(model):
    """The model again, with weights by the names that its saved checkpoint has: those that are not its parameters' own."""
    import pathlib
    import tempfile

    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        file = pathlib.Path(folder) / "model.safetensors"
        with safe_open(file, "pt") as old:
            shapes = {name: tuple(old.get_slice(name).get_shape()) for name in old.keys()}
        save_file({name: torch.from_numpy(tensor(name, shape)) for name, shape in shapes.items()}, file, {"format": "pt"})
        return type(model).from_pretrained(folder)


def fill(model) -> None:
    """Sets every parameter of a Transformers model, by the name a saved checkpoint has for it.

    Tied parameters are one tensor under their first name (the embedding's, not the head's). Buffers stay.
    """
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(tensor(name, tuple(parameter.shape))))


if __name__ == "__main__":
    print({name: tensor(name, shape).ravel()[:3].tolist() for name, shape in (
        ("model.embed_tokens.weight", (8, 4)), ("model.norm.weight", (4,)), ("score.bias", (4,)))})

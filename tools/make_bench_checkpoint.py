#!/usr/bin/env python3
"""Writes a checkpoint with random bf16 weights of Qwen3-0.6B's dimensions (1.2 GB): input for bench/.

usage: make_bench_checkpoint.py DIRECTORY
"""

import json
import pathlib
import struct
import sys

import numpy

HIDDEN, LAYERS, HEADS, KEY_HEADS, HEAD_DIM, MLP, VOCAB = 1024, 28, 16, 8, 128, 3072, 151936


def shapes():
    yield "model.embed_tokens.weight", [VOCAB, HIDDEN]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [HIDDEN]
        yield at + "post_attention_layernorm.weight", [HIDDEN]
        yield at + "self_attn.q_proj.weight", [HEADS * HEAD_DIM, HIDDEN]
        yield at + "self_attn.k_proj.weight", [KEY_HEADS * HEAD_DIM, HIDDEN]
        yield at + "self_attn.v_proj.weight", [KEY_HEADS * HEAD_DIM, HIDDEN]
        yield at + "self_attn.o_proj.weight", [HIDDEN, HEADS * HEAD_DIM]
        yield at + "self_attn.q_norm.weight", [HEAD_DIM]
        yield at + "self_attn.k_norm.weight", [HEAD_DIM]
        yield at + "mlp.gate_proj.weight", [MLP, HIDDEN]
        yield at + "mlp.up_proj.weight", [MLP, HIDDEN]
        yield at + "mlp.down_proj.weight", [HIDDEN, MLP]
    yield "model.norm.weight", [HIDDEN]


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS, "head_dim": HEAD_DIM,
        "intermediate_size": MLP, "vocab_size": VOCAB, "tie_word_embeddings": True, "max_position_embeddings": 40960,
        "rope_theta": 1000000, "rms_norm_eps": 1e-6, "hidden_act": "silu",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    header, offset = {}, 0
    for name, shape in shapes():
        size = 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = numpy.random.default_rng(0)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes():
            values = random.standard_normal(shape, dtype=numpy.float32) * 0.02
            if len(shape) == 1:
                values += 1
            file.write((values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())


if __name__ == "__main__":
    main(sys.argv[1])

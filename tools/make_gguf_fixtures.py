#!/usr/bin/env python3
"""Writes tests/cases/gguf/*.gguf with the public gguf package (0.19).

blocks.gguf: a tensor of each type that tranship reads ("q4_0"), with random bytes and every kind of scale (subnormal,
negative, zero, largest, infinite, not a number), and beside it ("q4_0.f32") what gguf.quants.dequantize makes of it.
sentencepiece.gguf: a small model with a vocabulary of scores. bytelevel.gguf: one with merges, for each `pre`.
"""

import pathlib
import sys

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES
from gguf.constants import GGMLQuantizationType as Type

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "cases" / "gguf"

# Where the f16 scales lie in a block.
SCALES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
}
EXTREME_HALVES = [0x0001, 0x83FF, 0x0000, 0x8000, 0x7BFF, 0xFBFF, 0x7C00, 0x7E00]


def random_blocks(rng, kind, num_blocks):
    _, block_bytes = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (num_blocks, block_bytes), dtype=np.uint8)
    for place in SCALES[kind]:
        scales = rng.normal(0, 0.02, num_blocks).astype(np.float16).view(np.uint16)
        extreme = rng.permutation(EXTREME_HALVES)[: num_blocks // 2]
        scales[: len(extreme)] = extreme
        blocks[:, place : place + 2] = scales.view(np.uint8).reshape(num_blocks, 2)
    blocks[-1, 2 + max(SCALES[kind]) % 208 :][:32] = 0xFF
    blocks[-2, 2 + max(SCALES[kind]) % 208 :][:32] = 0x00
    return blocks


def write_blocks():
    rng = np.random.default_rng(20260728)
    writer = gguf.GGUFWriter(FOLDER / "blocks.gguf", "llama")
    for kind in SCALES:
        elements, _ = GGML_QUANT_SIZES[kind]
        num_blocks = 12 if elements == 256 else 24
        data = random_blocks(rng, kind, num_blocks).reshape(num_blocks // 2, -1)
        writer.add_tensor(kind.name.lower(), data, raw_dtype=kind)
        with np.errstate(all="ignore"):
            writer.add_tensor(kind.name.lower() + ".f32", gguf.quants.dequantize(data, kind))
    halves = np.array(EXTREME_HALVES + list(range(0x3C00, 0x3C18)), np.uint16).reshape(1, 32)
    plain = {
        "f16": halves.view(np.float16),
        "f32": halves.view(np.float16).astype(np.float32),
        "f64": rng.normal(size=(3, 5)),
        "i8": np.arange(-3, 3, dtype=np.int8),
        "i16": np.arange(-3, 3, dtype=np.int16),
        "i32": np.arange(-3, 3, dtype=np.int32),
        "i64": np.arange(-3, 3, dtype=np.int64),
    }
    for name, values in plain.items():
        writer.add_tensor(name, values)
    writer.add_tensor("bf16", halves.view(np.uint8), raw_dtype=Type.BF16)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def small_model(path, vocab_size, architecture="llama", heads=2, head_dim=4):
    """One layer of hidden size 8, with all that the architecture can have."""
    rng = np.random.default_rng(vocab_size)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_block_count(1)
    writer.add_feed_forward_length(16)
    writer.add_head_count(heads)
    writer.add_head_count_kv(1)
    writer.add_key_length(head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(20000.0)
    query, key_value = heads * head_dim, head_dim
    layer = {"attn_norm.weight": (8,), "attn_q.weight": (query, 8), "attn_k.weight": (key_value, 8),
             "attn_v.weight": (key_value, 8), "attn_output.weight": (8, query), "ffn_norm.weight": (8,),
             "ffn_gate.weight": (16, 8), "ffn_up.weight": (16, 8), "ffn_down.weight": (8, 16)}
    shapes = {"token_embd.weight": (vocab_size, 8), "output_norm.weight": (8,)}
    if architecture == "qwen2":
        layer |= {"attn_q.bias": (query,), "attn_k.bias": (key_value,), "attn_v.bias": (key_value,)}
        shapes["output.weight"] = (vocab_size, 8)
    if architecture == "qwen3":
        layer |= {"attn_q_norm.weight": (head_dim,), "attn_k_norm.weight": (head_dim,)}
    for name, shape in (shapes | {f"blk.0.{name}": shape for name, shape in layer.items()}).items():
        writer.add_tensor(name, rng.normal(size=shape).astype(np.float32))
    return writer


def write_sentencepiece(path, **flags):
    tokens = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    tokens += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    tokens += [("<|user|>", 0.0, 4), ("<|end|>", 0.0, 3)]
    pieces = ["\u2581t", "he", "\u2581the", "in", "er", "\u2581a", "an", "\u2581an", "and", "\u2581and", "ll", "lo", "Hel",
              "Hell", "Hello", "\u2581Hello", "el", "He", "\u2581H", "wor", "or", "w", "\u2581w", "\u2581wor", "ld",
              "\u2581world", "\u2581\u2581", "\u2581\u2581\u2581\u2581", "12", "\u65e5\u672c"]
    tokens += [(piece, -float(i // 2), 1) for i, piece in enumerate(pieces)]  # pairs of equal scores
    known = {token for token, _, _ in tokens}
    letters = [c for c in "\u2581etaoinshrdlucmfypvbgkqjxzTHEW0123456789.,!?'\u65e5\u672c\u00e9" if c not in known]
    tokens += [(letter, -100.0 - i, 1) for i, letter in enumerate(letters)]
    writer = small_model(path, len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token for token, _, _ in tokens])
    writer.add_token_scores([score for _, score, _ in tokens])
    writer.add_token_types([kind for _, _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    for flag, value in flags.items():
        getattr(writer, flag)(value)
    finish(writer)


def byte_letters():
    """GPT-2's letters for bytes."""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) for byte in plain] + [chr(256 + i) for i in range(len(others))]


def write_byte_level(path, pre, architecture="llama", head_dim=4, **flags):
    merges = ["\u0120 t", "h e", "\u0120t he", "\u0120 a", "\u0120 \u0120", "\u0120\u0120 \u0120\u0120", "i n", "l l", "H e",
              "He ll", "Hell o", "1 2", "12 3", "\u0120 1", "' s", "\u010a \u010a", "\u00c3 \u00a9", "e \u00cc", "e\u00cc \u0123"]
    tokens = [("<|endoftext|>", 3), ("<|im_start|>", 3), ("<|im_end|>", 3)]
    tokens += [(letter, 1) for letter in byte_letters()]
    tokens += [(merge.replace(" ", ""), 1) for merge in merges]
    tokens += [("Hello!", 1), ("<think>", 4), ("[PAD0]", 5)]
    writer = small_model(path, len(tokens), architecture, head_dim=head_dim)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    for flag, value in flags.items():
        getattr(writer, flag)(value)
    finish(writer)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_blocks()
    write_sentencepiece(FOLDER / "sentencepiece.gguf", add_chat_template="{{ messages[0]['content'] }}")
    write_byte_level(FOLDER / "bytelevel.gguf", "gpt-2", add_add_bos_token=False)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Exports a causal language model to ONNX in f32 by another exporter, for bench/export.sh to time.

usage: export_with_peer.py transformers|genai|genai-last|mobius CHECKPOINT OUTPUT      (in the venv of `tools/setup.sh peers`)
"""

import logging
import pathlib
import sys
import tempfile

TOKENIZER = pathlib.Path(__file__).parents[1] / "tests" / "cases" / "tokenizer" / "bytelevel"


def transformers(checkpoint, output):
    """Prefill and decode, as tranship's export has them."""
    import torch
    import transformers
    from transformers.exporters import OnnxConfig, OnnxExporter

    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    ids = torch.arange(1, 17).reshape(2, 8)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    exported = OnnxExporter().export_for_generation(model, inputs, OnnxConfig(dynamic=True))
    exported.save_pretrained(output)


def genai(checkpoint, output, *options_of_builder):
    """One graph for both. The builder copies a tokenizer, so that it is given a small one."""
    from onnxruntime_genai.models import builder

    with tempfile.TemporaryDirectory() as folder:
        for source in (*pathlib.Path(checkpoint).iterdir(), TOKENIZER / "tokenizer.json", TOKENIZER / "tokenizer_config.json"):
            pathlib.Path(folder, source.name).symlink_to(source.resolve())
        options = builder.parse_extra_options(None, folder, output, "fp32", "cpu", folder, list(options_of_builder))
        builder.create_model(None, folder, output, "fp32", "cpu", folder, **options)


def genai_last(checkpoint, output):
    """The same, with the logits of the last token only."""
    genai(checkpoint, output, "prune_lm_head=true")


def mobius(checkpoint, output):
    """One graph for both."""
    from mobius.__main__ import main as command

    sys.argv = ["mobius", "build", "--config", checkpoint, "--dtype", "f32", "--ep", "cpu", output]
    command()


def main(peer, checkpoint, output):
    logging.disable(logging.WARNING)
    peers = {"transformers": transformers, "genai": genai, "genai-last": genai_last, "mobius": mobius}
    peers[peer](checkpoint, output)


if __name__ == "__main__":
    main(*sys.argv[1:])

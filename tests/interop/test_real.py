"""The two real checkpoints, exported by tranship and run by Python."""

import json
import os

import pytest
import torch
from transformers.exporters import ExportedModel

from conftest import ROOT, run_cli


def checkpoint(variable):
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} is not set")
    return path


def test_minilm_gives_the_same_embeddings(tmp_path):
    run_cli("export", checkpoint("TRANSHIP_MINILM"), "--to", "onnx", "-o", tmp_path / "minilm")
    golden = json.loads((ROOT / "tests/golden/minilm.json").read_text())["sentences"]
    inputs = {
        name: torch.tensor([row[name] for row in golden]) for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    hidden = ExportedModel.from_pretrained(tmp_path / "minilm")(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None].float()
    embeddings = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
    expected = torch.tensor([row["embedding"] for row in golden])
    assert (embeddings - expected).abs().max().item() <= 1e-5


def test_smollm2_continues_the_same_way(tmp_path):
    folder = tmp_path / "smollm2"
    run_cli("export", checkpoint("TRANSHIP_SMOLLM2"), "--to", "onnx", "--dtype", "f32", "-o", folder)
    runners = ExportedModel.from_pretrained(folder).runners
    golden = json.loads((ROOT / "tests/golden/smollm2.json").read_text())["prompts"]
    france = next(entry for entry in golden if entry["name"] == "france")
    ids = torch.tensor([france["prompt_ids"]])
    new_ids, cache, start = [], None, 0
    for _ in france["new_ids"]:
        length = start + ids.shape[1]
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones(1, length, dtype=torch.int64),
            "position_ids": torch.arange(start, length)[None],
        }
        result = runners["decode"](**inputs, past_key_values=cache) if cache else runners["prefill"](**inputs)
        cache, start = result.past_key_values, length
        ids = result.logits[:, -1:].argmax(-1)
        new_ids.append(ids.item())
    assert new_ids == france["new_ids"]

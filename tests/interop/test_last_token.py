"""Logits of the last token alone, in Transformers' runners: what it has among the logits of all."""

import json

import pytest
from transformers.exporters import ExportedModel

import reference
import reference_cases
from conftest import ROOT, assert_close
from test_static_caches import STATIC, as_static

CASES = {name: case for name, case in reference_cases.generation_cases().items() if name.endswith("_default")}
DECODES = {"one": (), "many": ("--multi-token-decode",), "slots": STATIC}


def in_pairs(steps):
    """The same prompt, and then two tokens a call."""
    yield steps[0]
    for first, second in zip(steps[1::2], steps[2::2], strict=False):
        both = {
            name: [a + b for a, b in zip(first["inputs"][name], second["inputs"][name], strict=True)]
            for name in ("input_ids", "position_ids")
        }
        yield {"inputs": {**second["inputs"], **both}, "outputs": second["outputs"]}


@pytest.mark.parametrize("to", ["dynamo", "onnx"])
@pytest.mark.parametrize("decodes", DECODES)
@pytest.mark.parametrize("name", sorted(CASES))
def test_prefill_and_decode_give_the_last_tokens_logits(name, decodes, to, export, no_grad):
    case = CASES[name]
    golden = json.loads((ROOT / f"tests/golden/logits/generation_{name}.json").read_text())
    for run in golden["runs"]:
        rows = len(run["steps"][0]["inputs"]["input_ids"])
        options = ("--task=generation", "--last-token-logits", *DECODES[decodes], f"--static=batch={rows}")
        folder = export(case.config, *options, to=to)
        manifest = json.loads((folder / "export.json").read_text())
        assert {c["metadata"]["logits_to_keep"] for c in manifest["components"].values()} == {1}
        exported = ExportedModel.from_pretrained(folder)
        cache = None
        for step in in_pairs(run["steps"]) if decodes == "many" else run["steps"]:
            inputs = as_static(step["inputs"]) if decodes == "slots" else reference.as_tensors(step["inputs"])
            runner = exported.runners["prefill" if cache is None else "decode"]
            result = runner(**inputs, **({} if cache is None else {"past_key_values": cache}))
            cache = result.past_key_values
            expected = step["outputs"]["logits"]
            values = reference.torch.tensor(expected["values"]).reshape(rows, -1, expected["shape"][2])
            assert_close(result.logits, values[:, -1:], case.config, len(step["inputs"]["attention_mask"][0]))

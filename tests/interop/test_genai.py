"""onnxruntime-genai runs our directories, and generates what our loop and Transformers generate."""

import json
import os

import onnxruntime_genai
import pytest
import torch

import reference
import reference_cases
from conftest import run_cli

CASES = reference_cases.generation_cases()
FAMILIES = ["llama_default", "mistral_sliding_window", "qwen2_default", "qwen3_default", "qwen3_moe_default"]
FORMS = {
    "plain": [],
    "fused": ["--ort-fusions=cpu", "--static=batch=1"],
}


def generate(folder, prompts, num_tokens):
    """The tokens after each of some prompts, which are read at once if there are several."""
    model = onnxruntime_genai.Model(str(folder))
    parameters = onnxruntime_genai.GeneratorParams(model)
    length = len(prompts[0])
    parameters.set_search_options(max_length=length + num_tokens, batch_size=len(prompts))
    generator = onnxruntime_genai.Generator(model, parameters)
    generator.append_tokens(prompts)
    while not generator.is_done():
        generator.generate_next_token()
    return [generator.get_sequence(row)[length:].tolist() for row in range(len(prompts))]


def until_end(rows, config):
    """Without the token that ends a row, which genai does not give, and the padding after it."""
    end = config["eos_token_id"]
    return [row[: row.index(end)] if end in row else row for row in rows]


def shares_buffers(folder):
    return json.loads((folder / "genai_config.json").read_text())["search"]["past_present_share_buffer"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_are_those_of_transformers(name, form, export, no_grad):
    case = CASES[name]
    folder = export(case.config, "--task", "generation", "--also=genai", *FORMS[form])
    assert shares_buffers(folder) == (form == "fused")
    prompts = [[5, 17, 33, 8, 61], [9, 2, 40, 7, 11]]
    model = reference.build(case)
    for rows in [[prompts[0]], [prompts[1]]] + [prompts] * (form == "plain"):
        expected = model.generate(torch.tensor(rows), max_new_tokens=20, do_sample=False)[:, 5:]
        found = until_end(generate(folder, rows, 20), case.config)
        assert found == until_end(expected.tolist(), case.config)


@pytest.mark.parametrize("form", FORMS)
def test_smollm2_says_what_it_says_in_our_loop(form, tmp_path):
    if "TRANSHIP_SMOLLM2" not in os.environ:
        pytest.skip("TRANSHIP_SMOLLM2 is not set")
    folder = tmp_path / "smollm2"
    run_cli("export", os.environ["TRANSHIP_SMOLLM2"], "--to", "onnx", "-o", folder, "--also=genai", *FORMS[form])
    options = ["--greedy", "--max-new-tokens", "24", "--json"]
    tokenizer = onnxruntime_genai.Tokenizer(onnxruntime_genai.Model(str(folder)))
    for text in ("The capital of France is", "def fibonacci(n):", "Once upon a time, there was a"):
        ours = json.loads(run_cli("generate", folder, "--prompt", text, *options))
        ids = tokenizer.encode(text)
        assert ids.tolist() == ours["prompt_ids"]
        theirs = generate(folder, [ours["prompt_ids"]], len(ours["new_ids"]))
        assert theirs == [ours["new_ids"]]

"""A captured model becomes what the definition of it becomes: the same composites, as many nodes, the same numbers; and
the same operators of ONNX Runtime's own, where it is fused."""

import collections
import re

import numpy
import onnx
import onnxruntime
import pytest
import torch
import transformers
from transformers.exporters import DynamoConfig, DynamoExporter

import reference
import reference_cases
from conftest import CASES, assert_close, run_cli

CASES = {**CASES, **reference_cases.moe_cases(), **reference_cases.vit_cases()}
FORWARD = ["llama_default", "qwen3_default", "bert_model", "t5_default", "vit_default", "qwen3_moe_default"]
DECODE = ["llama_default", "qwen3_default", "qwen3_moe_default"]
COMPOSITES = ("Linear", "Embedding", "RmsNorm", "LayerNorm", "Activation", "Rope", "Attention", "CacheAppend", "Moe")
MOST_NODES_APART = 0.05
GRAPHS = {"standard": (), "fused": ("--ort-fusions=cpu",)}


def sizes(name):
    """The inputs of two runs of other sizes; the first has rows enough for its axes to stay open."""
    runs = [reference.as_tensors(run.inputs) for run in CASES[name].runs]
    first = next(run for run in runs if next(iter(run.values())).shape[0] > 1)
    return first, next(run for run in runs if run.keys() == first.keys() and run is not first)


def call_of(name):
    return getattr(CASES[name], "call", {})


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """captured(name): the .pt2 of a forward; captured(name, "decode"): of a step that has seen some tokens."""
    made = {}

    def capture(name, component="model"):
        if (name, component) not in made:
            folder = tmp_path_factory.mktemp("captured")
            with torch.no_grad():
                if component == "model":
                    exporter_inputs = {**sizes(name)[0], **call_of(name)}
                    exported = DynamoExporter().export(reference.build(CASES[name]), exporter_inputs, DynamoConfig(dynamic=True))
                else:
                    prompt = reference.as_tensors(reference_cases.padded(7, 4, "left"))
                    config = transformers.GenerationConfig(max_new_tokens=4, eos_token_id=None, pad_token_id=0)
                    exported = DynamoExporter().export_for_generation(
                        reference.build(CASES[name]), prompt, DynamoConfig(dynamic=True), generation_config=config
                    )
            exported.save_pretrained(folder)
            made[name, component] = folder / f"{component}.pt2"
        return made[name, component]

    return capture


def composites(text):
    kinds = re.findall(r"= (\w+)\((?:.*\{fn=(\w+)\})?", text)
    return collections.Counter(f"{kind} {fn}" if kind == "Activation" else kind for kind, fn in kinds if kind in COMPOSITES)


def nodes(graph):
    """All of them, those of loops' bodies too."""
    inner = [a for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return len(graph.node) + sum(nodes(attribute.g) for attribute in inner)


def num_nodes(path):
    return nodes(onnx.load(path, load_external_data=False).graph)


def fused_operators(path):
    graph = onnx.load(path, load_external_data=False).graph
    return collections.Counter(node.op_type for node in graph.node if node.domain == "com.microsoft")


def compare(definition, capture, made, exported):
    assert composites(definition) == composites(capture)
    assert fused_operators(made) == fused_operators(exported)
    if fused_operators(made):
        return  # so few nodes are left that those of masks and positions count
    expected, actual = num_nodes(made), num_nodes(exported)
    assert abs(actual - expected) <= MOST_NODES_APART * expected, f"{actual} nodes, expected {expected}"


def run_onnx(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feed = {value.name: inputs[value.name].numpy() for value in session.get_inputs()}
    return dict(zip((value.name for value in session.get_outputs()), session.run(None, feed), strict=True))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", FORWARD)
def test_a_forward_has_the_same_composites_and_as_many_nodes(name, graph, captured, export, tmp_path):
    config = CASES[name].config
    made = export(config, "--task", "forward", "--graph-inputs=" + ",".join(sizes(name)[0]), *GRAPHS[graph])
    run_cli("export", captured(name), "--to", "onnx", "-o", tmp_path, *GRAPHS[graph])
    definition = run_cli("inspect", made.parent / "config.json", "--graph", "--task", "forward")
    compare(definition, run_cli("inspect", captured(name), "--graph"), made / "model.onnx", tmp_path / "model.onnx")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", DECODE)
def test_a_decode_has_the_same_composites_and_as_many_nodes(name, graph, captured, export, tmp_path):
    config = CASES[name].config
    made = export(config, "--task", "generation", "--graph-inputs=attention_mask,position_ids", *GRAPHS[graph])
    run_cli("export", captured(name, "decode"), "--to", "onnx", "-o", tmp_path, *GRAPHS[graph])
    definition = run_cli("inspect", made.parent / "config.json", "--graph", "--task", "generation", "--component", "decode")
    capture = run_cli("inspect", captured(name, "decode"), "--graph")
    compare(definition, capture, made / "decode.onnx", tmp_path / "model.onnx")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", FORWARD)
def test_a_forward_gives_the_models_numbers(name, graph, captured, tmp_path, no_grad):
    run_cli("export", captured(name), "--to", "onnx", "-o", tmp_path, *GRAPHS[graph])
    model = reference.build(CASES[name])
    for inputs in sizes(name):
        actual = run_onnx(tmp_path / "model.onnx", inputs)
        expected = model(**inputs, **call_of(name))
        for output in reference.OUTPUTS:
            if expected.get(output) is not None:
                length = max(value.shape[1] for value in inputs.values()) if "input_ids" in inputs else 192  # of a patch
                assert_close(torch.from_numpy(actual[output]), expected[output], CASES[name].config, length)


def test_a_mask_with_one_extra_visible_key_keeps_its_bias(tmp_path, no_grad):
    """Causal but for the first key of the last row: it is computed, and so are its numbers."""

    class Model(torch.nn.Module):
        def forward(self, x, extra):
            length = x.shape[1]
            mask = torch.ones(length, length, dtype=torch.bool).tril(extra)
            heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
            return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask)

    x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(1))
    axes = {"x": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}, "extra": None}
    for extra, is_causal in ((0, True), (1, False)):
        folder = tmp_path / str(extra)
        folder.mkdir()
        program = torch.export.export(Model(), (), {"x": x, "extra": extra}, dynamic_shapes=axes)
        torch.export.save(program, folder / "model.pt2")
        text = run_cli("inspect", folder / "model.pt2", "--graph")
        assert ("causal=true" in text) == is_causal, text
        run_cli("export", folder / "model.pt2", "--to", "onnx", "-o", folder / "onnx")
        actual = next(iter(run_onnx(folder / "onnx" / "model.onnx", {"x": x}).values()))
        assert numpy.abs(actual - Model()(x, extra).numpy()).max() < 1e-6

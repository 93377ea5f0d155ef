"""Graphs with ONNX Runtime's own operators: each node is what the pinned ONNX Runtime's own schema says, and loads."""

import onnx
import onnxruntime
import pytest
from onnxruntime.capi import _pybind_state as state

import reference_cases

PROVIDERS = ["cpu", "cuda", "webgpu", "dml"]
STATIC = ("--cache-implementation=static", "--max-cache-len=48")
CONFIGS = {
    **{name: case.config for name, case in reference_cases.generation_cases().items()},
    **{f"ed_{name}": case.config for name, case in reference_cases.encoder_decoder_cases().items()},
    **{name: case.config for name, case in reference_cases.bert_cases().items()},
    **{f"moe_{name}": case.config for name, case in reference_cases.moe_cases().items()},
    **{f"mamba_{name}": case.config for name, case in reference_cases.mamba_cases().items()},
    **{f"vit_{name}": case.config for name, case in reference_cases.vit_cases().items()},
}
SCHEMAS = {
    (schema.domain, schema.name): schema
    for schema in state.get_all_operator_schema()
    if schema.domain == "com.microsoft" or schema.name == "SimplifiedLayerNormalization"
}
ATTRIBUTE_TYPES = {"FLOAT": "FLOAT", "INT": "INT", "STRING": "STRING", "INTS": "INTS", "FLOATS": "FLOATS"}


def fused_nodes(path):
    graph = onnx.load(path, load_external_data=False).graph
    names = {(node.domain, node.op_type) for node in graph.node}
    assert all(domain in ("", "com.microsoft") for domain, _ in names)
    return [n for n in graph.node if n.domain == "com.microsoft" or n.op_type == "SimplifiedLayerNormalization"]


def check_operands(names, formal, least, most):
    assert least <= len(names) <= most
    assert len(names) <= len(formal)
    for name, parameter in zip(names, formal, strict=False):
        assert name or parameter.option == state.schemadef.OpSchema.FormalParameterOption.Optional, parameter.name
    assert all(p.option.name == "Optional" for p in formal[len(names) :])


def check_node(node):
    schema = SCHEMAS[node.domain, node.op_type]
    check_operands(list(node.input), schema.inputs, schema.min_input, schema.max_input)
    check_operands(list(node.output), schema.outputs, schema.min_output, schema.max_output)
    given = {attribute.name: attribute for attribute in node.attribute}
    assert len(given) == len(node.attribute)
    assert given.keys() <= schema.attributes.keys()
    assert {name for name, attribute in schema.attributes.items() if attribute.required} <= given.keys()
    for name, attribute in given.items():
        found = onnx.AttributeProto.AttributeType.Name(attribute.type)
        assert found == ATTRIBUTE_TYPES[schema.attributes[name].type.name], name


def load(path):
    """ONNX Runtime checks the types of all operands before it looks for kernels, of which its CPU may have none."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except state.NotImplemented as error:
        return str(error)
    return None


EVERY = [(name, dtype) for name in sorted(CONFIGS) for dtype in ("f32", "f16") if dtype == "f32" or "t5" not in name]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name, dtype", EVERY)
def test_each_node_is_what_its_schema_says(name, dtype, provider, export):
    folder = export(CONFIGS[name], f"--ort-fusions={provider}", f"--dtype={dtype}")
    check_graphs(folder, dtype)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["llama_default", "mistral_sliding_window", "qwen3_moe_default"])
def test_so_it_is_with_caches_of_slots(name, provider, dtype, export):
    folder = export(CONFIGS[name], f"--ort-fusions={provider}", f"--dtype={dtype}", *STATIC)
    check_graphs(folder, dtype)


# Operands that kernels on a GPU want in the host's memory.
ON_THE_HOST = {
    "ConstantOfShape": [0],
    "CumSum": [1],
    "Expand": [1],
    "GroupQueryAttention": [6],
    "Pad": [1],
    "Range": [0, 1, 2],
    "ReduceMax": [1],
    "Reshape": [1],
    "Slice": [1, 2, 3, 4],
    "Split": [1],
    "Squeeze": [1],
    "Tile": [1],
    "TopK": [1],
    "Unsqueeze": [1],
}


def computed_on_the_host(path):
    """What a step would have to compute, or to fetch from the GPU, for the host: a CUDA graph cannot replay that."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {initializer.name for initializer in graph.initializer}
    for node in graph.node:
        if node.op_type in ("Shape", "Size", "NonZero", "If", "Loop", "Scan"):
            yield node.name
        if node.op_type == "Constant":
            constants.update(node.output)
        for i in ON_THE_HOST.get(node.op_type, []):
            if i < len(node.input) and node.input[i] and node.input[i] not in constants:
                yield f"{node.name}: {node.input[i]}"


REPLAYED = [(name, gpu) for name in ("llama_default", "mistral_sliding_window") for gpu in ("cuda", "webgpu", "dml")]


@pytest.mark.parametrize("name, provider", [*REPLAYED, ("qwen3_moe_default", "cuda")])
def test_a_step_of_a_fixed_cache_can_be_replayed(name, provider, export):
    fixed = (*STATIC, "--static=batch=1,cache_length=48")
    folder = export(CONFIGS[name], f"--ort-fusions={provider}", "--dtype=f16", *fixed)
    assert list(computed_on_the_host(folder / "decode.onnx")) == []
    folder = export(CONFIGS[name], f"--ort-fusions={provider}", "--dtype=f16", *STATIC)
    assert list(computed_on_the_host(folder / "decode.onnx"))  # where axes are open


def check_graphs(folder, dtype):
    paths = sorted(folder.glob("*.onnx"))
    assert paths
    for path in paths:
        nodes = fused_nodes(path)
        assert nodes
        for node in nodes:
            check_node(node)
        missing = load(path)
        assert missing is None or dtype == "f16", missing


def test_each_provider_has_the_operators_that_the_docs_name(export):
    found = {}
    for provider in PROVIDERS:
        found[provider] = set()
        for name in ("llama_default", "qwen3_moe_default", "bert_model", "ed_t5_gated_gelu"):
            for dtype in ("f32", "f16")[: 1 if "t5" in name else 2]:
                folder = export(CONFIGS[name], f"--ort-fusions={provider}", f"--dtype={dtype}")
                for path in folder.glob("*.onnx"):
                    found[provider] |= {node.op_type for node in fused_nodes(path)}
    shared = {
        "SimplifiedLayerNormalization",
        "SkipSimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "RotaryEmbedding",
        "QuickGelu",
        "FastGelu",
        "BiasGelu",
    }
    assert found["cpu"] == shared | {"GroupQueryAttention", "MoE", "FusedMatMul"}
    assert found["cuda"] == shared | {"GroupQueryAttention", "MultiHeadAttention", "MoE"}
    assert found["webgpu"] == shared | {"GroupQueryAttention", "MultiHeadAttention"}
    assert found["dml"] == shared | {"MultiHeadAttention"}

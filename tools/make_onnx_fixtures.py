#!/usr/bin/env python3
"""Writes the tiny models of tests/cases/onnx/, by the onnx package, for the tests of the ONNX Runtime session.

    python tools/make_onnx_fixtures.py tests/cases/onnx
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = pathlib.Path(sys.argv[1])
F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
I64, BOOL, STRING = TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def save(name: str, nodes, inputs, outputs, initializers=()) -> None:
    """One model; `inputs` and `outputs` are (name, element type, shape)."""
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        list(initializers),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    model.producer_name = "tranship fixtures"
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    onnx.checker.check_model(path, full_check=True)


# Symbolic dimensions, one fixed one, and one without a name.
save(
    "add",
    [helper.make_node("Add", ["x", "y"], ["sum"])],
    [("x", F32, ["batch", 3]), ("y", F32, [None, 3])],
    [("sum", F32, ["batch", 3])],
)

# Weights in a file beside the model: w[i][j] = 10 i + j.
weight = np.array([[0, 1], [10, 11], [20, 21], [30, 31]], np.float32)
external = numpy_helper.from_array(weight, "w")
external.ClearField("raw_data")
external.data_location = TensorProto.EXTERNAL
for key, value in (("location", "external.onnx.data"), ("offset", "64"), ("length", str(weight.nbytes))):
    external.external_data.add(key=key, value=value)
(folder / "external.onnx.data").write_bytes(bytes(64) + weight.tobytes())
save(
    "external",
    [helper.make_node("MatMul", ["x", "w"], ["y"])],
    [("x", F32, ["rows", 4])],
    [("y", F32, ["rows", 2])],
    [external],
)

# A cache that grows: present = past ++ new.
save(
    "cache",
    [
        helper.make_node("Concat", ["past", "new"], ["present"], axis=1),
        helper.make_node("ReduceSum", ["present", "axes"], ["total"], keepdims=0),
    ],
    [("past", F32, [1, "past", 2]), ("new", F32, [1, "step", 2])],
    [("total", F32, [2]), ("present", F32, [1, "past + step", 2])],
    [numpy_helper.from_array(np.array([0, 1], np.int64), "axes")],
)

# Bool out, i64 and a scalar in.
save(
    "greater",
    [helper.make_node("Greater", ["x", "limit"], ["y"])],
    [("x", I64, ["n"]), ("limit", I64, [])],
    [("y", BOOL, ["n"])],
)

# 16-bit floats, both kinds.
save(
    "half",
    [helper.make_node("Concat", ["x", "x"], ["twice"], axis=0), helper.make_node("Cast", ["x"], ["brain"], to=BF16)],
    [("x", F16, ["n"])],
    [("twice", F16, ["2*n"]), ("brain", BF16, ["n"])],
)

# What a session refuses, and what makes ONNX Runtime warn.
save("text", [helper.make_node("Identity", ["x"], ["y"])], [("x", STRING, ["n"])], [("y", STRING, ["n"])])
save(
    "unused",
    [helper.make_node("Identity", ["x"], ["y"])],
    [("x", F32, ["n"])],
    [("y", F32, ["n"])],
    [numpy_helper.from_array(np.zeros(1, np.float32), "needless")],
)

#!/usr/bin/env python3
"""What PyTorch computes for single ops, never us: `reference_ops.py --out tests/golden`.

Writes ops.json: each case is a graph as text, its inputs, and what torch gives for the same. tests/ops_test.cpp runs
them in the interpreter and in ONNX Runtime. Needs torch 2.13.0; never needed to build or to run tranship.
"""

import argparse
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

import hash_weights

CASES = []


def floats(name, *shape, scale=2.0):
    """Numbers of few digits in [-scale, scale): multiples of 1/256, so that sums are nearly exact."""
    values = hash_weights.uniform(name, int(np.prod(shape)))
    return torch.from_numpy(np.round(values * scale * 256) / 256).reshape(shape).float()


def ints(name, low, high, *shape):
    values = (hash_weights.uniform(name, int(np.prod(shape))) + 1) / 2 * (high - low) + low
    return torch.from_numpy(np.floor(values).astype(np.int64)).reshape(shape)


def dtype_name(tensor):
    return {torch.float32: "f32", torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8", torch.bool: "bool"}[tensor.dtype]


def case(name, lines, inputs, outputs, symbols=None):
    """lines: of the graph, with %x for input x. symbols: axis names by input; a number stands for itself."""
    text = ["graph model"]
    for key, tensor in inputs.items():
        axes = (symbols or {}).get(key, list(tensor.shape))
        text.append(f'%{key} = Input {{name="{key}", dtype={dtype_name(tensor)}, shape=[{", ".join(map(str, axes))}]}}')
    text += [line.strip() for line in lines.strip().splitlines()]
    if not isinstance(outputs, dict):
        outputs = {"y": outputs}
    text += [f"output {key} %{key}" for key in outputs] + ["end"]

    def stored(tensor):
        tensor = tensor.detach()
        numbers = tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64).ravel().tolist()
        if tensor.is_floating_point():
            numbers = [json.loads(str(np.float32(v))) if np.isfinite(v) else str(v) for v in numbers]
        return {"dtype": dtype_name(tensor), "shape": list(tensor.shape), "values": numbers}

    CASES.append(
        {
            "name": name,
            "graph": text,
            "inputs": {k: stored(v) for k, v in inputs.items()},
            "outputs": {k: stored(v) for k, v in outputs.items()},
        }
    )


def convolutions():
    x, w, b = floats("x", 2, 4, 9), floats("w", 6, 2, 3), floats("b", 6)
    case(
        "conv_1d",
        "%y = Conv(%x, %w, %b) {strides=[2], pads_begin=[1], pads_end=[1], dilations=[2], groups=2}",
        {"x": x, "w": w, "b": b},
        F.conv1d(x, w, b, stride=2, padding=1, dilation=2, groups=2),
        {"x": ["n", 4, "l"]},
    )
    x, w = floats("x", 2, 3, 6, 7), floats("w", 5, 3, 3, 2)
    case(
        "conv_2d",
        "%y = Conv(%x, %w, _) {strides=[2, 1], pads_begin=[1, 0], pads_end=[0, 2], dilations=[1, 2], groups=1}",
        {"x": x, "w": w},
        F.conv2d(F.pad(x, (0, 2, 1, 0)), w, stride=(2, 1), dilation=(1, 2)),
        {"x": ["n", 3, "h", "w"]},
    )
    x, w, b = floats("x", 1, 2, 4, 5, 3), floats("w", 4, 1, 2, 2, 2), floats("b", 4)
    case(
        "conv_3d",
        "%y = Conv(%x, %w, %b) {strides=[1, 2, 1], pads_begin=[0, 1, 0], pads_end=[0, 1, 0], dilations=[1, 1, 1], groups=2}",
        {"x": x, "w": w, "b": b},
        F.conv3d(x, w, b, stride=(1, 2, 1), padding=(0, 1, 0), groups=2),
    )
    x, w, b = floats("x", 2, 4, 5), floats("w", 4, 3, 4), floats("b", 6)
    case(
        "conv_transpose_1d",
        "%y = ConvTranspose(%x, %w, %b) {strides=[3], pads_begin=[1], pads_end=[1], dilations=[1], output_padding=[2], groups=2}",
        {"x": x, "w": w, "b": b},
        F.conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2, groups=2),
        {"x": ["n", 4, "l"]},
    )
    x, w = floats("x", 1, 2, 3, 4), floats("w", 2, 3, 2, 3)
    case(
        "conv_transpose_2d",
        "%y = ConvTranspose(%x, %w, _) {strides=[1, 2], pads_begin=[0, 1], pads_end=[0, 1], dilations=[2, 1], output_padding=[0, 1], groups=1}",
        {"x": x, "w": w},
        F.conv_transpose2d(x, w, stride=(1, 2), padding=(0, 1), output_padding=(0, 1), dilation=(2, 1)),
        {"x": ["n", 2, "h", "w"]},
    )


def pools():
    attributes = "kernel=[3, 2], strides=[2, 2], pads_begin=[{0}], pads_end=[{0}], dilations=[{1}], ceil_mode={2}, count_include_pad={3}"
    for size in (6, 7, 8):
        x = floats("x", 1, 2, size, size + 1)
        symbols = {"x": ["n", 2, "h", "w"]}
        for ceil in (False, True):
            words = str(ceil).lower()
            case(
                f"max_pool_{size}_{'ceil' if ceil else 'floor'}",
                "%y = Pool(%x) {fn=max, " + attributes.format("1, 1", "1, 2", words, "false") + "}",
                {"x": x},
                F.max_pool2d(x, (3, 2), (2, 2), (1, 1), (1, 2), ceil_mode=ceil),
                symbols,
            )
            for include in (False, True):
                case(
                    f"average_pool_{size}_{'ceil' if ceil else 'floor'}_{'with' if include else 'without'}_padding",
                    "%y = Pool(%x) {fn=average, " + attributes.format("1, 1", "1, 1", words, str(include).lower()) + "}",
                    {"x": x},
                    F.avg_pool2d(x, (3, 2), (2, 2), (1, 1), ceil_mode=ceil, count_include_pad=include),
                    symbols,
                )
    x = floats("x", 2, 3, 7)
    case(
        "average_pool_1d",
        "%y = Pool(%x) {fn=average, kernel=[2], strides=[2], pads_begin=[0], pads_end=[0], dilations=[1]}",
        {"x": x},
        F.avg_pool1d(x, 2),
    )
    x = floats("x", 1, 1, 4, 4, 4)
    case(
        "max_pool_3d",
        "%y = Pool(%x) {fn=max, kernel=[2, 3, 2], strides=[1, 1, 2], pads_begin=[0, 1, 0], pads_end=[0, 1, 0], dilations=[1, 1, 1]}",
        {"x": x},
        F.max_pool3d(x, (2, 3, 2), (1, 1, 2), (0, 1, 0)),
    )


def paddings():
    x = floats("x", 2, 3, 4, 5)
    symbols = {"x": ["n", 3, "h", "w"]}
    for mode, torch_mode in (("constant", "constant"), ("reflect", "reflect"), ("edge", "replicate"), ("wrap", "circular")):
        case(
            f"pad_{mode}",
            f"%y = Pad(%x) {{mode={mode}, begin=[0, 0, 1, 2], end=[0, 0, 3, 0]}}",
            {"x": x},
            F.pad(x, (2, 0, 1, 3), mode=torch_mode),
            symbols,
        )
    case(
        "pad_to_a_size_with_a_value",
        "%value = Constant {value=f32[](1.5)}\n%y = Pad(%x, %value) {mode=constant, begin=[0, 0, 0, 0], end=[0, 0, 2*w - h, 0]}",
        {"x": x},
        F.pad(x, (0, 0, 0, 6), value=1.5),
        symbols,
    )


RESIZE = "%y = Resize(%x) {{mode={0}, coordinates={1}, antialias={2}, sizes=[{3}], scales=[{4}]}}"


def resizes():
    words = {
        ("nearest", "asymmetric"): {"mode": "nearest"},
        ("nearest", "half_pixel"): {"mode": "nearest-exact"},
        ("linear", "half_pixel"): {"mode": "bilinear", "align_corners": False},
        ("linear", "align_corners"): {"mode": "bilinear", "align_corners": True},
        ("cubic", "half_pixel"): {"mode": "bicubic", "align_corners": False},
        ("cubic", "align_corners"): {"mode": "bicubic", "align_corners": True},
    }
    for (mode, coordinates), arguments in words.items():
        # 14 -> 2, 26 -> 11: coordinates that f32 rounds across a border.
        for sizes, new in (((5, 4), (10, 7)), ((14, 26), (2, 11)), ((6, 3), (12, 6)), ((4, 4), (1, 9))):
            x = floats("x", 1, 2, *sizes)
            case(
                f"resize_{mode}_{coordinates}_{sizes[0]}_{sizes[1]}_to_{new[0]}_{new[1]}",
                RESIZE.format(mode, coordinates, "false", f"{new[0]}, {new[1]}", ""),
                {"x": x},
                F.interpolate(x, size=new, **arguments),
            )
        x, like = floats("x", 1, 2, 9, 5), floats("like", 7, 11)
        case(
            f"resize_{mode}_{coordinates}_to_symbols",
            RESIZE.format(mode, coordinates, "false", "a, 2*b - 2", ""),
            {"x": x, "like": like},
            F.interpolate(x, size=(7, 20), **arguments),
            {"x": ["n", 2, "h", "w"], "like": ["a", "b"]},
        )
        if coordinates == "align_corners":
            continue
        for scales in ((1.3, 1.1), (0.6, 2.0), (2.5, 0.9)):
            x = floats("x", 1, 2, 3, 7)
            new = [int(np.floor(size * scale)) for size, scale in zip((3, 7), scales)]
            case(
                f"resize_{mode}_{coordinates}_by_{scales[0]}_{scales[1]}".replace(".", "_"),
                RESIZE.format(mode, coordinates, "false", f"{new[0]}, {new[1]}", f"{scales[0]}, {scales[1]}"),
                {"x": x},
                F.interpolate(x, scale_factor=scales, **arguments),
            )
    for mode, torch_mode in (("linear", "bilinear"), ("cubic", "bicubic")):
        x = floats("x", 1, 2, 11, 6)
        case(
            f"resize_{mode}_antialias",
            RESIZE.format(mode, "half_pixel", "true", "h - 7, w + 3", ""),
            {"x": x},
            F.interpolate(x, size=(4, 9), mode=torch_mode, antialias=True),
            {"x": ["n", 2, "h", "w"]},
        )
    x = floats("x", 2, 3, 5)
    case("resize_linear_1d", RESIZE.format("linear", "half_pixel", "false", "2*l + 1", ""), {"x": x},
         F.interpolate(x, size=11, mode="linear"), {"x": ["n", 3, "l"]})
    x = floats("x", 1, 2, 2, 3, 4)
    case("resize_linear_3d", RESIZE.format("linear", "half_pixel", "false", "3, 5, 2", ""), {"x": x},
         F.interpolate(x, size=(3, 5, 2), mode="trilinear"))
    case("resize_nearest_3d", RESIZE.format("nearest", "asymmetric", "false", "4, 6, 8", ""), {"x": x},
         F.interpolate(x, scale_factor=2.0, mode="nearest"))


def arithmetic():
    x = floats("x", 3, 5, scale=3.0)
    small = x / 4
    functions = {"tan": torch.tan, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh,
                 "sign": torch.sign, "round": torch.round, "trunc": torch.trunc}
    functions_inside_one = {"asin": torch.asin, "acos": torch.acos, "atanh": torch.atanh}
    for name, function in functions.items():
        values = torch.cat([x.ravel(), torch.tensor([0.5, 1.5, 2.5, -0.5, 0.0])])
        case(f"unary_{name}", f"%y = Unary(%x) {{fn={name}}}", {"x": values}, function(values))
    for name, function in functions_inside_one.items():
        case(f"unary_{name}", f"%y = Unary(%x) {{fn={name}}}", {"x": small}, function(small))
    case("unary_acosh", "%y = Unary(%x) {fn=acosh}", {"x": x.abs() + 1}, torch.acosh(x.abs() + 1))
    odd = torch.tensor([1.0, float("nan"), float("inf"), float("-inf"), 0.0])
    case("unary_is_nan", "%y = Unary(%x) {fn=is_nan}", {"x": odd}, torch.isnan(odd))
    case("unary_is_inf", "%y = Unary(%x) {fn=is_inf}", {"x": odd}, torch.isinf(odd))
    a, b = floats("a", 40, scale=9.0), floats("b", 40, scale=3.0)
    case("mod_of_floats", "%y = Binary(%a, %b) {fn=mod}", {"a": a, "b": b}, torch.remainder(a, b))
    case("fmod_of_floats", "%y = Binary(%a, %b) {fn=fmod}", {"a": a, "b": b}, torch.fmod(a, b))
    i, j = ints("i", -20, 20, 40), ints("j", 1, 6, 40) * torch.tensor([1, -1] * 20)
    case("mod_of_integers", "%y = Binary(%i, %j) {fn=mod}", {"i": i, "j": j}, torch.remainder(i, j))
    case("fmod_of_integers", "%y = Binary(%i, %j) {fn=fmod}", {"i": i, "j": j}, torch.fmod(i, j))
    for name, function in (("bit_and", torch.bitwise_and), ("bit_or", torch.bitwise_or), ("bit_xor", torch.bitwise_xor)):
        case(name, f"%y = Binary(%i, %j) {{fn={name}}}", {"i": i, "j": j}, function(i, j))
        narrow = {"i": i.to(torch.int32), "j": j.to(torch.int32)}
        case(f"{name}_i32", f"%y = Binary(%i, %j) {{fn={name}}}", narrow, function(narrow["i"], narrow["j"]))
    case("bit_not", "%y = Unary(%i) {fn=bit_not}", {"i": i}, torch.bitwise_not(i))
    by = ints("by", 0, 9, 40)
    case("shift_left", "%y = Binary(%i, %by) {fn=shift_left}", {"i": i, "by": by}, torch.bitwise_left_shift(i, by))
    case("shift_right", "%y = Binary(%i, %by) {fn=shift_right}", {"i": i, "by": by}, torch.bitwise_right_shift(i, by))
    narrow = {"i": i.to(torch.int32), "by": by.to(torch.int32)}
    case("shift_right_i32", "%y = Binary(%i, %by) {fn=shift_right}", narrow, torch.bitwise_right_shift(narrow["i"], narrow["by"]))
    p, q = i > 0, j > 0
    case("xor", "%y = Binary(%p, %q) {fn=xor}", {"p": p, "q": q}, torch.logical_xor(p, q))
    x = floats("x", 2, 3, 4)
    case("prod", "%y = Reduce(%x) {fn=prod, axes=[1], keepdims=false}", {"x": x}, x.prod(1), {"x": ["n", 3, "l"]})
    activations = {
        "softplus": F.softplus, "mish": F.mish, "elu": F.elu, "hard_sigmoid": F.hardsigmoid, "hard_swish": F.hardswish,
        "relu6": F.relu6, "relu2": lambda v: F.relu(v) ** 2,
    }
    x = floats("x", 2, 40, scale=8.0)
    for name, function in activations.items():
        case(f"activation_{name}", f"%y = Activation(%x) {{fn={name}}}", {"x": x}, function(x), {"x": ["n", 40]})
    case("activation_leaky_relu", "%slope = Constant {value=f32[](0.125)}\n%y = Activation(%x, %slope) {fn=leaky_relu}",
         {"x": x}, F.leaky_relu(x, 0.125), {"x": ["n", 40]})
    x, slope = floats("x", 2, 3, 5), floats("slope", 3)
    case("activation_prelu", "%1 = Unsqueeze(%slope) {axes=[1]}\n%y = Activation(%x, %1) {fn=leaky_relu}",
         {"x": x, "slope": slope}, F.prelu(x, slope), {"x": ["n", 3, "l"]})


def indexing():
    x = floats("x", 3, 6, 2)
    symbols = {"x": ["n", "l", 2]}
    for largest in (True, False):
        values, indices = torch.topk(x, 4, dim=1, largest=largest)
        case(f"top_k_{'largest' if largest else 'smallest'}",
             f"%values, %indices = TopK(%x) {{axis=1, k=l - 2, largest={str(largest).lower()}, sorted=true}}",
             {"x": x}, {"values": values, "indices": indices}, symbols)
    i = ints("i", 0, 5, 4, 9)
    for descending in (True, False):
        values, indices = torch.sort(i, dim=1, descending=descending, stable=True)
        case(f"stable_sort_{'down' if descending else 'up'}",
             f"%values, %indices = TopK(%i) {{axis=-1, k=9, largest={str(descending).lower()}, sorted=true}}",
             {"i": i}, {"values": values, "indices": indices})
    case("argmin", "%y = ArgMin(%x) {axis=1}", {"x": x}, x.argmin(1), symbols)
    case("argmin_of_integers", "%y = ArgMin(%i) {axis=0}", {"i": i}, torch.tensor(np.argmin(i.numpy(), 0)))
    at, updates = ints("at", -6, 6, 3, 4, 2), floats("updates", 3, 4, 2)
    for reduction, torch_reduction in (("add", "sum"), ("mul", "prod"), ("min", "amin"), ("max", "amax")):
        case(f"scatter_elements_{reduction}",
             f"%y = ScatterElements(%x, %at, %updates) {{axis=1, reduction={reduction}}}",
             {"x": x, "at": at, "updates": updates},
             x.scatter_reduce(1, at % 6, updates, torch_reduction), {"x": ["n", "l", 2]})
    once = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(k))[:4] for k in range(6)]).reshape(3, 2, 4).transpose(1, 2)
    case("scatter_elements", "%y = ScatterElements(%x, %at, %updates) {axis=1, reduction=none}",
         {"x": x, "at": once.contiguous(), "updates": updates}, x.scatter(1, once, updates))
    fewer = once[:2, :, :1].contiguous()
    case("scatter_elements_into_a_part", "%y = ScatterElements(%x, %at, %updates) {axis=1, reduction=none}",
         {"x": x, "at": fewer, "updates": updates[:2, :, :1]}, x.scatter(1, fewer, updates[:2, :, :1]))
    case("gather_elements_of_a_part", "%y = GatherElements(%x, %at) {axis=1}", {"x": x, "at": fewer}, x.gather(1, fewer))
    places, rows = torch.tensor([[0, 5], [2, -1], [1, 3]]), floats("rows", 3, 2)
    put = lambda accumulate: x.index_put((places[:, 0], places[:, 1]), rows, accumulate=accumulate)
    case("scatter_nd", "%y = ScatterNd(%x, %places, %rows) {reduction=none}", {"x": x, "places": places, "rows": rows}, put(False), {"x": ["n", "l", 2], "places": ["m", 2], "rows": ["m", 2]})
    again = torch.tensor([[0, 5], [0, 5], [1, 3]])
    case("scatter_nd_add", "%y = ScatterNd(%x, %places, %rows) {reduction=add}", {"x": x, "places": again, "rows": rows},
         x.index_put((again[:, 0], again[:, 1]), rows, accumulate=True), {"x": ["n", "l", 2]})
    case("gather_nd", "%y = GatherNd(%x, %places) {batch_dims=0}", {"x": x, "places": places}, x[places[:, 0], places[:, 1]], symbols)
    batch = ints("batch", 0, 6, 3, 5, 1)
    case("gather_nd_in_batches", "%y = GatherNd(%x, %at) {batch_dims=1}", {"x": x, "at": batch},
         torch.stack([x[k][batch[k, :, 0]] for k in range(3)]), {"x": ["n", "l", 2], "at": ["n", 5, 1]})


def born_sizes():
    x = floats("x", 3, 5)
    found = (x > 0.5).nonzero()
    case("non_zero", "%1 = Constant {value=f32[](0.5)}\n%2 = Compare(%x, %1) {fn=gt}\n%y = NonZero(%2) {count=found}",
         {"x": x}, found, {"x": ["n", "l"]})
    case("non_zero_of_nothing", "%1 = Constant {value=f32[](99)}\n%2 = Compare(%x, %1) {fn=gt}\n%3 = NonZero(%2) {count=found}\n%y = DimToTensor {dim=found + n}",
         {"x": x}, torch.tensor(3), {"x": ["n", "l"]})
    case("a_size_from_data", "%1 = NonZero(%x) {count=found}\n%2 = Iota {count=floor_div(found, 2) + n}\n%y = Reshape(%1) {shape=[2, found]}\n%z = Reshape(%2) {shape=[floor_div(found, 2) + n, 1]}",
         {"x": ints("i", 0, 2, 3, 5)},
         {"y": ints("i", 0, 2, 3, 5).nonzero().reshape(2, -1), "z": torch.arange(int(ints("i", 0, 2, 3, 5).sum()) // 2 + 3)[:, None]},
         {"x": ["n", "l"]})
    count = torch.tensor(4)
    case("item", "%1 = Item(%count) {value=c}\n%2 = Slice(%x) {axis=1, begin=0, end=c, step=1}\n%3 = Iota {count=2*c}\n%y = Cast(%3) {to=i64}\n%z = Unary(%2) {fn=neg}",
         {"x": x, "count": count}, {"y": torch.arange(8), "z": -x[:, :4]}, {"x": ["n", "l"]})
    case("a_size_that_is_born_in_a_branch",
         """%y = If(%flag, %x)
         graph then
         %0 = Input {name="x", dtype=f32, shape=[n, l]}
         %1 = NonZero(%0) {count=found}
         %2 = DimToTensor {dim=found + n}
         output y %2
         end
         graph else
         %0 = Input {name="x", dtype=f32, shape=[n, l]}
         %1 = DimToTensor {dim=n}
         output y %1
         end""",
         {"x": x, "flag": torch.tensor(True)}, torch.tensor(int((x != 0).sum()) + 3), {"x": ["n", "l"]})


def composites():
    from transformers import Qwen3MoeConfig
    from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeExperts

    experts = Qwen3MoeExperts(Qwen3MoeConfig(num_experts=5, hidden_size=6, moe_intermediate_size=4, hidden_act="silu"))
    gate_up, down = floats("gate_up", 5, 8, 6, scale=0.5), floats("down", 5, 6, 4, scale=0.5)
    with torch.no_grad():
        experts.gate_up_proj.copy_(gate_up)
        experts.down_proj.copy_(down)
        for name, batch, length in (("one_token", 1, 1), ("each_expert", 2, 5)):
            x, weight = floats("x", batch, length, 6), floats("weight", batch, length, 2).abs()
            expert = torch.stack([torch.arange(batch * length) % 5, (torch.arange(batch * length) * 2 + 1) % 5], -1)
            expert[:, 1] = torch.where(expert[:, 0] == expert[:, 1], (expert[:, 0] + 1) % 5, expert[:, 1])
            expected = experts(x.reshape(-1, 6), expert, weight.reshape(-1, 2)).reshape(x.shape)
            case(f"moe_{name}", "%y = Moe(%x, %expert, %weight, %gate_up, %down) {fn=silu}",
                 {"x": x, "expert": expert.reshape(batch, length, 2), "weight": weight, "gate_up": gate_up, "down": down},
                 expected, {"x": ["n", "l", 6], "expert": ["n", "l", 2], "weight": ["n", "l", 2]})
        first, experts.act_fn, other = expected.reshape(-1, 6), torch.nn.ReLU(), 4 - expert
        expected = experts(first, other, weight.reshape(-1, 2)).reshape(x.shape)
        case("moe_two_kinds", "%h = Moe(%x, %expert, %weight, %gate_up, %down) {fn=silu}\n"
             "%y = Moe(%h, %other, %weight, %gate_up, %down) {fn=relu}",
             {"x": x, "expert": expert.reshape(batch, length, 2), "other": other.reshape(batch, length, 2),
              "weight": weight, "gate_up": gate_up, "down": down}, expected)
    for length in (1, 7):
        x, step = floats("x", 2, length, 4), floats("step", 2, length, 4).abs() / 4
        a, b, c = -floats("a", 4, 3).abs(), floats("b", 2, length, 3), floats("c", 2, length, 3)
        state = floats("state", 2, 4, 3)
        last, rows = state.double(), []
        for t in range(length):
            dt = step[:, t, :, None].double()
            last = torch.exp(dt * a) * last + dt * b[:, t, None, :] * x[:, t, :, None]
            rows.append((last * c[:, t, None, :]).sum(-1))
        case(f"selective_scan_{length}", "%y, %last = SelectiveScan(%x, %step, %a, %b, %c, %state)",
             {"x": x, "step": step, "a": a, "b": b, "c": c, "state": state},
             {"y": torch.stack(rows, 1).float(), "last": last.float()},
             {"x": ["n", "l", 4], "step": ["n", "l", 4], "b": ["n", "l", 3], "c": ["n", "l", 3], "state": ["n", 4, 3]})
    x, step, b, c = x[:, :1], step[:, :1], b[:, :1], c[:, :1]
    dt = step[:, 0, :, None].double()
    last = torch.exp(dt * a) * state + dt * b[:, 0, None, :] * x[:, 0, :, None]
    case("selective_scan_step", "%y, %last = SelectiveScan(%x, %step, %a, %b, %c, %state)",
         {"x": x, "step": step, "a": a, "b": b, "c": c, "state": state},
         {"y": (last * c[:, 0, None, :]).sum(-1)[:, None].float(), "last": last.float()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="tests/golden")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        for make in (convolutions, pools, paddings, resizes, arithmetic, indexing, born_sizes, composites):
            make()
    rows = ",\n".join("  " + json.dumps(one, separators=(",", ":")) for one in CASES)
    version = torch.__version__.split("+")[0]
    (arguments.out / "ops.json").write_text(f'{{"torch": "{version}", "cases": [\n{rows}\n]}}\n')
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()

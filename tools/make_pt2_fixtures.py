#!/usr/bin/env python3
"""Makes tests/cases/pt2: small programs captured by torch.export, and what PyTorch computes with them.

  make_pt2_fixtures.py [--only NAME ...]

Each fixture is NAME.pt2 and NAME.json, calls with their inputs and outputs by name. A module computes many operators
of one group; the names of its outputs are the expressions. Files are recompressed: torch stores, and a test reads
either. Needs torch 2.13.
"""

import argparse
import io
import json
import math
import pathlib
import zipfile

import torch
import torch.nn.functional as F
from torch.export import Dim

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests/cases/pt2"
CASES = {}


def case(**options):
    def add(make):
        CASES[make.__name__] = (make, options)
        return make
    return add


class Expressions(torch.nn.Module):
    """Gives the value of each line of a text, by the line."""

    def __init__(self, lines, arguments, **tensors):
        super().__init__()
        self.lines = [line.strip() for line in lines.strip().splitlines() if line.strip()]
        self.arguments = arguments
        for name, tensor in tensors.items():
            if isinstance(tensor, torch.nn.Parameter):
                self.register_parameter(name, tensor)
            else:
                self.register_buffer(name, tensor)
        body = "\n".join(f"  out[{line!r}] = {line}" for line in self.lines)
        scope = {"torch": torch, "F": F, "math": math, "aten": torch.ops.aten}
        exec(f"def forward(self, {', '.join(arguments)}):\n  out = {{}}\n{body}\n  return out", scope)
        self.__class__ = type("Expressions", (Expressions,), {"forward": scope["forward"]})


def floats(*shape, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator) * scale


def ints(low, high, *shape, seed=0, dtype=torch.int64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator, dtype=dtype)


# ---- one group of operators each: (module, [inputs of the first call, of others]), dynamic shapes or None

@case()
def arithmetic():
    module = Expressions("""
        x + y
        x - 2 * y
        torch.add(x, y, alpha=3)
        torch.rsub(x, y, alpha=2)
        x * 2.5
        2 - x
        1 / (x + 3)
        x / 4
        i / j
        i / 2
        i + 0.5
        i + b
        b + b
        b * 3
        b & (i > 1)
        i & 3
        i | j
        i ^ j
        i << 1
        i >> 1
        i // j
        i // -3
        x // 0.7
        torch.div(i, j, rounding_mode='trunc')
        torch.div(x, y, rounding_mode='trunc')
        torch.div(x, y, rounding_mode='floor')
        i % 3
        i % -3
        x % 0.7
        torch.fmod(x, 0.7)
        torch.fmod(i, -3)
        x.pow(2)
        x.abs().pow(y)
        2 ** x
        i ** 2
        x * s
        i * s
        i32 + i
        i32 * 2
        i32 * 0.5
        half + x
        half * 2
        half + i
        half + bf
        d + x
        s64 + x
        torch.maximum(x, y)
        torch.minimum(i, j)
        torch.maximum(b, i > 1)
        x.clamp(-0.5, 0.5)
        x.clamp(max=0.3)
        x.clamp_min(0.1)
        i.clamp(0, 2)
        i.clamp(min=0.5)
        torch.clamp(x, min=y)
        torch.addcmul(x, y, y, value=0.5)
        torch.addcdiv(x, y, y.abs() + 1, value=2)
        torch.lerp(x, y, 0.3)
        torch.atan2(x, y)
        torch.where(b, x, y)
        torch.where(b, x, 0)
        torch.where(b, 1, i)
        torch.where(b, 1.5, i)
        x.masked_fill(b, -1.0)
        x.masked_fill(b, s)
        x == y
        x != 0
        i < j
        i <= 2
        i > 1.5
        x >= y
        torch.logical_and(x, i)
        torch.logical_or(b, i)
        torch.logical_xor(b, i)
        """, ["x", "y", "i", "j", "b", "s", "s64", "i32", "half", "bf", "d"])
    inputs = (floats(2, 3), floats(2, 3, seed=1), ints(-5, 6, 2, 3), ints(1, 4, 2, 3, seed=1),
              ints(0, 2, 2, 3, seed=2).bool(), torch.tensor(0.75), torch.tensor(1.25, dtype=torch.float64),
              ints(-5, 6, 2, 3, seed=3, dtype=torch.int32), floats(2, 3, seed=4).half(),
              floats(2, 3, seed=5).bfloat16(), floats(2, 3, seed=6).double())
    return module, [inputs], None


@case()
def elementwise():
    module = Expressions("""
        x.abs()
        -x
        x.sign()
        x.exp()
        torch.exp2(x)
        torch.expm1(x)
        p.log()
        torch.log2(p)
        torch.log10(p)
        torch.log1p(p)
        p.sqrt()
        p.rsqrt()
        x.square()
        p.reciprocal()
        x.sin()
        x.cos()
        x.tan()
        (x / 4).asin()
        (x / 4).acos()
        x.atan()
        x.sinh()
        x.cosh()
        x.tanh()
        x.asinh()
        (p + 1).acosh()
        (x / 4).atanh()
        x.sigmoid()
        x.erf()
        torch.special.erfc(x)
        torch.erfinv(x / 8)
        torch.erfinv(x.sign())
        (x * 3).floor()
        (x * 3).ceil()
        (x * 3).trunc()
        (h * 0.5).round()
        torch.round(x, decimals=1)
        torch.frac(x)
        i.abs()
        -i
        i.sqrt().nan_to_num(0)
        i.floor()
        i.sigmoid()
        ~i
        ~b
        torch.logical_not(i)
        torch.isnan(z)
        torch.isinf(z)
        torch.isfinite(z)
        torch.nan_to_num(z)
        torch.nan_to_num(z, 1, 2, 3)
        i.float()
        x.to(torch.int64)
        x.half()
        b.to(torch.float32)
        i.to(torch.bool)
        x.type_as(i)
        x.clone()
        x.double()
        F.relu(x)
        F.relu(i)
        F.relu6(x * 4)
        F.silu(x)
        F.mish(x)
        F.gelu(x)
        F.gelu(x, approximate='tanh')
        F.hardsigmoid(x * 3)
        F.hardswish(x * 3)
        F.softplus(x)
        F.softplus(x, beta=2, threshold=3)
        F.elu(x)
        F.elu(x, alpha=0.5)
        F.selu(x)
        F.celu(x, alpha=0.7)
        F.leaky_relu(x)
        F.leaky_relu(x, 0.2)
        F.prelu(x, self.slope)
        F.hardtanh(x, -0.4, 0.6)
        F.threshold(x, 0.1, 20)
        F.softshrink(x, 0.3)
        F.hardshrink(x, 0.3)
        F.tanhshrink(x)
        F.softsign(x)
        F.logsigmoid(x)
        F.glu(x, dim=1)
        F.dropout(x, 0.5, training=False)
        """, ["x", "p", "h", "i", "b", "z"], slope=torch.nn.Parameter(floats(4, seed=9).abs()))
    z = torch.tensor([math.nan, math.inf, -math.inf, 1.5, -2.0])
    inputs = (floats(3, 4), floats(3, 4, seed=1).abs() + 0.1, ints(-6, 7, 3, 4, seed=3).float(),
              ints(-5, 6, 3, 4, seed=2), ints(0, 2, 3, 4, seed=2).bool(), z)
    return module, [inputs], None


@case()
def reductions():
    module = Expressions("""
        x.sum()
        x.sum(1)
        x.sum((0, 2), keepdim=True)
        i.sum(-1)
        b.sum()
        x.sum(0, dtype=torch.float64)
        x.mean()
        x.mean(-1, keepdim=True)
        i.float().mean((0, 1))
        x.amax(1)
        x.amin((1, 2), keepdim=True)
        x.max()
        i.min()
        x.max(1)[0]
        x.max(1)[1]
        x.min(2, keepdim=True)[0]
        x.min(2, keepdim=True)[1]
        x.argmax()
        x.argmax(1)
        x.argmin(-1, keepdim=True)
        x.prod(1)
        (i + 6).prod()
        b.any()
        b.any(1)
        b.all(-1, keepdim=True)
        (x > 1).any((0, 2))
        x.var(1)
        x.var((0, 2), correction=0)
        x.std(-1, keepdim=True)
        x.std()
        torch.var_mean(x, 1)[0]
        torch.var_mean(x, 1)[1]
        torch.std_mean(x, (0, 1), correction=0)[0]
        torch.linalg.vector_norm(x, 2, -1)
        torch.linalg.vector_norm(x, 1)
        torch.linalg.vector_norm(x, math.inf, 1)
        torch.linalg.vector_norm(x, 3, 1, keepdim=True)
        x.norm(dim=1)
        x.norm(p=1)
        F.normalize(x, dim=1)
        torch.logsumexp(x, 1)
        x.softmax(-1)
        x.softmax(1, dtype=torch.float64)
        half.softmax(-1, dtype=torch.float32)
        F.log_softmax(x, 1)
        x.cumsum(1)
        i.cumsum(0)
        b.cumsum(1)
        torch.count_nonzero(i, dim=1)
        torch.histc(h, bins=4, min=0, max=3)
        s.sum()
        s.softmax(0)
        s.cumsum(0)
        s.max(0)[0]
        x.topk(2)[0]
        x.topk(2)[1]
        x.topk(2, dim=1, largest=False)[0]
        x.sort(1)[0]
        x.sort(1, descending=True)[1]
        x.argsort(-1)
        i.sort(-1)[0]
        x.kthvalue(2, 1)[0]
        torch.bucketize(x, edges)
        torch.bucketize(x, edges, right=True, out_int32=True)
        torch.searchsorted(edges, x)
        """, ["x", "i", "b", "half", "h", "s", "edges"])
    inputs = (floats(2, 3, 4), ints(-5, 6, 2, 3, 4), ints(0, 2, 2, 3, 4).bool(), floats(2, 3, 4, seed=1).half(),
              torch.tensor([0.0, 1.0, 3.0, 2.0, 2.0, 5.0, -1.0]), torch.tensor(0.5),
              torch.tensor([-1.0, 0.0, 0.25, 1.0]))
    return module, [inputs], None


@case()
def creation():
    module = Expressions("""
        torch.zeros(2, 3)
        torch.ones(x.shape[0], 2, dtype=torch.int64)
        torch.full((2,), 1.5)
        torch.full((2, 2), 7)
        torch.full((2,), True)
        torch.full((2,), torch.finfo(torch.float32).min)
        torch.full((1,), torch.iinfo(torch.int64).max)
        torch.full_like(x, 3)
        torch.zeros_like(i)
        torch.ones_like(x, dtype=torch.bool)
        x.new_zeros(3)
        x.new_ones((2, 1), dtype=torch.int32)
        x.new_full((2,), 2.5)
        torch.arange(4)
        torch.arange(4.0)
        torch.arange(x.shape[1])
        torch.arange(2, 9, 3)
        torch.arange(5, 0, -2)
        torch.arange(0, 1, 0.3)
        torch.arange(3, dtype=torch.float32)
        torch.arange(x.shape[0], x.shape[0] + x.shape[1])
        torch.linspace(0, 1, 5)
        torch.linspace(-2, 3, 4)
        torch.linspace(0.5, x.shape[1] - 0.5, 3)
        torch.eye(3)
        torch.eye(2, 4, dtype=torch.int64)
        torch.scalar_tensor(2.5)
        torch.tensor([1.5, 2.5])
        x.tril()
        x.triu(1)
        torch.ones(3, 4, dtype=torch.bool).tril(-1)
        F.one_hot(i, 5)
        i + torch.tensor(2)
        torch.meshgrid(torch.arange(2), torch.arange(3), indexing='ij')[0]
        torch.meshgrid(torch.arange(2), torch.arange(3), indexing='xy')[1]
        """, ["x", "i"])
    return module, [(floats(3, 4), ints(0, 5, 3)), (floats(2, 5, seed=1), ints(0, 5, 2, seed=1))], (
        {0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO})


@case()
def views():
    module = Expressions("""
        x.view(3, 8)
        x.view(-1, 4)
        x.reshape(2, -1)
        x.transpose(0, 1).reshape(-1)
        x.transpose(1, 2)
        x.permute(2, 0, 1)
        x.flatten()
        x.flatten(1)
        x.flatten(0, 1)
        x.unflatten(2, (2, -1))
        x.unsqueeze(0)
        x.unsqueeze(-1)
        x.unsqueeze(1).squeeze(1)
        x[:, :1].squeeze()
        x.unsqueeze(0).unsqueeze(2).squeeze((0, 2))
        x.squeeze(0)
        x[:, :1].expand(2, 5, 4)
        x[0, 0].expand(2, -1)
        x.expand(3, -1, -1, -1)
        x[:1].expand_as(x)
        x.transpose(0, 2).contiguous()
        x[0].t()
        x.mT
        x.movedim(0, -1)
        x.movedim((0, 1), (2, 0))
        x.swapaxes(0, 2)
        x[1:]
        x[:, 1:3]
        x[..., ::2]
        x[..., -3:-1]
        x[:, -2:]
        x[:, 5:]
        x[:, -9:2]
        x[0]
        x[:, -1]
        x[None, :, 0, None]
        x.narrow(1, 1, 2)
        x.select(2, -2)
        x.unbind(1)[2]
        x.split(2, dim=1)[0]
        x.split(2, dim=1)[1]
        x.split([1, 2], dim=1)[1]
        x.chunk(2, dim=2)[1]
        x.chunk(2, dim=1)[1]
        torch.tensor_split(x, 3, dim=2)[0]
        torch.tensor_split(x, 3, dim=2)[2]
        torch.slice_scatter(x, x[:, :1] * 0, 1, 1, 2)
        torch.select_scatter(x, x[0] * 0, 0, 1)
        torch.diagonal(x, 0, 1, 2)
        torch.diagonal(x[0], 1)
        x.unfold(2, 2, 1)
        x.unfold(1, 2, 1)
        torch.as_strided(x, (2, 3), (12, 2), 1)
        torch.broadcast_to(x[0], (2, 3, 4))
        """, ["x"])
    return module, [(floats(2, 3, 4),)], None


@case()
def shapes():
    module = Expressions("""
        torch.cat([x, y])
        torch.cat([x, x], -1)
        torch.cat([x, i], 1)
        torch.cat([x, torch.zeros(0)])
        torch.stack([x, y])
        torch.stack([x, y], -1)
        torch.hstack([x, y])
        torch.vstack([x[0], y[0]])
        x.repeat(2, 1)
        x.repeat(2, 3, 2)
        torch.tile(x, (2,))
        x.repeat_interleave(2, dim=1)
        x.repeat_interleave(3)
        x.roll(1, 0)
        x.roll((1, -1), (0, 1))
        x.roll(2)
        x.flip(0)
        x.flip((0, 1))
        torch.rot90(x)
        torch.rot90(x, 3)
        F.pad(x, (1, 2))
        F.pad(x, (1, 0, 2, 1), value=1.5)
        F.pad(x, (-1, 1))
        F.pad(c, (1, 2), mode='reflect')
        F.pad(c, (1, 2), mode='replicate')
        F.pad(c, (1, 1), mode='circular')
        F.pixel_shuffle(q, 2)
        F.pixel_unshuffle(p, 2)
        torch.channel_shuffle(q, 2)
        torch.diag_embed(x)
        torch.broadcast_tensors(x, x[0])[1]
        F.unfold(p, 2)
        F.unfold(p, (2, 2), dilation=1, padding=1, stride=2)
        """, ["x", "y", "i", "c", "q", "p"])
    inputs = (floats(2, 3), floats(2, 3, seed=1), ints(0, 9, 2, 3), floats(1, 2, 5, seed=2), floats(1, 4, 2, 3, seed=3),
              floats(1, 1, 4, 4, seed=4))
    return module, [inputs], None


@case()
def indexing():
    module = Expressions("""
        x[i]
        x[:, j]
        x[i, j[:3]]
        x[:, i2[:4], j]
        x[i3, :, j]
        x[i[:, None], j]
        x[i, None]
        x[..., j]
        x[i, :, 0]
        x[i - 2]
        torch.index_select(x, 1, j)
        torch.gather(x, 1, g)
        torch.take_along_dim(x, g[:, :1], 1)
        torch.take(x, j)
        F.embedding(i, self.table)
        x.masked_scatter(m, y)
        x.masked_fill(m[0], 0)
        torch.isin(j, torch.tensor([0, 2]))
        x.index_put((i,), y[:3])
        x.index_put((i, j[:3]), y[:3, 0])
        x.index_put((torch.tensor([0, 0]),), y[:2], accumulate=True)
        x.index_put((m,), torch.tensor(5.0))
        x.index_put((m[:, 0, 0],), torch.tensor(2.0))
        x.scatter(1, g, y[:3])
        x.scatter(1, g, 7.0)
        x.scatter_add(1, g, y[:3])
        x.scatter_reduce(1, g, y[:3], 'amax')
        x.scatter_reduce(1, g, y[:3], 'sum', include_self=False)
        x.index_copy(1, torch.tensor([2, 0]), y[:3, :2])
        x.index_add(1, torch.tensor([2, 0, 2]), y[:3, :3], alpha=2)
        x.index_fill(1, torch.tensor([1]), -3.0)
        """, ["x", "y", "i", "i2", "i3", "j", "g", "m"], table=torch.nn.Parameter(floats(5, 3, seed=7)))
    inputs = (floats(3, 4, 3), floats(4, 4, 3, seed=1), torch.tensor([2, 0, 1]), torch.tensor([1, 3, 0, 2]),
              torch.tensor([2, 0, 1, 1]), torch.tensor([0, 2, 1, 1]), ints(0, 4, 3, 2, 3), ints(0, 2, 3, 4, 3).bool())
    return module, [inputs], None


@case()
def matrices():
    module = Expressions("""
        a @ b
        a @ v
        v @ b
        v @ v
        n @ b
        n @ m
        torch.mm(a, b)
        torch.bmm(n, m)
        torch.mv(a, v)
        torch.outer(v, w)
        torch.addmm(w, a, b)
        torch.addmm(w, a, b, beta=0.5, alpha=2)
        torch.addmm(w * math.nan, a, b, beta=0)
        torch.baddbmm(w, n, m, beta=2, alpha=0.5)
        F.linear(a, b.t())
        F.linear(n, b.t(), w)
        F.bilinear(a, a, self.bilinear)
        torch.einsum('ij,jk->ik', a, b)
        torch.einsum('ij,jk', a, b)
        torch.einsum('bij,bjk->bik', n, m)
        torch.einsum('bij,jk->bki', n, b)
        torch.einsum('...ij,...jk->...ik', n, m)
        torch.einsum('i,j->ij', v, w)
        torch.einsum('ij->', a)
        torch.einsum('bij,bij->b', n, n)
        torch.einsum('bi,bij,j->b', n[:, 0, :2], n, v)
        torch.tensordot(n, m, dims=([2], [1]))
        torch.cdist(a, a + 1)
        F.cosine_similarity(n, n.flip(0), dim=-1)
        """, ["a", "b", "v", "w", "n", "m"], bilinear=torch.nn.Parameter(floats(2, 3, 3, seed=8)))
    inputs = (floats(2, 3), floats(3, 4, seed=1), floats(3, seed=2), floats(4, seed=3), floats(2, 2, 3, seed=4),
              floats(2, 3, 4, seed=5))
    return module, [inputs], None


@case()
def layers():
    module = Expressions("""
        F.layer_norm(x, (4,), self.w, self.b)
        F.layer_norm(x, (4,))
        F.layer_norm(x, (3, 4), eps=1e-3)
        F.rms_norm(x, (4,), self.w, 1e-6)
        F.rms_norm(x, (4,))
        F.batch_norm(c, self.mean, self.var, self.w, self.b)
        F.batch_norm(x.transpose(1, 2), self.mean, self.var, eps=1e-3)
        F.batch_norm(c, None, None, self.w, self.b, training=True)
        F.group_norm(c, 2, self.w, self.b)
        F.group_norm(c, 4)
        F.instance_norm(c)
        """, ["x", "c"], w=torch.nn.Parameter(floats(4, seed=2) + 1), b=torch.nn.Parameter(floats(4, seed=3)),
        mean=floats(4, seed=4), var=floats(4, seed=5).abs() + 0.5)
    return module, [(floats(2, 3, 4), floats(2, 4, 2, 3, seed=1))], None


@case()
def attention():
    module = Expressions("""
        F.scaled_dot_product_attention(q, k, v)
        F.scaled_dot_product_attention(q, k, v, scale=0.3)
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, :1])
        F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(~mask, -math.inf))
        F.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(mask, 0.0, -math.inf))
        F.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(mask, 0.0, torch.finfo(torch.float32).min))
        F.scaled_dot_product_attention(q, k, v, is_causal=True)
        F.scaled_dot_product_attention(q, k[:, :, :3], v[:, :, :3], is_causal=True)
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
        F.scaled_dot_product_attention(q[0], k[0], v[0])
        """, ["q", "k", "v", "mask", "bias"])
    mask = ints(0, 2, 2, 4, 3, 5).bool()
    mask[0, 0, 1] = False
    inputs = (floats(2, 4, 3, 4), floats(2, 4, 5, 4, seed=1), floats(2, 4, 5, 4, seed=2), mask,
              floats(2, 4, 3, 5, seed=3))
    return module, [inputs], None


@case()
def windows():
    module = Expressions("""
        F.conv1d(s, self.w1, self.b1)
        F.conv1d(s, self.w1, stride=2, padding=1)
        F.conv1d(s, self.w1, padding='same')
        F.conv1d(s[0], self.w1)
        F.conv1d(s, self.depthwise, groups=4, dilation=2)
        F.conv2d(x, self.w2, stride=(2, 1), padding=(0, 1))
        F.conv3d(x[:, :, None], self.w3)
        F.conv_transpose1d(s, self.t1, stride=2, padding=1, output_padding=1)
        F.conv_transpose2d(x, self.t2)
        F.max_pool1d(s, 2)
        F.max_pool2d(x, 3, 2, 1)
        F.max_pool2d(F.pad(-x.abs(), (1, 1, 1, 1)), 3, 2)
        F.max_pool2d(x, 2, 2, ceil_mode=True)
        F.avg_pool1d(s, 2)
        F.avg_pool2d(x, 2, padding=1)
        F.avg_pool2d(x, 9, ceil_mode=True)
        F.avg_pool2d(x, 2, padding=1, count_include_pad=False)
        F.adaptive_avg_pool1d(s, 3)
        F.adaptive_avg_pool2d(x, 1)
        F.adaptive_avg_pool2d(x, (2, 3))
        F.interpolate(x, scale_factor=2)
        F.interpolate(x, size=(3, 7))
        F.interpolate(x, size=(3, 7), mode='nearest-exact')
        F.interpolate(x, size=(7, 9), mode='bilinear')
        F.interpolate(x, size=(7, 9), mode='bilinear', align_corners=True)
        F.interpolate(x, scale_factor=1.5, mode='bilinear')
        F.interpolate(x, size=(7, 9), mode='bicubic')
        F.interpolate(x, size=(3, 2), mode='bilinear', antialias=True)
        F.interpolate(s, size=9, mode='linear')
        """, ["s", "x"], w1=torch.nn.Parameter(floats(3, 4, 3, seed=2)), b1=torch.nn.Parameter(floats(3, seed=3)),
        depthwise=torch.nn.Parameter(floats(4, 1, 2, seed=4)), w2=torch.nn.Parameter(floats(2, 2, 2, 3, seed=5)),
        w3=torch.nn.Parameter(floats(1, 2, 1, 2, 2, seed=6)), t1=torch.nn.Parameter(floats(4, 2, 3, seed=7)),
        t2=torch.nn.Parameter(floats(2, 1, 2, 2, seed=8)))
    return module, [(floats(1, 4, 6), floats(1, 2, 5, 4, seed=1))], None


@case()
def complex_numbers():
    module = Expressions("""
        torch.view_as_real(torch.polar(torch.ones_like(angle), angle))
        torch.view_as_real(torch.view_as_complex(q) * torch.polar(torch.ones_like(angle), angle)[:, None])
        torch.view_as_real(torch.view_as_complex(q) * torch.polar(angle, angle)[:, None] * 2.0).flatten(2)
        torch.view_as_complex(q).real
        torch.view_as_complex(q).imag
        torch.view_as_complex(q).abs()
        torch.view_as_real(torch.complex(angle, angle * 2)[1:].unsqueeze(-1).transpose(0, 1))
        """, ["q", "angle"])
    return module, [(floats(3, 2, 4, 2), floats(3, 4, seed=1))], None


@case()
def sampling():
    module = Expressions("""
        F.grid_sample(x, g, align_corners=False)
        F.grid_sample(x, g, align_corners=True)
        F.grid_sample(x, g, mode='nearest', align_corners=False)
        F.grid_sample(x, g, padding_mode='border', align_corners=False)
        F.fold(c, (4, 3), 2)
        F.fold(c[:, :, :4], (3, 2), 2, padding=1, stride=2)
        x.cumprod(3)
        x.diff(dim=2)
        x.median(2)[0]
        x.median(3, keepdim=True)[1]
        torch.tril_indices(3, 3)
        torch.triu_indices(2, 4, 1)
        torch.logaddexp(x, x * 2)
        torch.hypot(x, x * 2)
        torch.xlogy(x.abs(), x.abs() + 1)
        torch.logit(x.sigmoid(), eps=1e-3)
        x[0, 0].clone().fill_diagonal_(7)
        """, ["x", "g", "c"])
    return module, [(floats(2, 2, 3, 4), floats(2, 2, 3, 2, seed=1), floats(1, 4, 6, seed=2))], None


# ---- features of programs

class Writes(torch.nn.Module):
    """Writes in place, to views and to inputs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x, cache, position):
        y = x.clone()
        y[:, 1:3] = 0
        y[0].add_(1)
        y.view(-1)[::2].mul_(3)
        rows = y.transpose(0, 1)
        rows[0] += 10
        z = torch.zeros_like(x)
        z.copy_(x[0])
        z[z > 0] = -1
        z.T.fill_diagonal_(4) if False else None
        w = x.clone().reshape(-1)
        w[0] = 5
        kept = x.transpose(0, 1).reshape(-1)
        kept[0] = 9
        self.count.add_(1)
        cache.index_copy_(1, position, x[:, :2])
        return {"y": y, "rows": rows, "z": z, "w": w, "kept": kept, "x": x * 1, "cache_sum": cache.sum(1)}


@case()
def writes():
    calls = [(floats(2, 4), torch.zeros(2, 5), torch.tensor([1, 3])),
             (floats(2, 4, seed=1), floats(2, 5, seed=2), torch.tensor([0, 4]))]
    return Writes(), calls, None


@case(decompose=True)
def writes_functional():
    return writes()


class Control(torch.nn.Module):
    def forward(self, x, flag, steps):
        chosen = torch.cond(flag, lambda a: a.sin() + 1, lambda a: a * 2, (x,))
        from torch._higher_order_ops.while_loop import while_loop
        count, total = while_loop(lambda i, t: i < steps, lambda i, t: (i + 1, t * 1.5 + x.mean()),
                                  (torch.zeros((), dtype=torch.int64), x))
        from torch._higher_order_ops.scan import scan
        last, all_sums = scan(lambda carry, row: (carry + row, carry * row), x[0], x)
        with torch.no_grad():
            y = x.exp()
        return {"chosen": chosen, "count": count, "total": total, "last": last, "all": all_sums, "y": y}


@case()
def control():
    return Control(), [(floats(3, 2), torch.tensor(True), torch.tensor(3)),
                       (floats(3, 2, seed=1), torch.tensor(False), torch.tensor(0))], None


class ControlSizes(torch.nn.Module):
    """Bodies that read sizes of what is outside."""

    def forward(self, x):
        rows = x.shape[0]
        from torch._higher_order_ops.while_loop import while_loop
        from torch._higher_order_ops.scan import scan
        chosen = torch.cond(x.sum() > 0, lambda a: a * rows, lambda a: a + rows, (x,))
        count, total = while_loop(lambda i, t: i < rows, lambda i, t: (i + 1, t * 1.5 + rows),
                                  (torch.zeros((), dtype=torch.int64), x))
        last, all_sums = scan(lambda carry, row: (carry + row, carry * rows), x[0], x)
        return {"chosen": chosen, "count": count, "total": total, "last": last, "all": all_sums}


@case()
def control_sizes():
    return ControlSizes(), [(floats(3, 2),), (floats(5, 2, seed=1),)], ({0: Dim.AUTO},)


class Dynamic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 6)

    def forward(self, x, mask):
        b, s, _ = x.shape
        h = self.linear(x).view(b, s, 2, 3).transpose(1, 2)
        position = torch.arange(s)
        causal = position[:, None] >= position[None, :]
        seen = causal & mask[:, None, None, :].bool()
        y = F.scaled_dot_product_attention(h, h, h, attn_mask=seen)
        return {"y": y.transpose(1, 2).reshape(b, s, -1), "half": x[:, : s // 2], "last": x[:, -1],
                "tail": x[:, 1:], "flat": x.reshape(b * s, 4), "scaled": x * s, "ratio": x.sum(1) / s,
                "rolled": x.roll(1, 1), "pairs": (x[:, None] - x[:, :, None]).abs().sum(-1), "size": b * s}


@case(seed=3)
def dynamic():
    def call(b, s, seed):
        mask = torch.ones(b, s, dtype=torch.int64)
        mask[0, -1] = 0
        return floats(b, s, 4, seed=seed), mask
    axes = {0: Dim.AUTO, 1: Dim.AUTO}
    return Dynamic(), [call(2, 5, 0), call(3, 8, 1), call(1, 4, 2)], (axes, axes)


class Data(torch.nn.Module):
    """Sizes that are born from data."""

    def forward(self, x, mask, n):
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= 8)
        some = torch.sym_ite((n > 1).item(), 2, 3)
        torch._check(some >= 1)
        torch._check(some <= 4)
        places = mask.nonzero()
        return {"picked": x[mask], "places": places, "columns": torch.nonzero(mask, as_tuple=True)[1],
                "selected": torch.masked_select(x, mask), "range": torch.arange(count), "ones": torch.ones(count, 2),
                "sum": x[mask].sum(), "some": torch.arange(some), "all": torch.ops.aten._is_all_true(mask)}


@case()
def data_dependent():
    return Data(), [(floats(2, 3), torch.tensor([[True, False, True], [False, True, True]]), torch.tensor(3)),
                    (floats(2, 3, seed=1), torch.tensor([[False, False, True], [False, False, False]]),
                     torch.tensor(1))], None


class Tree(torch.nn.Module):
    """Arguments and results in containers; an int, a None, a flag."""

    def forward(self, a, pair, more, scale, *, nothing=None, flag=True):
        x = a + pair[0] * scale
        return {"sum": x, "nested": [pair[1] if flag else a, (more["k"], None)], "number": 3}


@case()
def tree():
    def call(seed):
        return ((floats(2, seed=seed), (floats(2, seed=seed + 1), floats(2, seed=seed + 2)),
                 {"k": floats(2, seed=seed + 3)}, 2), {"nothing": None, "flag": True})
    return Tree(), [call(0), call(10)], None


class Weights(torch.nn.Module):
    """Tied, transposed, sliced and expanded weights; buffers of both kinds; other dtypes."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(floats(3, 4))
        self.tied = self.a
        self.turned = torch.nn.Parameter(floats(4, 3, seed=1).t())
        self.register_buffer("part", floats(4, 4, seed=2)[1:3, ::2])
        self.register_buffer("wide", torch.tensor([1.5]).expand(4))
        self.register_buffer("local", torch.tensor([1, 2, 3, 4], dtype=torch.int16), persistent=False)
        self.register_buffer("short", floats(4, seed=3).bfloat16())
        self.register_buffer("scalar", torch.tensor(2.5))
        self.register_buffer("empty", torch.zeros(0, 4))

    def forward(self, x):
        return {"a": x @ self.a.t(), "tied": x @ self.tied.t(), "turned": x @ self.turned.t(), "part": x[:2] @ self.part.repeat(2, 1),
                "wide": x * self.wide, "local": x * self.local, "short": x * self.short, "scalar": x * self.scalar,
                "empty": torch.cat([x, self.empty]), "constant": x + torch.tensor([1.0, 2.0, 3.0, 4.0])}


@case(stored=True)
def weights():
    return Weights(), [(floats(2, 4, seed=5),)], None


@case(stored=True, pickled=True)
def weights_pickled():
    """As torch 2.8 wrote weights and constants."""
    return weights()


# ---- writing

def tensor_json(tensor):
    data = tensor.detach().reshape(-1)
    name = str(tensor.dtype).removeprefix("torch.")
    values = data.to(torch.float64).tolist() if tensor.dtype.is_floating_point else data.to(torch.int64).tolist()
    words = [("NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity") if isinstance(v, float) and
             not math.isfinite(v) else v for v in values]
    return {"dtype": name, "shape": list(tensor.shape), "values": words}


def leaves(value, path=""):
    """As Transformers' exporters name them: keys and indices with dots between."""
    if isinstance(value, torch.Tensor):
        return {path or "output": value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    found = {}
    for key, child in items:
        found.update(leaves(child, f"{path}.{key}" if path else str(key)))
    return found


def named_inputs(module, args, kwargs):
    import inspect
    names = list(inspect.signature(module.forward).parameters)
    return leaves({**dict(zip(names, args)), **kwargs})


def copies(value):
    return torch.utils._pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, value)


def with_sizes(result):
    """Sizes are tensors of our programs."""
    return {k: torch.tensor(v) if type(v) is int and k == "size" else v for k, v in result.items()}


def golden_call(module, call, initial):
    args, kwargs = call if len(call) == 2 and isinstance(call[1], dict) and isinstance(call[0], tuple) else (call, {})
    for name, tensor in module.state_dict().items():
        if not torch.equal(tensor, initial[name]):
            tensor.copy_(initial[name])
    inputs = {k: v.clone() for k, v in named_inputs(module, args, kwargs).items()}
    args, kwargs = copies(args), copies(kwargs)
    outputs = leaves(with_sizes(module(*args, **kwargs)))
    result = {"inputs": {}, "outputs": {}}
    after = named_inputs(module, args, kwargs)
    written = {k for k in inputs if not torch.allclose(inputs[k].double(), after[k].double(), 0, 0, equal_nan=True)}
    for name, tensor in inputs.items():
        both = name in written or name in outputs
        result["inputs"]["input." + name if both else name] = tensor_json(tensor)
    for name, tensor in outputs.items():
        result["outputs"]["output." + name if name in inputs else name] = tensor_json(tensor)
    for name in written:
        result["outputs"]["output." + name] = tensor_json(after[name])
    for name, tensor in module.state_dict().items():
        if not torch.equal(tensor, initial[name]):
            result["inputs"]["input." + name] = tensor_json(initial[name])
            result["outputs"]["output." + name] = tensor_json(tensor)
    return result


def pickled(tensors):
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    return buffer.getvalue()


def recompress(program, data, path, options):
    """Without sample inputs; the same bytes each time."""
    source = zipfile.ZipFile(io.BytesIO(data))
    stored = options.get("stored", False)
    with zipfile.ZipFile(path, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if options.get("pickled") and ("/data/weights/" in info.filename or "/data/constants/" in info.filename):
                continue
            if info.filename.endswith("models/model.json"):
                content = json.dumps(json.loads(content), separators=(",", ":")).encode()
            if "/sample_inputs/" in info.filename:
                content = b""
            entry = zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            target.writestr(entry, content)
        if options.get("pickled"):
            root = source.namelist()[0].split("/")[0]
            target.writestr(zipfile.ZipInfo(f"{root}/data/weights/model.pt"), pickled(dict(program.state_dict)))
            target.writestr(zipfile.ZipInfo(f"{root}/data/constants/model.pt"), pickled(dict(program.constants)))


def strip(graph_module):
    for module in graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                for key in ("stack_trace", "torch_fn", "from_node", "source_fn_stack"):
                    node.meta.pop(key, None)


def make(name, build, options):
    torch.manual_seed(options.get("seed", 0))
    module, calls, dynamic = build()
    module.eval()
    initial = {k: v.clone() for k, v in module.state_dict().items()}
    first = calls[0]
    args, kwargs = first if len(first) == 2 and isinstance(first[1], dict) and isinstance(first[0], tuple) else (first, {})
    with torch.no_grad():
        program = torch.export.export(module, copies(args), copies(kwargs), dynamic_shapes=dynamic)
        if options.get("decompose"):
            program = program.run_decompositions()
        strip(program.graph_module)
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        recompress(program, buffer.getvalue(), FOLDER / f"{name}.pt2", options)
        golden = {"calls": [golden_call(module, call, initial) for call in calls]}
    (FOLDER / f"{name}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(name, (FOLDER / f"{name}.pt2").stat().st_size, (FOLDER / f"{name}.json").stat().st_size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    only = parser.parse_args().only
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (build, options) in CASES.items():
        if not only or name in only:
            make(name, build, options)


if __name__ == "__main__":
    main()

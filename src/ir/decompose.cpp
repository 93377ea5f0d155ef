#include "ir/decompose.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "ir/build.h"
#include "ir/decompose_loops.h"

namespace tranship::ir {
namespace {

Value linear(Value x, Value weight, Value bias) {
  const Value y = matmul(x, transpose(weight, {1, 0}));
  return bias ? y + bias : y;
}

Value rms_norm(Value x, Value weight, double eps) {
  const Value wide = cast(x, DType::kF32);
  const Value mean =
      reduce(ReduceKind::kMean, binary(BinaryKind::kPow, wide, scalar(x.graph(), DType::kF32, 2)),
             {-1}, true);
  return cast(wide / unary(UnaryKind::kSqrt, mean + eps), x.dtype()) * weight;
}

Value layer_norm(Value x, Value weight, Value bias, double eps) {
  const Value wide = cast(x, DType::kF32);
  const Value centered = wide - reduce(ReduceKind::kMean, wide, {-1}, true);
  const Value variance = reduce(ReduceKind::kMean, centered * centered, {-1}, true);
  const Value y = cast(centered / unary(UnaryKind::kSqrt, variance + eps), x.dtype()) * weight;
  return bias ? y + bias : y;
}

/// With tables [cos, cos] and [-sin, sin], shared by all layers, a layer needs one product and sum
/// of x and of x with its halves swapped.
Value rope(Value x, Value cos, Value sin) {
  const int64_t half = cos.shape()[-1].value();
  const Dim& head = x.shape()[-1];
  const Value cos2 = unsqueeze(concat({cos, cos}, -1), {1});
  const Value sin2 = unsqueeze(concat({unary(UnaryKind::kNeg, sin), sin}, -1), {1});
  const Value first = slice(x, -1, 0, half);
  const Value second = slice(x, -1, half, 2 * half);
  const bool whole = head == Dim(2 * half);
  const Value turned = whole ? x : slice(x, -1, 0, 2 * half);
  const Value y = turned * cos2 + concat({second, first}, -1) * sin2;
  return whole ? y : concat({y, slice(x, -1, 2 * half, head)}, -1);
}

}  // namespace

Value visible_keys(Graph& g, const Attention& a, Shape q, Shape k, Value key_mask) {
  Value keep;
  if (a.causal && !(q[2] == Dim(1))) {  // a single query stands last: it sees every key
    const Value query = unsqueeze(iota(g, q[2]) + dim_to_tensor(g, k[2] - q[2]), {1});  // [S, 1]
    keep = compare(CompareKind::kLessEqual, iota(g, k[2]), query);                      // [S, T]
  }
  if (a.window) {
    const Value oldest = unsqueeze(iota(g, q[2]) + dim_to_tensor(g, k[2] - q[2] - *a.window), {1});
    keep = and_if_present(keep, compare(CompareKind::kGreater, iota(g, k[2]), oldest));
  }
  return and_if_present(keep, key_mask ? unsqueeze(key_mask, {1, 2}) : Value());
}

double lowest(DType dtype) {
  if (dtype == DType::kF16) return -65504;
  if (dtype == DType::kBF16) return -3.3895313892515355e38;
  return std::numeric_limits<float>::lowest();
}

namespace {

Value attention(Graph& g, const Attention& a, std::span<const Value> in) {
  Value q = in[0] * a.scale;
  const Value k = in[1], v = in[2];
  const Value key_mask = in.size() > 3 ? in[3] : Value();
  const Value bias = in.size() > 4 ? in[4] : Value();
  const bool bias_is_mask = bias && bias.dtype() == DType::kBool;
  const Shape qs = q.shape(), ks = k.shape();
  const int64_t group = qs[1].value() / ks[1].value();
  // Heads that share keys are stacked along the queries: keys are never repeated.
  if (group > 1) q = reshape(q, {qs[0], ks[1], group * qs[2], qs[3]});
  Value scores = matmul(q, transpose(k, {0, 1, 3, 2}));
  scores = reshape(scores, {qs[0], qs[1], qs[2], ks[2]});
  if (bias && !bias_is_mask) scores = scores + bias;
  Value keep = visible_keys(g, a, qs, ks, key_mask);
  if (bias_is_mask) keep = and_if_present(keep, bias);
  if (keep) {
    const Value hidden = scalar(g, scores.dtype(), lowest(scores.dtype()));
    scores = scores + where(keep, scalar(g, scores.dtype(), 0), hidden);
  }
  Value weights = softmax(scores, -1);
  if (group > 1) weights = reshape(weights, {qs[0], ks[1], group * qs[2], ks[2]});
  Value y = matmul(weights, v);
  y = reshape(y, {qs[0], qs[1], qs[2], v.shape()[3]});
  if (!key_mask && !bias_is_mask) return y;  // otherwise a query may see no key at all
  return where(reduce(ReduceKind::kAny, keep, {-1}, true), y, scalar(g, y.dtype(), 0));
}

}  // namespace

std::vector<Value> decompose(Graph& to, const Op& op, std::span<const Value> operands) {
  const auto in = [&](size_t i) { return i < operands.size() ? operands[i] : Value(); };
  switch (op.kind) {
    case OpKind::kLinear:
      return {linear(in(0), in(1), in(2))};
    case OpKind::kEmbedding:
      return {gather(in(0), in(1), 0)};
    case OpKind::kRmsNorm:
      return {rms_norm(in(0), in(1), as<RmsNorm>(op).eps)};
    case OpKind::kLayerNorm:
      return {layer_norm(in(0), in(1), in(2), as<LayerNorm>(op).eps)};
    case OpKind::kActivation:
      return {decompose_activation(as<Activation>(op).fn, in(0), in(1))};
    case OpKind::kRope:
      return {rope(in(0), in(1), in(2))};
    case OpKind::kAttention:
      return {attention(to, as<Attention>(op), operands)};
    case OpKind::kCacheAppend:
      return {concat({in(0), in(1)}, 2)};
    case OpKind::kMoe:
      return {decompose_moe(to, as<Moe>(op).fn, operands)};
    case OpKind::kSelectiveScan:
      return decompose_selective_scan(to, operands);
    default:
      break;
  }
  fail(ErrorKind::kInternal, "[decompose] {} is a primitive: this is a bug in tranship",
       name(op.kind));
}

}  // namespace tranship::ir

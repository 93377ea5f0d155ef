// Normalizations.
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::Dim;
using ir::ReduceKind;
using ir::Shape;
using ir::UnaryKind;
using ir::Value;

/// The last axes as one, and the weights with them.
struct Flat {
  Value x;
  Value weight;
  Value bias;
  Shape shape;
};

Flat flatten(Call& call, Value x, const std::vector<Dim>& normalized, Value weight, Value bias) {
  const auto count = std::ssize(normalized);
  if (count < 1 || count > x.rank()) call.corrupt("{} axes are normalized of {}", count, x.rank());
  Dim features = 1;
  for (const Dim& d : normalized) features = features * d;
  if (count == 1) x = with_features(x, normalized[0]);
  Flat out{x, weight, bias, x.shape()};
  if (count > 1) {
    Shape flat(std::vector<Dim>(x.shape().dims.begin(), x.shape().dims.end() - count));
    flat.dims.push_back(features);
    out.x = reshape(x, flat);
    if (weight) out.weight = reshape(weight, {features});
    if (bias) out.bias = reshape(bias, {features});
  }
  if (!weight) out.weight = full(call.graph(), x.dtype(), 1, {features});
  out.weight = cast(out.weight, x.dtype());
  if (bias) out.bias = cast(out.bias, x.dtype());
  return out;
}

Value layer_norm_of(Call& call, const Flat& f, double eps) {
  ir::LayerNorm op;
  op.eps = eps;
  return reshape(add_node(call.graph(), op, {f.x, f.weight, f.bias}), f.shape);
}

Results layer_norm(Call& call) {
  const Value x = call.tensor("input");
  const std::vector<Dim> normalized = call.sizes("normalized_shape");
  const Value weight = call.optional_tensor("weight"), bias = call.optional_tensor("bias");
  const double eps = call.real("eps", 1e-5);
  call.ignore({"cudnn_enable"});
  return {layer_norm_of(call, flatten(call, x, normalized, weight, bias), eps)};
}

/// With the mean and 1 / sqrt(variance + eps), which only training needs.
Results native_layer_norm(Call& call) {
  Results out = layer_norm(call);
  if (call.is_used(1) || call.is_used(2)) fail(ErrorKind::kUnsupported, "the statistics");
  return out;
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0.0009765625;
    case DType::kBF16:
      return 0.0078125;
    case DType::kF64:
      return std::numeric_limits<double>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

Results rms_norm(Call& call) {
  const Value x = call.tensor("input");
  const std::vector<Dim> normalized = call.sizes("normalized_shape");
  const Value weight = call.optional_tensor("weight");
  ir::RmsNorm op;
  op.eps = call.real("eps", epsilon_of(x.dtype()));
  const Flat f = flatten(call, x, normalized, weight, {});
  if (call.is_used(1)) fail(ErrorKind::kUnsupported, "the statistics");
  return {reshape(add_node(call.graph(), op, {f.x, f.weight}), f.shape)};
}

/// A vector along axis 1 of many.
Value per_channel(Value vector, int64_t rank) {
  std::vector<int64_t> axes = all_axes(rank);
  axes.erase(axes.begin() + 1);
  return axes.empty() ? vector : unsqueeze(vector, axes);
}

Value affine(Value y, Value weight, Value bias) {
  if (weight) y = y * per_channel(weight, y.rank());
  return bias ? y + per_channel(bias, y.rank()) : y;
}

/// (x - mean) / sqrt(variance + eps), with the mean and variance over some axes.
Value with_own_statistics(Value x, const std::vector<int64_t>& axes, double eps) {
  const Value mean = reduce(ReduceKind::kMean, x, axes, true);
  const Value centered = x - mean;
  const Value variance = reduce(ReduceKind::kMean, centered * centered, axes, true);
  return centered / unary(UnaryKind::kSqrt, variance + eps);
}

struct BatchNorm {
  Value x, weight, bias, mean, variance;
};
BatchNorm batch_norm_operands(Call& call) {
  BatchNorm b;
  b.x = call.tensor("input");
  b.weight = call.optional_tensor("weight");
  b.bias = call.optional_tensor("bias");
  b.mean = call.optional_tensor("running_mean");
  b.variance = call.optional_tensor("running_var");
  return b;
}

Value batch_norm_of(const BatchNorm& b, double eps) {
  // One factor and one summand for each channel: constants, if the statistics are.
  const Value deviation = unary(UnaryKind::kSqrt, cast(b.variance, b.x.dtype()) + eps);
  const Value one = scalar(b.x.graph(), b.x.dtype(), 1);
  const Value factor = (b.weight ? b.weight : one) / deviation;
  const Value moved = cast(b.mean, b.x.dtype()) * factor;
  const Value summand = b.bias ? b.bias - moved : unary(UnaryKind::kNeg, moved);
  return affine(b.x, factor, summand);
}

Results batch_norm(Call& call) {
  const BatchNorm b = batch_norm_operands(call);
  const bool own = call.flag("training", false);
  if (own ? b.mean || b.variance : !b.mean || !b.variance)
    fail(ErrorKind::kUnsupported, "batch_norm in training: capture the model after .eval()");
  call.ignore({"momentum"});
  const double eps = call.real("eps");
  call.ignore({"cudnn_enabled"});
  if (!own) return {batch_norm_of(b, eps)};
  std::vector<int64_t> axes = all_axes(b.x.rank());
  axes.erase(axes.begin() + 1);
  return {affine(with_own_statistics(b.x, axes, eps), b.weight, b.bias)};
}

Results batch_norm_inference(Call& call) {
  const BatchNorm b = batch_norm_operands(call);
  call.ignore({"momentum"});
  const double eps = call.real("eps");
  if (call.is_used(1) || call.is_used(2)) fail(ErrorKind::kUnsupported, "the statistics");
  return {batch_norm_of(b, eps)};
}

Value group_norm_of(Call& call, Value x, int64_t groups, Value weight, Value bias, double eps) {
  if (x.rank() < 2 || groups < 1) call.corrupt("{} groups of {}", groups, x.shape().text());
  Dim elements = floor_div(x.shape()[1], groups);
  for (int64_t axis = 2; axis < x.rank(); ++axis) elements = elements * x.shape()[axis];
  const Value grouped = reshape(x, {x.shape()[0], Dim(groups), elements});
  return affine(reshape(with_own_statistics(grouped, {2}, eps), x.shape()), weight, bias);
}

Results group_norm(Call& call) {
  const Value x = call.tensor("input");
  const int64_t groups = call.integer("num_groups");
  const Value weight = call.optional_tensor("weight"), bias = call.optional_tensor("bias");
  const double eps = call.real("eps", 1e-5);
  call.ignore({"cudnn_enabled"});
  return {group_norm_of(call, x, groups, weight, bias, eps)};
}

Results native_group_norm(Call& call) {
  const Value x = call.tensor("input");
  const Value weight = call.optional_tensor("weight"), bias = call.optional_tensor("bias");
  call.ignore({"N", "C", "HxW"});
  const int64_t groups = call.integer("group");
  const double eps = call.real("eps");
  if (call.is_used(1) || call.is_used(2)) fail(ErrorKind::kUnsupported, "the statistics");
  return {group_norm_of(call, x, groups, weight, bias, eps)};
}

Results instance_norm(Call& call) {
  const BatchNorm b = batch_norm_operands(call);
  const bool own = call.flag("use_input_stats", true);
  call.ignore({"momentum"});
  const double eps = call.real("eps");
  call.ignore({"cudnn_enabled"});
  std::vector<int64_t> axes = all_axes(b.x.rank());
  axes.erase(axes.begin(), axes.begin() + 2);
  if (own) return {affine(with_own_statistics(b.x, axes, eps), b.weight, b.bias)};
  return {batch_norm_of(b, eps)};
}

/// v scaled so that its length without axis `dim` is g.
Value weight_normed(Call& call, Value v, Value g, int64_t dim) {
  std::vector<int64_t> axes = all_axes(v.rank());
  if (dim >= 0) axes.erase(axes.begin() + axis_of(call, dim, v.rank()));
  const Value length = unary(UnaryKind::kSqrt, reduce(ReduceKind::kSum, v * v, axes, true));
  return v * (g / length);
}

Results weight_norm(Call& call) {
  const Value v = call.tensor("v"), g = call.tensor("g");
  return {weight_normed(call, v, g, call.integer("dim", 0))};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.layer_norm.default", layer_norm},
    {"aten.native_layer_norm.default", native_layer_norm},
    {"aten.rms_norm.default", rms_norm},
    {"aten._fused_rms_norm.default", rms_norm},
    {"aten.batch_norm.default", batch_norm},
    {"aten._native_batch_norm_legit_no_training.default", batch_norm_inference},
    {"aten.native_batch_norm.default", batch_norm},
    {"aten.group_norm.default", group_norm},
    {"aten.native_group_norm.default", native_group_norm},
    {"aten.instance_norm.default", instance_norm},
    {"aten._weight_norm.default", weight_norm},
    {"aten._weight_norm_interface.default", weight_norm},
});

}  // namespace

std::span<const Row> layer_rows() { return kRows; }

}  // namespace tranship::pt2

// Activation functions.
#include <array>
#include <cmath>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::ActivationKind;
using ir::BinaryKind;
using ir::CompareKind;
using ir::UnaryKind;
using ir::Value;

template <ActivationKind kFn>
Results known(Call& call) {
  return {activation(kFn, call.tensor("self"))};
}

/// Of integers too.
Results relu(Call& call) {
  const Value x = call.tensor("self");
  if (is_floating(x.dtype())) return {activation(ActivationKind::kRelu, x)};
  return {binary(BinaryKind::kMax, x, scalar(call.graph(), x.dtype(), 0))};
}

Results gelu(Call& call) {
  const Value x = call.tensor("self");
  const std::string approximate = call.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    call.corrupt("approximate is '{}'", approximate);
  return {activation(approximate == "tanh" ? ActivationKind::kGeluTanh : ActivationKind::kGelu, x)};
}

Value like(Value x, double value) { return scalar(x.graph(), x.dtype(), value); }
Value is_positive(Value x) { return compare(CompareKind::kGreater, x, like(x, 0)); }

/// log(1 + exp(beta x)) / beta, and x itself where that is all the same in f32.
Results softplus(Call& call) {
  const Value x = call.tensor("self");
  const double beta = call.real("beta", 1), threshold = call.real("threshold", 20);
  if (beta == 1 && threshold == 20) return {activation(ActivationKind::kSoftplus, x)};
  const Value scaled = x * beta;
  const Value y = activation(ActivationKind::kSoftplus, scaled) * (1 / beta);
  return {where(compare(CompareKind::kGreater, scaled, like(x, threshold)), x, y)};
}

Value exponential_units(Value x, double alpha, double scale, double input_scale) {
  if (alpha == 1 && scale == 1 && input_scale == 1) return activation(ActivationKind::kElu, x);
  const Value below = (unary(UnaryKind::kExp, x * input_scale) - 1) * alpha;
  const Value y = where(is_positive(x), x, below);
  return scale == 1 ? y : y * scale;
}

Results elu(Call& call) {
  const Value x = call.tensor("self");
  const double alpha = call.real("alpha", 1), scale = call.real("scale", 1);
  return {exponential_units(x, alpha, scale, call.real("input_scale", 1))};
}

Results selu(Call& call) {
  return {exponential_units(call.tensor("self"), 1.6732632423543772, 1.0507009873554805, 1)};
}

Results celu(Call& call) {
  const Value x = call.tensor("self");
  const double alpha = call.real("alpha", 1);
  return {exponential_units(x, alpha, 1, 1 / alpha)};
}

Value leaky(Value x, Value slope) {
  ir::Activation op;
  op.fn = ActivationKind::kLeakyRelu;
  return add_node(x.graph(), op, {x, slope});
}

Results leaky_relu(Call& call) {
  const Value x = call.tensor("self");
  return {leaky(x, like(x, call.real("negative_slope", 0.01)))};
}

/// A slope for each channel: axis 1.
Results prelu(Call& call) {
  const Value x = call.tensor("self");
  Value slope = call.tensor("weight");
  if (slope.rank() == 1 && x.rank() > 1) {
    std::vector<int64_t> axes = all_axes(x.rank());
    axes.erase(axes.begin() + 1);
    slope = unsqueeze(slope, axes);
  }
  return {leaky(x, slope)};
}

Results hardtanh(Call& call) {
  const Value x = call.tensor("self");
  const double low = call.real("min_val", -1), high = call.real("max_val", 1);
  return {binary(BinaryKind::kMin, binary(BinaryKind::kMax, x, like(x, low)), like(x, high))};
}

Results threshold(Call& call) {
  const Value x = call.tensor("self");
  const double threshold = call.real("threshold"), value = call.real("value");
  return {where(compare(CompareKind::kGreater, x, like(x, threshold)), x, like(x, value))};
}

Results softshrink(Call& call) {
  const Value x = call.tensor("self");
  const double lambda = call.real("lambd", 0.5);
  const Value above = compare(CompareKind::kGreater, x, like(x, lambda));
  const Value below = compare(CompareKind::kLess, x, like(x, -lambda));
  return {where(above, x - lambda, where(below, x + lambda, like(x, 0)))};
}

Results hardshrink(Call& call) {
  const Value x = call.tensor("self");
  const double lambda = call.real("lambd", 0.5);
  const Value far = compare(CompareKind::kGreater, unary(UnaryKind::kAbs, x), like(x, lambda));
  return {where(far, x, like(x, 0))};
}

Results tanhshrink(Call& call) {
  const Value x = call.tensor("self");
  return {x - unary(UnaryKind::kTanh, x)};
}

Results softsign(Call& call) {
  const Value x = call.tensor("self");
  return {x / (unary(UnaryKind::kAbs, x) + 1)};
}

/// -softplus(-x).
Results log_sigmoid(Call& call) {
  const Value x = unary(UnaryKind::kNeg, call.tensor("self"));
  return {unary(UnaryKind::kNeg, activation(ActivationKind::kSoftplus, x))};
}

Results glu(Call& call) {
  const Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim", -1), x.rank());
  const ir::Dim half = floor_div(x.shape()[axis], 2);
  const Value gate = slice(x, axis, half, x.shape()[axis]);
  return {slice(x, axis, 0, half) * unary(UnaryKind::kSigmoid, gate)};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.relu.default", relu},
    {"aten.relu6.default", known<ActivationKind::kRelu6>},
    {"aten.silu.default", known<ActivationKind::kSilu>},
    {"aten.mish.default", known<ActivationKind::kMish>},
    {"aten.hardsigmoid.default", known<ActivationKind::kHardSigmoid>},
    {"aten.hardswish.default", known<ActivationKind::kHardSwish>},
    {"aten.gelu.default", gelu},
    {"aten.softplus.default", softplus},
    {"aten.elu.default", elu},
    {"aten.selu.default", selu},
    {"aten.celu.default", celu},
    {"aten.leaky_relu.default", leaky_relu},
    {"aten.prelu.default", prelu},
    {"aten._prelu_kernel.default", prelu},
    {"aten.hardtanh.default", hardtanh},
    {"aten.threshold.default", threshold},
    {"aten.softshrink.default", softshrink},
    {"aten.hardshrink.default", hardshrink},
    {"aten.tanhshrink.default", tanhshrink},
    {"aten.softsign.default", softsign},
    {"aten.log_sigmoid.default", log_sigmoid},
    {"aten.log_sigmoid_forward.default", log_sigmoid},
    {"aten.glu.default", glu},
});

}  // namespace

std::span<const Row> activation_rows() { return kRows; }

}  // namespace tranship::pt2

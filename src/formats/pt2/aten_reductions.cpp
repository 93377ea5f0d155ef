// Operators over axes: sums, means, maxima, norms, softmax.
#include <array>
#include <cmath>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::Dim;
using ir::ReduceKind;
using ir::UnaryKind;
using ir::Value;

struct Axes {
  std::vector<int64_t> axes;
  bool keepdims = false;
};

/// Of no axes, all of them.
Axes axes_to_reduce(Call& call, int64_t rank) {
  Axes out{axes_of(call, call.integers("dim"), rank), false};
  if (out.axes.empty()) out.axes = all_axes(rank);
  out.keepdims = call.flag("keepdim", false);
  if (rank == 0) out.axes.clear();
  return out;
}

/// A scalar reduced over its one element is itself.
Value reduced(ReduceKind fn, Value x, const Axes& axes) {
  return axes.axes.empty() ? x : reduce(fn, x, axes.axes, axes.keepdims);
}

/// Sums of integers and bools are i64.
DType sum_dtype(DType dtype) { return is_floating(dtype) ? dtype : DType::kI64; }

template <ReduceKind kFn>
Results sum_like(Call& call) {
  const Value x = call.tensor("self");
  const Axes axes = axes_to_reduce(call, x.rank());
  const DType dtype = call.dtype("dtype").value_or(sum_dtype(x.dtype()));
  return {reduced(kFn, cast(x, dtype), axes)};
}

/// The overload over everything has no dim.
template <ReduceKind kFn>
Results sum_all(Call& call) {
  const Value x = call.tensor("self");
  const DType dtype = call.dtype("dtype").value_or(sum_dtype(x.dtype()));
  return {reduced(kFn, cast(x, dtype), {all_axes(x.rank()), false})};
}

Results mean(Call& call) {
  const Value x = call.tensor("self");
  const Axes axes = axes_to_reduce(call, x.rank());
  return {reduced(ReduceKind::kMean, cast(x, call.dtype("dtype").value_or(x.dtype())), axes)};
}

Results mean_all(Call& call) {
  const Value x = call.tensor("self");
  return {reduced(ReduceKind::kMean, cast(x, call.dtype("dtype").value_or(x.dtype())),
                  {all_axes(x.rank()), false})};
}

/// Largest or smallest; of bools, any or all.
Value extreme(ReduceKind fn, Value x, const Axes& axes) {
  if (x.dtype() != DType::kBool) return reduced(fn, x, axes);
  return reduced(fn == ReduceKind::kMax ? ReduceKind::kAny : ReduceKind::kAll, x, axes);
}

template <ReduceKind kFn>
Results extreme_over_axes(Call& call) {
  const Value x = call.tensor("self");
  return {extreme(kFn, x, axes_to_reduce(call, x.rank()))};
}

template <ReduceKind kFn>
Results extreme_of_all(Call& call) {
  const Value x = call.tensor("self");
  return {extreme(kFn, x, {all_axes(x.rank()), false})};
}

template <ReduceKind kFn>
Results truth(Call& call) {
  const Value x = truth_of(call.tensor("self"));
  const Axes axes = axes_to_reduce(call, x.rank());
  return {cast(reduced(kFn, x, axes), call.output_dtype())};  // of u8 it is u8
}

template <ReduceKind kFn>
Results truth_of_all(Call& call) {
  const Value x = truth_of(call.tensor("self"));
  return {cast(reduced(kFn, x, {all_axes(x.rank()), false}), call.output_dtype())};
}

Value arg_extreme(bool largest, Value x, int64_t axis) {
  if (x.dtype() == DType::kBool) x = cast(x, DType::kI32);
  if (largest) return argmax(x, axis);
  ir::ArgMin op;
  op.axis = axis;
  return add_node(x.graph(), op, {x});
}

template <bool kLargest>
Results arg_of(Call& call) {
  Value x = with_axis_of_one(call.tensor("self"));
  const std::optional<int64_t> axis = call.optional_integer("dim");
  const bool keepdims = call.flag("keepdim", false);
  if (!axis) {
    const Value flat = reshape(x, {x.shape().num_elements()});
    const Value index = arg_extreme(kLargest, flat, 0);
    if (!keepdims) return {index};
    return {reshape(index, ir::Shape(std::vector<Dim>(static_cast<size_t>(x.rank()), 1)))};
  }
  const bool is_scalar = call.output_meta(0).sizes.empty() && x.rank() == 1 && keepdims;
  const int64_t a = axis_of(call, *axis, x.rank());
  const Value index = arg_extreme(kLargest, x, a);
  return {keepdims && !is_scalar ? unsqueeze(index, {a}) : index};
}

/// (values, indices) along an axis.
template <ReduceKind kFn>
Results extreme_with_index(Call& call) {
  const Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.rank());
  const bool keepdims = call.flag("keepdim", false);
  if (x.rank() == 0) return {x, scalar(call.graph(), DType::kI64, 0)};
  Value index;
  if (call.is_used(1)) {
    index = arg_extreme(kFn == ReduceKind::kMax, x, axis);
    if (keepdims) index = unsqueeze(index, {axis});
  }
  return {extreme(kFn, x, {{axis}, keepdims}), index};
}

/// Sum of squares of what differs from the mean, divided by count - correction.
struct Variance {
  Value variance;
  Value mean;
};
Variance variance_of(Call& call, Value x, const Axes& axes, double correction) {
  const Value mean = reduced(ReduceKind::kMean, x, {axes.axes, true});
  const Value centered = x - mean;
  Dim count = 1;
  for (const int64_t axis : axes.axes) count = count * x.shape()[axis];
  ir::Graph& g = call.graph();
  Value y = reduced(ReduceKind::kMean, centered * centered, axes);
  if (correction != 0) {
    const Value n = number_value(g, count, x.dtype());
    y = y * (n / (n - correction));
  }
  const bool drop = !axes.keepdims && !axes.axes.empty();
  return {y, drop ? squeeze(mean, axes.axes) : mean};
}

double correction_of(Call& call) {
  for (const NamedArgument& argument : call.node().inputs) {
    if (argument.name == "unbiased") return call.flag("unbiased", true) ? 1 : 0;
  }
  return call.real("correction", 1);
}

/// The flag stands before keepdim, the correction too.
Variance variance(Call& call) {
  const Value x = call.tensor("self");
  const bool has_axes = !call.node().target.ends_with(".default");
  Axes axes{has_axes ? axes_of(call, call.integers("dim"), x.rank()) : all_axes(0), false};
  if (axes.axes.empty()) axes.axes = all_axes(x.rank());
  const double correction = correction_of(call);
  axes.keepdims = call.flag("keepdim", false);
  return variance_of(call, x, axes, correction);
}

Results var(Call& call) { return {variance(call).variance}; }
Results std_deviation(Call& call) { return {unary(UnaryKind::kSqrt, variance(call).variance)}; }
Results var_mean(Call& call) {
  const Variance v = variance(call);
  return {v.variance, v.mean};
}
Results std_mean(Call& call) {
  const Variance v = variance(call);
  return {unary(UnaryKind::kSqrt, v.variance), v.mean};
}

Value power(Value x, double exponent) {
  return binary(BinaryKind::kPow, x, scalar(x.graph(), x.dtype(), exponent));
}

Value norm_of(Value x, double order, const Axes& axes) {
  const Value size = unary(UnaryKind::kAbs, x);
  if (order == 2) return unary(UnaryKind::kSqrt, reduced(ReduceKind::kSum, x * x, axes));
  if (order == 1) return reduced(ReduceKind::kSum, size, axes);
  if (order == 0) return reduced(ReduceKind::kSum, cast(truth_of(x), x.dtype()), axes);
  if (std::isinf(order))
    return reduced(order > 0 ? ReduceKind::kMax : ReduceKind::kMin, size, axes);
  return power(reduced(ReduceKind::kSum, power(size, order), axes), 1 / order);
}

Results vector_norm(Call& call) {
  const Value x = call.tensor("self");
  const double order = call.real("ord", 2);
  const Axes axes = axes_to_reduce(call, x.rank());
  return {norm_of(cast(x, call.dtype("dtype").value_or(float_of(x.dtype()))), order, axes)};
}

Results norm(Call& call) {
  const Value x = call.tensor("self");
  const double order = call.real("p", 2);
  const Axes axes = axes_to_reduce(call, x.rank());
  return {norm_of(cast(x, call.dtype("dtype").value_or(x.dtype())), order, axes)};
}

Results frobenius_norm(Call& call) {
  const Value x = call.tensor("self");
  return {norm_of(x, 2, axes_to_reduce(call, x.rank()))};
}

/// The largest is taken out before exp, and put back.
Results logsumexp(Call& call) {
  const Value given = call.tensor("self");
  const Value x = cast(given, float_of(given.dtype()));
  const Axes axes = axes_to_reduce(call, x.rank());
  const Value top = reduced(ReduceKind::kMax, x, {axes.axes, true});
  const Value finite =
      where(unary(UnaryKind::kIsInf, top), scalar(call.graph(), x.dtype(), 0), top);
  const Value sum = reduced(ReduceKind::kSum, unary(UnaryKind::kExp, x - finite), axes);
  const bool drop = !axes.keepdims && !axes.axes.empty();
  return {unary(UnaryKind::kLog, sum) + (drop ? squeeze(finite, axes.axes) : finite)};
}

/// Of a scalar, over its one element.
Value softmax_over(Value x, int64_t axis) {
  if (x.rank() > 0) return softmax(x, axis);
  return squeeze(softmax(unsqueeze(x, {0}), 0), {0});
}

struct SoftmaxOf {
  Value x;
  int64_t axis;
};
SoftmaxOf softmax_operand(Call& call) {
  Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.rank());
  const DType dtype = call.dtype("dtype").value_or(x.dtype());
  call.ignore({"half_to_float"});
  return {cast(x, float_of(dtype)), axis};
}

Results softmax(Call& call) {
  const SoftmaxOf s = softmax_operand(call);
  return {softmax_over(s.x, s.axis)};
}

Results log_softmax(Call& call) {
  const SoftmaxOf s = softmax_operand(call);
  if (s.x.rank() == 0) return {scalar(call.graph(), s.x.dtype(), 0)};
  const Value shifted = s.x - reduce(ReduceKind::kMax, s.x, {s.axis}, true);
  const Value sum = reduce(ReduceKind::kSum, unary(UnaryKind::kExp, shifted), {s.axis}, true);
  return {shifted - unary(UnaryKind::kLog, sum)};
}

/// A row that holds only -inf gives zeros.
Results safe_softmax(Call& call) {
  const SoftmaxOf s = softmax_operand(call);
  const Value top = reduce(ReduceKind::kMax, s.x, {s.axis}, true);
  const Value hidden =
      binary(BinaryKind::kAnd, unary(UnaryKind::kIsInf, top),
             compare(ir::CompareKind::kLess, top, scalar(call.graph(), s.x.dtype(), 0)));
  const Value zero = scalar(call.graph(), s.x.dtype(), 0);
  return {where(hidden, zero, ir::softmax(where(hidden, zero, s.x), s.axis))};
}

Results cumulative_sum(Call& call) {
  const Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.rank());
  const Value y = cast(x, call.dtype("dtype").value_or(sum_dtype(x.dtype())));
  return {y.rank() == 0 ? y : cumsum(y, axis)};
}

/// The running product: each element of the axis in turn.
Results cumulative_product(Call& call) {
  const Value given = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim"), given.rank());
  const Value x = cast(given, call.dtype("dtype").value_or(sum_dtype(given.dtype())));
  if (x.rank() == 0) return {x};
  const Value rows = move_axis(x, axis, 0);
  ir::Type row = rows.type();
  row.shape.dims.erase(row.shape.dims.begin());
  auto body = std::make_unique<ir::Graph>("product");
  std::vector<Value> inputs;
  for (const char* name : {"product", "row"}) {
    ir::Input input;
    input.name = name;
    input.dtype = row.dtype;
    input.shape = row.shape;
    inputs.push_back(add_node(*body, std::move(input), {}));
  }
  const Value product = inputs[0] * inputs[1];
  body->add_output("new_product", product);
  body->add_output("out", product);
  ir::Scan op;
  op.num_carried = 1;
  op.num_scanned = 1;
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  graphs.push_back(std::move(body));
  const std::vector<Value> operands = {full(call.graph(), row.dtype, 1, row.shape), rows};
  const Value y = call.graph().add(ir::make(op), operands, "", std::move(graphs))[1];
  return {move_axis(y, 0, axis)};
}

/// x[i + 1] - x[i], n times.
Results differences(Call& call) {
  Value x = call.tensor("self");
  const int64_t n = call.integer("n", 1);
  const int64_t axis = axis_of(call, call.integer("dim", -1), x.rank());
  call.refuse("prepend");
  call.refuse("append");
  if (n < 0 || n > 64 || x.rank() == 0) call.corrupt("{} differences", n);
  for (int64_t i = 0; i < n; ++i) {
    const Dim size = x.shape()[axis];
    const Value later = slice(x, axis, 1, size), earlier = slice(x, axis, 0, size - 1);
    x = x.dtype() == DType::kBool ? binary(BinaryKind::kXor, later, earlier) : later - earlier;
  }
  return {x};
}

Results count_nonzero(Call& call) {
  const Value x = cast(truth_of(call.tensor("self")), DType::kI64);
  return {reduced(ReduceKind::kSum, x, axes_to_reduce(call, x.rank()))};
}

/// How many elements fall into each of `bins` equal parts of [min, max]; max is in the last.
Results histc(Call& call) {
  const Value x = call.tensor("self");
  const int64_t bins = call.integer("bins", 100);
  const double low = call.real("min", 0), high = call.real("max", 0);
  if (bins < 1) call.corrupt("{} bins", bins);
  if (!(low < high)) fail(ErrorKind::kUnsupported, "a histogram between what the data is between");
  ir::Graph& g = call.graph();
  const Value flat = reshape(cast(x, DType::kF32), {x.shape().num_elements()});
  const Value at =
      unary(UnaryKind::kFloor, (flat - low) * (static_cast<double>(bins) / (high - low)));
  const Value last = scalar(g, DType::kF32, static_cast<double>(bins - 1));
  const Value inside = binary(
      BinaryKind::kAnd, compare(ir::CompareKind::kGreaterEqual, flat, scalar(g, DType::kF32, low)),
      compare(ir::CompareKind::kLessEqual, flat, scalar(g, DType::kF32, high)));
  const Value bin = where(inside, binary(BinaryKind::kMin, at, last), scalar(g, DType::kF32, -1));
  const Value hits = compare(ir::CompareKind::kEqual, unsqueeze(bin, {0}),
                             unsqueeze(cast(iota(g, bins), DType::kF32), {1}));
  return {reduce(ReduceKind::kSum, cast(hits, x.dtype()), {1}, false)};
}

constexpr ReduceKind kSum = ReduceKind::kSum, kProd = ReduceKind::kProd, kMax = ReduceKind::kMax,
                     kMin = ReduceKind::kMin, kAny = ReduceKind::kAny, kAll = ReduceKind::kAll;

constexpr std::array kRows = std::to_array<Row>({
    {"aten.sum.dim_IntList", sum_like<kSum>},
    {"aten.sum.default", sum_all<kSum>},
    {"aten.prod.dim_int", sum_like<kProd>},
    {"aten.prod.default", sum_all<kProd>},
    {"aten.mean.dim", mean},
    {"aten.mean.default", mean_all},
    {"aten.amax.default", extreme_over_axes<kMax>},
    {"aten.amin.default", extreme_over_axes<kMin>},
    {"aten.max.default", extreme_of_all<kMax>},
    {"aten.min.default", extreme_of_all<kMin>},
    {"aten.max.dim", extreme_with_index<kMax>},
    {"aten.min.dim", extreme_with_index<kMin>},
    {"aten.argmax.default", arg_of<true>},
    {"aten.argmin.default", arg_of<false>},
    {"aten.any.default", truth_of_all<kAny>},
    {"aten.any.dim", truth<kAny>},
    {"aten.any.dims", truth<kAny>},
    {"aten.all.default", truth_of_all<kAll>},
    {"aten._is_all_true.default", truth_of_all<kAll>},
    {"aten.all.dim", truth<kAll>},
    {"aten.all.dims", truth<kAll>},
    {"aten.var.default", var},
    {"aten.var.dim", var},
    {"aten.var.correction", var},
    {"aten.std.default", std_deviation},
    {"aten.std.dim", std_deviation},
    {"aten.std.correction", std_deviation},
    {"aten.var_mean.default", var_mean},
    {"aten.var_mean.dim", var_mean},
    {"aten.var_mean.correction", var_mean},
    {"aten.std_mean.default", std_mean},
    {"aten.std_mean.dim", std_mean},
    {"aten.std_mean.correction", std_mean},
    {"aten.linalg_vector_norm.default", vector_norm},
    {"aten.norm.Scalar", norm},
    {"aten.norm.ScalarOpt_dim", norm},
    {"aten.norm.ScalarOpt_dim_dtype", norm},
    {"aten.frobenius_norm.dim", frobenius_norm},
    {"aten.logsumexp.default", logsumexp},
    {"aten.softmax.int", softmax},
    {"aten._softmax.default", softmax},
    {"aten.special_softmax.int", softmax},
    {"aten._safe_softmax.default", safe_softmax},
    {"aten.log_softmax.int", log_softmax},
    {"aten._log_softmax.default", log_softmax},
    {"aten.special_log_softmax.int", log_softmax},
    {"aten.cumsum.default", cumulative_sum},
    {"aten.cumprod.default", cumulative_product},
    {"aten.diff.default", differences},
    {"aten.count_nonzero.default", count_nonzero},
    {"aten.count_nonzero.dim_IntList", count_nonzero},
    {"aten.histc.default", histc},
});

}  // namespace

std::span<const Row> reduction_rows() { return kRows; }

}  // namespace tranship::pt2

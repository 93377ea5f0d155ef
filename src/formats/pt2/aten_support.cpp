#include "formats/pt2/aten_support.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "ir/infer.h"

namespace tranship::pt2 {

using ir::Dim;
using ir::Shape;
using ir::Value;

Value number_value(ir::Graph& graph, const Number& number, DType dtype) {
  const auto* dim = std::get_if<Dim>(&number);
  if (dim != nullptr && dim->is_static()) {
    if (dtype != DType::kI64) return scalar(graph, dtype, static_cast<double>(dim->value()));
    const int64_t value = dim->value();
    return constant(graph, Tensor::of(std::span(&value, 1), {}));
  }
  if (const auto* real = std::get_if<double>(&number)) {
    if (is_floating(dtype)) return scalar(graph, dtype, *real);
    if (dtype == DType::kBool) return scalar(graph, dtype, *real != 0 ? 1 : 0);
    if (!(std::abs(*real) < 9e15)) fail(ErrorKind::kUnsupported, "{} as an integer", *real);
    return scalar(graph, dtype, std::trunc(*real));
  }
  if (const auto* truth = std::get_if<bool>(&number)) return scalar(graph, dtype, *truth ? 1 : 0);
  return cast(to_value(graph, number), dtype);
}

Value operand_value(ir::Graph& graph, const Operand& operand, DType dtype) {
  if (const auto* value = std::get_if<Value>(&operand)) return cast(*value, dtype);
  return number_value(graph, std::get<Number>(operand), dtype);
}

DType promoted(const std::vector<Operand>& operands) {
  Promotion promotion;
  for (const Operand& operand : operands)
    std::visit([&](const auto& o) { promotion.add(o); }, operand);
  return promotion.result();
}

DType float_of(DType dtype) { return is_floating(dtype) ? dtype : DType::kF32; }

int64_t axis_of(Call& call, int64_t axis, int64_t rank) {
  const int64_t limit = std::max<int64_t>(rank, 1);
  if (axis < -limit || axis >= limit)
    call.corrupt("there is no axis {} in a tensor of {} axes", axis, rank);
  return axis < 0 ? axis + limit : axis;
}

std::vector<int64_t> axes_of(Call& call, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> out;
  for (const int64_t axis : axes) out.push_back(axis_of(call, axis, rank));
  return out;
}

std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape out;
  const int64_t rank = std::max(a.rank(), b.rank());
  for (int64_t i = -rank; i < 0; ++i) {
    const Dim x = -i <= a.rank() ? a[i] : Dim(1);
    const Dim y = -i <= b.rank() ? b[i] : Dim(1);
    out.dims.push_back(x == Dim(1) || (y.is_static() && !(y == Dim(1))) ? y : x);
  }
  return out;
}

Value expanded(Value x, const Shape& shape) { return x.shape() == shape ? x : expand(x, shape); }

Value truth_of(Value x) {
  if (x.dtype() == DType::kBool) return x;
  return compare(ir::CompareKind::kNotEqual, x, scalar(x.graph(), x.dtype(), 0));
}

Value negated(Value condition) { return unary(ir::UnaryKind::kNot, condition); }

Value counted(ir::Graph& graph, Dim begin, Dim step, Dim count) {
  Value out = iota(graph, std::move(count));
  if (!(step == Dim(1))) out = out * number_value(graph, step, DType::kI64);
  return begin == Dim(0) ? out : out + number_value(graph, begin, DType::kI64);
}

Value move_axis(Value x, int64_t from, int64_t to) {
  if (from == to) return x;
  std::vector<int64_t> perm = all_axes(x.rank());
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return transpose(x, perm);
}

Value with_features(Value x, Dim size) {
  if (x.rank() == 0 || x.shape().back().is_static() || !size.is_static()) return x;
  Shape shape = x.shape();
  shape[-1] = std::move(size);
  return reshape(x, shape);
}

Value with_axis_of_one(Value x) { return x.rank() == 0 ? unsqueeze(x, {0}) : x; }

}  // namespace tranship::pt2

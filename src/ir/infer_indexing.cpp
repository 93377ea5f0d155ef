// Types of what reads or writes by index, of orders, of sizes that are born from data, and of the
// composites that are made of these.
#include "ir/inferrer.h"

namespace tranship::ir {

std::vector<Type> Inferrer::top_k() {
  need_count(1, 1);
  if (in(0).dtype == DType::kBool) error("operand is bool: cast it");
  const auto& t = as<TopK>(op_);
  const int64_t axis = normal_axis(t.axis, shape(0).rank(), "TopK");
  if (t.k.is_static() &&
      (t.k.value() < 0 || (shape(0)[axis].is_static() && t.k.value() > shape(0)[axis].value())))
    error("k is {} of an axis of {}", t.k.text(), shape(0)[axis].text());
  Shape out = shape(0);
  out[axis] = t.k;
  return {Type{in(0).dtype, out}, Type{DType::kI64, out}};
}

std::vector<Type> Inferrer::gather_nd() {
  need_count(2, 2);
  need_integer(1);
  const int64_t batch = as<GatherNd>(op_).batch_dims;
  if (shape(1).rank() < 1 || !shape(1).back().is_static())
    error("indices have shape {}, expected a last axis of known size", shape(1).text());
  const int64_t depth = shape(1).back().value();
  if (batch < 0 || batch >= shape(1).rank() || depth < 1 || batch + depth > shape(0).rank())
    error("{} indices after {} batch axes of shape {}", depth, batch, shape(0).text());
  Shape out;
  for (int64_t i = 0; i < batch; ++i)
    out.dims.push_back(equal(shape(0)[i], shape(1)[i], "batch axes"));
  for (int64_t i = batch; i + 1 < shape(1).rank(); ++i) out.dims.push_back(shape(1)[i]);
  for (int64_t i = batch + depth; i < shape(0).rank(); ++i) out.dims.push_back(shape(0)[i]);
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::scatter_elements() {
  need_count(3, 3);
  need_integer(1);
  if (in(2).dtype != in(0).dtype)
    error("updates are {}, data is {}", name(in(2).dtype), name(in(0).dtype));
  if (in(0).dtype == DType::kBool && as<ScatterElements>(op_).reduction != ScatterReduction::kNone)
    error("bool cannot be reduced");
  normal_axis(as<ScatterElements>(op_).axis, shape(0).rank(), "ScatterElements");
  need_rank(1, shape(0).rank());
  need_rank(2, shape(0).rank());
  for (int64_t i = 0; i < shape(0).rank(); ++i)
    equal(shape(1)[i], shape(2)[i], "indices and updates");
  return as_operand();
}

std::vector<Type> Inferrer::scatter_nd() {
  need_count(3, 3);
  need_integer(1);
  if (in(2).dtype != in(0).dtype)
    error("updates are {}, data is {}", name(in(2).dtype), name(in(0).dtype));
  if (in(0).dtype == DType::kBool && as<ScatterNd>(op_).reduction != ScatterReduction::kNone)
    error("bool cannot be reduced");
  if (shape(1).rank() < 1 || !shape(1).back().is_static())
    error("indices have shape {}, expected a last axis of known size", shape(1).text());
  const int64_t depth = shape(1).back().value(), places = shape(1).rank() - 1;
  if (depth < 1 || depth > shape(0).rank())
    error("{} indices into shape {}", depth, shape(0).text());
  need_rank(2, places + shape(0).rank() - depth);
  for (int64_t i = 0; i < shape(2).rank(); ++i)
    equal(shape(2)[i], i < places ? shape(1)[i] : shape(0)[depth + i - places], "updates");
  return as_operand();
}

std::vector<Type> Inferrer::non_zero() {
  need_count(1, 1);
  if (shape(0).rank() < 1) error("x is a scalar");
  const auto& n = as<NonZero>(op_);
  if (!n.count.as_symbol()) error("the count is {}, expected a symbol", n.count.text());
  return one(DType::kI64, Shape{n.count, shape(0).rank()});
}

std::vector<Type> Inferrer::item() {
  need_count(1, 1);
  need_dtype(0, DType::kI64);
  need_rank(0, 0);
  const auto& i = as<Item>(op_);
  if (!i.value.as_symbol()) error("the value is {}, expected a symbol", i.value.text());
  return as_operand();
}

std::vector<Type> Inferrer::activation() {
  const bool has_slope = as<Activation>(op_).fn == ActivationKind::kLeakyRelu;
  need_count(has_slope ? 2 : 1, has_slope ? 2 : 1);
  need_float(0);
  need_same_dtype();
  if (has_slope && !(broadcast(shape(0), shape(1)) == shape(0)))
    error("a slope of shape {} for x {}", shape(1).text(), shape(0).text());
  return as_operand();
}

std::vector<Type> Inferrer::moe() {
  need_count(5, 5);
  need_float(0);
  need_integer(1);
  if (as<Moe>(op_).fn == ActivationKind::kLeakyRelu) error("leaky_relu has no slope here");
  for (const size_t i : {size_t{2}, size_t{3}, size_t{4}}) {
    if (in(i).dtype != in(0).dtype)
      error("operand {} is {}, x is {}", i, name(in(i).dtype), name(in(0).dtype));
  }
  need_rank(3, 3);
  need_rank(4, 3);
  const int64_t rank = shape(0).rank();
  if (rank < 2) error("x has shape {}, expected tokens and features", shape(0).text());
  need_rank(1, rank);
  need_rank(2, rank);
  if (!shape(1).back().is_static())
    error("experts have shape {}, expected a last axis of known size", shape(1).text());
  for (int64_t i = 0; i + 1 < rank; ++i) {
    equal(shape(0)[i], shape(1)[i], "tokens and experts");
    equal(shape(0)[i], shape(2)[i], "tokens and weights");
  }
  equal(shape(1).back(), shape(2).back(), "experts and weights");
  equal(shape(3)[0], shape(4)[0], "number of experts");
  equal(shape(3)[1], shape(4)[2] * 2, "intermediate size");
  equal(shape(3)[2], shape(0).back(), "features in");
  equal(shape(4)[1], shape(0).back(), "features out");
  return as_operand();
}

std::vector<Type> Inferrer::selective_scan() {
  need_count(6, 6);
  for (size_t i = 0; i < 6; ++i) {
    need_float(i);
    need_rank(i, i == 2 ? 2 : 3);
  }
  need_dtype(2, DType::kF32);
  need_dtype(5, DType::kF32);
  const Dim batch = shape(0)[0], length = shape(0)[1], channels = shape(0)[2], size = shape(2)[1];
  const Shape expected[] = {shape(0),
                            shape(0),
                            {channels, size},
                            {batch, length, size},
                            {batch, length, size},
                            {batch, channels, size}};
  for (size_t i = 1; i < 6; ++i) {
    for (int64_t axis = 0; axis < shape(i).rank(); ++axis)
      equal(expected[i][axis], shape(i)[axis], fmt::format("operand {}, axis {}", i, axis));
  }
  return {Type{DType::kF32, shape(0)}, Type{DType::kF32, expected[5]}};
}

}  // namespace tranship::ir

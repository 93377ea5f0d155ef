#include "ir/build.h"

#include "base/error.h"

namespace tranship::ir {

Value constant(Graph& g, Tensor value) {
  Constant op;
  op.value = std::move(value);
  return g.add_one(make(std::move(op)), {});
}

Value scalar(Graph& g, DType dtype, double value) {
  Tensor t(dtype, {});
  t.set(0, value);
  return constant(g, std::move(t));
}

Value full(Graph& g, DType dtype, double value, Shape shape) {
  Full op;
  op.shape = std::move(shape);
  return g.add_one(make(std::move(op)), {scalar(g, dtype, value)});
}

Value iota(Graph& g, Dim count) {
  Iota op;
  op.count = std::move(count);
  return g.add_one(make(std::move(op)), {});
}

Value dim_to_tensor(Graph& g, Dim dim) {
  DimToTensor op;
  op.dim = std::move(dim);
  return g.add_one(make(std::move(op)), {});
}

Value cast(Value x, DType to) {
  if (x.dtype() == to) return x;
  Cast op;
  op.to = to;
  return x.graph().add_one(make(op), {x});
}

Value unary(UnaryKind fn, Value x) {
  Unary op;
  op.fn = fn;
  return x.graph().add_one(make(op), {x});
}

Value binary(BinaryKind fn, Value a, Value b) {
  Binary op;
  op.fn = fn;
  return a.graph().add_one(make(op), {a, b});
}

Value compare(CompareKind fn, Value a, Value b) {
  Compare op;
  op.fn = fn;
  return a.graph().add_one(make(op), {a, b});
}

Value where(Value condition, Value a, Value b) {
  return a.graph().add_one(make(Where{}), {condition, a, b});
}

Value operator+(Value a, double b) { return a + scalar(a.graph(), a.dtype(), b); }
Value operator-(Value a, double b) { return a - scalar(a.graph(), a.dtype(), b); }
Value operator*(Value a, double b) { return a * scalar(a.graph(), a.dtype(), b); }
Value logical_and(Value a, Value b) { return binary(BinaryKind::kAnd, a, b); }

Value and_if_present(Value a, Value b) {
  if (!a) return b;
  return b ? logical_and(a, b) : a;
}

Value reduce(ReduceKind fn, Value x, std::vector<int64_t> axes, bool keepdims) {
  Reduce op;
  op.fn = fn;
  op.axes = std::move(axes);
  op.keepdims = keepdims;
  return x.graph().add_one(make(std::move(op)), {x});
}

Value argmax(Value x, int64_t axis) {
  ArgMax op;
  op.axis = axis;
  return x.graph().add_one(make(op), {x});
}

Value cumsum(Value x, int64_t axis) {
  CumSum op;
  op.axis = axis;
  return x.graph().add_one(make(op), {x});
}

Value softmax(Value x, int64_t axis) {
  Softmax op;
  op.axis = axis;
  return x.graph().add_one(make(op), {x});
}

Value matmul(Value a, Value b) { return a.graph().add_one(make(MatMul{}), {a, b}); }

Value reshape(Value x, Shape shape) {
  if (x.shape() == shape) return x;
  Reshape op;
  op.shape = std::move(shape);
  return x.graph().add_one(make(std::move(op)), {x});
}

Value transpose(Value x, std::vector<int64_t> perm) {
  Transpose op;
  op.perm = std::move(perm);
  return x.graph().add_one(make(std::move(op)), {x});
}

Value expand(Value x, Shape shape) {
  Expand op;
  op.shape = std::move(shape);
  return x.graph().add_one(make(std::move(op)), {x});
}

Value unsqueeze(Value x, std::vector<int64_t> axes) {
  Unsqueeze op;
  op.axes = std::move(axes);
  return x.graph().add_one(make(std::move(op)), {x});
}

Value squeeze(Value x, std::vector<int64_t> axes) {
  Squeeze op;
  op.axes = std::move(axes);
  return x.graph().add_one(make(std::move(op)), {x});
}

Value concat(std::vector<Value> parts, int64_t axis) {
  check(!parts.empty(), "concat of nothing");
  Concat op;
  op.axis = axis;
  return parts[0].graph().add(make(op), parts)[0];
}

Value slice(Value x, int64_t axis, Dim begin, Dim end) {
  Slice op;
  op.axis = axis;
  op.begin = std::move(begin);
  op.end = std::move(end);
  return x.graph().add_one(make(std::move(op)), {x});
}

Value gather(Value data, Value indices, int64_t axis) {
  Gather op;
  op.axis = axis;
  return data.graph().add_one(make(op), {data, indices});
}

Value gather_elements(Value data, Value indices, int64_t axis) {
  GatherElements op;
  op.axis = axis;
  return data.graph().add_one(make(op), {data, indices});
}

Value flip(Value x, int64_t axis) {
  const Dim& size = x.shape()[axis];
  return gather(x, dim_to_tensor(x.graph(), size - 1) - iota(x.graph(), size), axis);
}

Places non_zero(Value x, std::string_view name) {
  NonZero op;
  // The number of values grows with every node, so no other has it.
  op.count = Dim::symbol(fmt::format("{}_{}", name, x.graph().num_values()));
  const Dim count = op.count;
  return {x.graph().add_one(make(std::move(op)), {x}), count};
}

Value scatter_nd(Value data, Value indices, Value updates, ScatterReduction reduction) {
  ScatterNd op;
  op.reduction = reduction;
  return data.graph().add_one(make(op), {data, indices, updates});
}

Sorted top_k(Value x, int64_t axis, Dim k) {
  TopK op;
  op.axis = axis;
  op.k = std::move(k);
  const std::vector<Value> results = x.graph().add(make(std::move(op)), std::vector<Value>{x});
  return {results[0], results[1]};
}

Value activation(ActivationKind fn, Value x) {
  Activation op;
  op.fn = fn;
  return x.graph().add_one(make(op), {x});
}

}  // namespace tranship::ir

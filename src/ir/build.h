// Short words for adding nodes: x * w + b, softmax(x), reshape(x, {...}). Each adds to its
// operand's graph. Numbers become constants of the tensor's dtype.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace tranship::ir {

Value constant(Graph& g, Tensor value);
/// A scalar of a dtype.
Value scalar(Graph& g, DType dtype, double value);
Value full(Graph& g, DType dtype, double value, Shape shape);
Value iota(Graph& g, Dim count);
Value dim_to_tensor(Graph& g, Dim dim);

Value cast(Value x, DType to);  // x itself if it has the dtype
Value unary(UnaryKind fn, Value x);
Value binary(BinaryKind fn, Value a, Value b);
Value compare(CompareKind fn, Value a, Value b);
Value where(Value condition, Value a, Value b);

inline Value operator+(Value a, Value b) { return binary(BinaryKind::kAdd, a, b); }
inline Value operator-(Value a, Value b) { return binary(BinaryKind::kSub, a, b); }
inline Value operator*(Value a, Value b) { return binary(BinaryKind::kMul, a, b); }
inline Value operator/(Value a, Value b) { return binary(BinaryKind::kDiv, a, b); }
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value logical_and(Value a, Value b);
/// Absent operands are the neutral one.
Value and_if_present(Value a, Value b);

Value reduce(ReduceKind fn, Value x, std::vector<int64_t> axes, bool keepdims);
Value argmax(Value x, int64_t axis);
Value cumsum(Value x, int64_t axis);
Value softmax(Value x, int64_t axis);
Value matmul(Value a, Value b);

Value reshape(Value x, Shape shape);  // x itself if it has the shape
Value transpose(Value x, std::vector<int64_t> perm);
Value expand(Value x, Shape shape);
Value unsqueeze(Value x, std::vector<int64_t> axes);
Value squeeze(Value x, std::vector<int64_t> axes);
Value concat(std::vector<Value> parts, int64_t axis);
/// Elements [begin, end) of an axis.
Value slice(Value x, int64_t axis, Dim begin, Dim end);
Value gather(Value data, Value indices, int64_t axis);
Value gather_elements(Value data, Value indices, int64_t axis);

/// The elements of an axis in the other order: a Gather.
Value flip(Value x, int64_t axis);
/// The places of what is true, i64 [n, rank], and n: a new symbol that begins with `name`.
struct Places {
  Value indices;
  Dim count;
};
Places non_zero(Value x, std::string_view name);
Value scatter_nd(Value data, Value indices, Value updates,
                 ScatterReduction reduction = ScatterReduction::kNone);
struct Sorted {
  Value values, indices;
};
/// The k largest of an axis, in order.
Sorted top_k(Value x, int64_t axis, Dim k);

Value activation(ActivationKind fn, Value x);

}  // namespace tranship::ir

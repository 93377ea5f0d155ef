// Words for reading a graph backwards: what made this value, and from what.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "ir/build.h"
#include "ir/graph.h"

namespace tranship::passes::match {

using ir::Value;

inline const ir::Node& producer(const Value& v) { return v.graph().producer(v.id()); }

/// The op that made a value, if it is a T; null otherwise, and for an absent value.
template <class T>
const T* op_of(const Value& v) {
  if (!v) return nullptr;
  const ir::Op& op = *producer(v).op;
  return op.kind == T::kKind ? &ir::as<T>(op) : nullptr;
}

/// Operand i of the node that made a value; absent if it has none.
inline Value operand(const Value& v, size_t i) {
  const ir::Node& node = producer(v);
  if (i >= node.inputs.size() || node.inputs[i] == ir::kAbsent) return {};
  return v.graph().value(node.inputs[i]);
}

/// The tensor of a Constant; null for any other value.
inline const Tensor* constant(const Value& v) {
  const auto* op = op_of<ir::Constant>(v);
  return op == nullptr ? nullptr : &op->value;
}

inline bool same(const Value& a, const Value& b) { return a.id() == b.id(); }

/// Whether the two are computed alike, from the same values.
bool equal(const Value& a, const Value& b);

/// The number of a constant of one element, looking through casts and changes of shape.
std::optional<double> number(const Value& v);
/// Whether it is that number, to seven digits.
bool is_number(const Value& v, double expected);

using Pair = std::array<Value, 2>;
/// The operands of a Binary of that kind.
std::optional<Pair> binary(const Value& v, ir::BinaryKind fn);
/// The operand of a Unary of that kind; absent otherwise.
Value unary(const Value& v, ir::UnaryKind fn);
/// x of x + number, in either order.
struct WithNumber {
  Value x;
  double number = 0;
};
std::optional<WithNumber> binary_with_number(const Value& v, ir::BinaryKind fn);

/// A product taken apart: its numbers multiplied, its other factors in order. A value that is no
/// product has one factor.
struct Product {
  double coefficient = 1;
  std::vector<Value> factors;
};
Product product(const Value& v);

/// An axis counted from the front.
inline int64_t axis_of(int64_t axis, const Value& v) { return axis < 0 ? axis + v.rank() : axis; }

/// x of a Reduce over that axis alone, which goes; absent for any other value.
Value reduced(const Value& v, ir::ReduceKind fn, int64_t axis);
/// x of a Slice [begin, end) of that axis.
Value sliced(const Value& v, int64_t axis, const ir::Dim& begin, const ir::Dim& end);
/// Data and indices of a Gather along that axis.
std::optional<Pair> gathered(const Value& v, int64_t axis);
/// What is below ops that only change the shape.
Value through_views(Value v);
/// Whether it is 0, 1, ... count - 1.
bool counts_up(const Value& v, const ir::Dim& count);

}  // namespace tranship::passes::match

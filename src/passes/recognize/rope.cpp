#include <cmath>

#include "passes/match.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::BinaryKind;
using ir::Dim;
using ir::OpKind;
using ir::Value;
using match::op_of;
using match::operand;
using match::producer;
using match::same;

/// Elements [begin, end) of the last axis.
struct Part {
  Value x;
  Dim begin;
  Dim end;
};
std::optional<Part> last_axis_part(const Value& v) {
  const auto* slice = op_of<ir::Slice>(v);
  if (slice == nullptr || slice->step != 1) return std::nullopt;
  const Value x = operand(v, 0);
  if (match::axis_of(slice->axis, x) != x.rank() - 1) return std::nullopt;
  return Part{x, slice->begin, slice->end};
}

std::optional<match::Pair> last_axis_concat(const Value& v) {
  const auto* concat = op_of<ir::Concat>(v);
  if (concat == nullptr || producer(v).inputs.size() != 2 ||
      match::axis_of(concat->axis, v) != v.rank() - 1)
    return std::nullopt;
  return match::Pair{operand(v, 0), operand(v, 1)};
}

/// The first half of the last axis of a table of [x, x]; absent if the halves are not proved equal.
Value half(const Value& v, int depth = 0);

bool is_one_wide(const Value& v) { return v.rank() == 0 || v.shape().back() == Dim(1); }

Value half_of_constant(const Value& v) {
  const Tensor& whole = op_of<ir::Constant>(v)->value;
  const int64_t width = v.shape().back().value(), half = width / 2;
  if (width % 2 != 0) return {};
  for (int64_t i = 0; i < whole.num_elements(); ++i) {
    if (i % width < half && whole.at(i) != whole.at(i + half)) return {};
  }
  return ir::slice(v, -1, 0, half);
}

Value half_of_binary(const Value& v, int depth) {
  const Value a = operand(v, 0), b = operand(v, 1);
  const BinaryKind fn = op_of<ir::Binary>(v)->fn;
  const Value left = is_one_wide(a) ? a : half(a, depth + 1);
  const Value right = is_one_wide(b) ? b : half(b, depth + 1);
  if (!left || !right || (is_one_wide(a) && is_one_wide(b))) return {};
  return ir::binary(fn, left, right);
}

Value half(const Value& v, int depth) {
  constexpr int kDeepest = 16;
  if (!v || depth > kDeepest || v.rank() == 0 || !v.shape().back().is_static()) return {};
  if (const auto parts = last_axis_concat(v))
    return same((*parts)[0], (*parts)[1]) ? (*parts)[0] : Value();
  const auto inner = [&] { return half(operand(v, 0), depth + 1); };
  switch (producer(v).kind()) {
    case OpKind::kConstant:
      return half_of_constant(v);
    case OpKind::kBinary:
      return half_of_binary(v, depth);
    case OpKind::kCast: {
      const Value x = inner();
      return x ? ir::cast(x, v.dtype()) : Value();
    }
    case OpKind::kUnary: {
      const Value x = inner();
      return x ? ir::unary(op_of<ir::Unary>(v)->fn, x) : Value();
    }
    case OpKind::kUnsqueeze: {
      const auto& axes = op_of<ir::Unsqueeze>(v)->axes;
      for (const int64_t axis : axes) {
        if (match::axis_of(axis, v) == v.rank() - 1) return {};
      }
      const Value x = inner();
      return x ? ir::unsqueeze(x, axes) : Value();
    }
    default:
      return {};
  }
}

/// A table [B or 1, 1, S, R] as Rope has it: [B or 1, S, R / 2]; absent if it is none.
Value table(const Value& v) {
  if (v.rank() != 4 || !(v.shape()[1] == Dim(1))) return {};
  const auto* unsqueezed = op_of<ir::Unsqueeze>(v);
  if (unsqueezed != nullptr && unsqueezed->axes.size() == 1 &&
      match::axis_of(unsqueezed->axes[0], v) == 1)
    return half(operand(v, 0));
  const Value first = half(v);
  return first ? ir::squeeze(first, {1}) : Value();
}

/// Whether v is [-x2, x1], where x is [x1, x2].
bool is_rotated_half(const Value& v, const Value& x) {
  const auto parts = last_axis_concat(v);
  if (!parts || !x.shape().back().is_static()) return false;
  const int64_t size = x.shape().back().value();
  const Value negated = match::unary((*parts)[0], ir::UnaryKind::kNeg);
  if (!negated) return false;
  const auto second = last_axis_part(negated), first = last_axis_part((*parts)[1]);
  return first && second && same(first->x, x) && same(second->x, x) && first->begin == Dim(0) &&
         first->end == Dim(size / 2) && second->begin == Dim(size / 2) && second->end == Dim(size);
}

/// cos of x * cos, and sin of rotate_half(x) * sin.
std::optional<std::vector<Value>> whole_head(ir::Graph& to, const ir::Node& node,
                                             const std::vector<Value>& in) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const auto plain = match::binary(in[i], BinaryKind::kMul);
    const auto turned = match::binary(in[1 - i], BinaryKind::kMul);
    if (!plain || !turned) return std::nullopt;
    for (const size_t p : {size_t{0}, size_t{1}}) {
      for (const size_t t : {size_t{0}, size_t{1}}) {
        const Value x = (*plain)[p];
        if (x.rank() != 4 || !is_rotated_half((*turned)[t], x)) continue;
        const Value cos = table((*plain)[1 - p]), sin = table((*turned)[1 - t]);
        if (!cos || !sin || cos.dtype() != x.dtype() || sin.dtype() != x.dtype()) continue;
        return std::vector<Value>{to.add_one(ir::make(ir::Rope{}), {x, cos, sin}, node.name)};
      }
    }
  }
  return std::nullopt;
}

/// Concat(Rope(x[:R]), x[R:]): a Rope that passes the rest through.
std::optional<std::vector<Value>> part_of_head(ir::Graph& to, const ir::Node& node,
                                               const std::vector<Value>& in) {
  if (in.size() != 2 || op_of<ir::Rope>(in[0]) == nullptr ||
      match::axis_of(ir::as<ir::Concat>(*node.op).axis, in[0]) != in[0].rank() - 1)
    return std::nullopt;
  const auto turned = last_axis_part(operand(in[0], 0)), rest = last_axis_part(in[1]);
  if (!turned || !rest || !same(turned->x, rest->x) || !(turned->begin == Dim(0)) ||
      !(turned->end == rest->begin) || !(rest->end == rest->x.shape().back()))
    return std::nullopt;
  const Value cos = operand(in[0], 1), sin = operand(in[0], 2);
  return std::vector<Value>{to.add_one(ir::make(ir::Rope{}), {turned->x, cos, sin}, node.name)};
}

std::optional<std::vector<Value>> rope(ir::Graph& to, const ir::Node& node,
                                       const std::vector<Value>& in) {
  if (node.kind() == OpKind::kConcat) return part_of_head(to, node, in);
  const bool sum =
      node.kind() == OpKind::kBinary && ir::as<ir::Binary>(*node.op).fn == BinaryKind::kAdd;
  return sum ? whole_head(to, node, in) : std::nullopt;
}

}  // namespace

bool recognize_rope(GraphPtr& graph) { return rewrite(graph, rope); }

}  // namespace tranship::passes

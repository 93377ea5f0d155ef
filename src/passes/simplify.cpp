// What does nothing is dropped; what repeats elements is put off, until an op repeats them anyway.
#include <algorithm>

#include "ir/build.h"
#include "ir/infer.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::as;
using ir::BinaryKind;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;
using match::op_of;
using match::operand;
using Results = std::optional<std::vector<Value>>;

bool is_scalar_number(const Value& v, double number) {
  const Tensor* t = match::constant(v);
  return t != nullptr && t->num_elements() == 1 && t->at(0) == number;
}

/// The number that changes nothing as an operand.
std::optional<double> neutral_of(BinaryKind fn) {
  switch (fn) {
    case BinaryKind::kAdd:
    case BinaryKind::kSub:
    case BinaryKind::kOr:
      return 0;
    case BinaryKind::kMul:
    case BinaryKind::kDiv:
    case BinaryKind::kAnd:
      return 1;
    default:
      return std::nullopt;
  }
}

/// x * 1, x + 0, x and true: x, if the other operand does not widen it.
Results without_neutral(const Node& node, const std::vector<Value>& in) {
  const BinaryKind fn = as<ir::Binary>(*node.op).fn;
  const std::optional<double> neutral = neutral_of(fn);
  if (!neutral) return std::nullopt;
  const bool commutes = fn != BinaryKind::kSub && fn != BinaryKind::kDiv;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if ((i == 0 || commutes) && is_scalar_number(in[1 - i], *neutral) &&
        in[1 - i].rank() <= in[i].rank())
      return std::vector<Value>{in[i]};
  }
  return std::nullopt;
}

Shape result_shape(const Node& node, const std::vector<Value>& in) {
  std::vector<const ir::Type*> types;
  for (const Value& v : in) types.push_back(v ? &v.type() : nullptr);
  return ir::infer(*node.op, types, {}).results[0].shape;
}

/// What an Expand or a Full repeats; absent for any other value.
Value under_repeat(const Value& v) {
  return op_of<ir::Expand>(v) != nullptr || op_of<ir::Full>(v) != nullptr ? operand(v, 0) : Value();
}

Value repeated(const Value& x, Shape shape) {
  return x.shape() == shape ? x : ir::expand(x, std::move(shape));
}

/// An operand that was repeated for an op that repeats it anyway.
Results with_narrow_operands(ir::Graph& to, const Node& node, const std::vector<Value>& in) {
  const Shape shape = result_shape(node, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const Value narrow = under_repeat(in[i]);
    if (!narrow) continue;
    std::vector<Value> operands = in;
    operands[i] = narrow;
    if (result_shape(node, operands) == shape) return to.add(node.op, operands, node.name);
  }
  return std::nullopt;
}

/// An op on each element comes before the elements are repeated.
Results repeated_after(ir::Graph& to, const Node& node, const std::vector<Value>& in) {
  const Value narrow = under_repeat(in[0]);
  if (!narrow) return std::nullopt;
  const std::vector<Value> one = to.add(node.op, std::vector<Value>{narrow}, node.name);
  return std::vector<Value>{repeated(one[0], in[0].shape())};
}

/// Rows of a table that are read again and again are repeated instead.
Results repeated_rows(ir::Graph& to, const Node& node, const std::vector<Value>& in) {
  const Value ids = under_repeat(in[1]);
  if (!ids) return std::nullopt;
  const std::vector<Value> rows = to.add(node.op, std::vector<Value>{in[0], ids}, node.name);
  return std::vector<Value>{repeated(rows[0], result_shape(node, in))};
}

/// The constant that an op of moved elements takes all its elements from; null if it is none.
const Tensor* elements_of(const Value& v) {
  switch (match::producer(v).kind()) {
    case OpKind::kConstant:
      return match::constant(v);
    case OpKind::kExpand:
    case OpKind::kSlice:
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kUnsqueeze:
    case OpKind::kSqueeze:
      return elements_of(operand(v, 0));
    default:
      return nullptr;
  }
}

/// What is read, by indices that are known to be inside, from a constant that is one number.
Results read_of_one_number(ir::Graph& to, const Node& node, const std::vector<Value>& in) {
  const Tensor *data = elements_of(in[0]), *indices = elements_of(in[1]);
  if (data == nullptr || indices == nullptr || data->num_elements() == 0) return std::nullopt;
  const double first = data->at(0);
  for (int64_t i = 1; i < data->num_elements(); ++i) {
    if (data->at(i) != first) return std::nullopt;
  }
  const int64_t axis = match::axis_of(as<ir::GatherElements>(*node.op).axis, in[0]);
  const ir::Dim& size = in[0].shape()[axis];
  if (!size.is_static()) return std::nullopt;
  for (int64_t i = 0; i < indices->num_elements(); ++i) {
    if (indices->at(i) < 0 || indices->at(i) >= static_cast<double>(size.value()))
      return std::nullopt;
  }
  return std::vector<Value>{repeated(ir::scalar(to, in[0].dtype(), first), result_shape(node, in))};
}

/// 0, 1, ... along an axis to its end: the axis as it is.
Results read_in_order(const Node& node, const std::vector<Value>& in) {
  const auto* order = op_of<ir::Iota>(in[1]);
  const int64_t axis = match::axis_of(as<ir::Gather>(*node.op).axis, in[0]);
  if (order == nullptr || !(order->count == in[0].shape()[axis])) return std::nullopt;
  return std::vector<Value>{in[0]};
}

// ---- ops that keep the order of the elements

bool is_view(OpKind kind) {
  return kind == OpKind::kReshape || kind == OpKind::kUnsqueeze || kind == OpKind::kSqueeze;
}
bool adds_or_drops_ones(OpKind kind) {
  return kind == OpKind::kUnsqueeze || kind == OpKind::kSqueeze;
}

/// The axes of size 1 that `to` has and `from` has not; nothing if that is not all they differ in.
std::optional<std::vector<int64_t>> added_ones(const Shape& from, const Shape& to) {
  std::vector<int64_t> axes;
  int64_t next = 0;
  for (int64_t i = 0; i < to.rank(); ++i) {
    if (next < from.rank() && from[next] == to[i]) {
      ++next;
    } else if (to[i] == ir::Dim(1)) {
      axes.push_back(i);
    } else {
      return std::nullopt;
    }
  }
  if (next != from.rank()) return std::nullopt;
  return axes;
}

/// A view of a view, as one of what is below them, or as what is below itself.
Results merged_view(const Node& node, const std::vector<Value>& in) {
  const Shape shape = result_shape(node, in);
  bool only_ones = adds_or_drops_ones(node.kind());
  Value below = in[0];
  for (; below.shape() != shape && is_view(match::producer(below).kind());
       below = operand(below, 0))
    only_ones &= adds_or_drops_ones(match::producer(below).kind());
  if (below.shape() == shape) return std::vector<Value>{below};
  if (match::same(below, in[0])) return std::nullopt;
  if (node.kind() == OpKind::kReshape) return std::vector<Value>{ir::reshape(below, shape)};
  if (!only_ones) return std::nullopt;
  if (const auto added = added_ones(below.shape(), shape))
    return std::vector<Value>{ir::unsqueeze(below, *added)};
  if (const auto dropped = added_ones(shape, below.shape()))
    return std::vector<Value>{ir::squeeze(below, *dropped)};
  return std::nullopt;
}

Results simplified_transpose(const Node& node, const std::vector<Value>& in) {
  std::vector<int64_t> perm = as<ir::Transpose>(*node.op).perm;
  if (std::is_sorted(perm.begin(), perm.end())) return std::vector<Value>{in[0]};
  const auto* inner = op_of<ir::Transpose>(in[0]);
  if (inner == nullptr) return std::nullopt;
  for (int64_t& axis : perm) axis = inner->perm[static_cast<size_t>(axis)];
  return std::vector<Value>{ir::transpose(operand(in[0], 0), perm)};
}

/// All slices of a value, one after the other: the value.
Results joined_slices(const Node& node, const std::vector<Value>& in) {
  const int64_t axis = match::axis_of(as<ir::Concat>(*node.op).axis, in[0]);
  const auto* first = op_of<ir::Slice>(in[0]);
  if (first == nullptr) return std::nullopt;
  const Value whole = operand(in[0], 0);
  ir::Dim end = 0;
  for (const Value& part : in) {
    const auto* slice = op_of<ir::Slice>(part);
    if (slice == nullptr || slice->step != 1 || !match::same(operand(part, 0), whole) ||
        match::axis_of(slice->axis, whole) != axis || !(slice->begin == end))
      return std::nullopt;
    end = slice->end;
  }
  return end == whole.shape()[axis] ? Results(std::vector<Value>{whole}) : std::nullopt;
}

bool keeps_sizes(const ir::Resize& resize, const Value& x) {
  if (!resize.scales.empty()) return false;
  for (int64_t i = 0; i < resize.sizes.rank(); ++i) {
    if (!(resize.sizes[i] == x.shape()[i + 2])) return false;
  }
  return true;
}

Results simplified_expand(const Node& node, const std::vector<Value>& in) {
  const Shape& shape = as<ir::Expand>(*node.op).shape;
  if (shape == in[0].shape()) return std::vector<Value>{in[0]};
  const Value narrow = under_repeat(in[0]);
  if (!narrow) return std::nullopt;
  return std::vector<Value>{ir::expand(narrow, shape)};
}

Results simplified(ir::Graph& to, const Node& node, const std::vector<Value>& in) {
  const auto unchanged_if = [&](bool nothing) {
    return nothing ? Results(std::vector<Value>{in[0]}) : std::nullopt;
  };
  switch (node.kind()) {
    case OpKind::kCast:
      if (as<ir::Cast>(*node.op).to == in[0].dtype()) return unchanged_if(true);
      return repeated_after(to, node, in);
    case OpKind::kUnary:
      return repeated_after(to, node, in);
    case OpKind::kBinary:
      if (Results out = without_neutral(node, in)) return out;
      return with_narrow_operands(to, node, in);
    case OpKind::kCompare:
    case OpKind::kWhere:
      return with_narrow_operands(to, node, in);
    case OpKind::kReshape:
    case OpKind::kUnsqueeze:
    case OpKind::kSqueeze:
      return merged_view(node, in);
    case OpKind::kResize:
      return unchanged_if(keeps_sizes(as<ir::Resize>(*node.op), in[0]));
    case OpKind::kExpand:
      return simplified_expand(node, in);
    case OpKind::kTranspose:
      return simplified_transpose(node, in);
    case OpKind::kConcat:
      return joined_slices(node, in);
    case OpKind::kEmbedding:
      return repeated_rows(to, node, in);
    case OpKind::kGather:
      return read_in_order(node, in);
    case OpKind::kGatherElements:
      return read_of_one_number(to, node, in);
    default:
      return std::nullopt;
  }
}

}  // namespace

bool simplify(GraphPtr& graph) { return rewrite(graph, simplified); }

}  // namespace tranship::passes

#include "passes/match.h"

#include <charconv>
#include <cmath>

namespace tranship::passes::match {

namespace {

/// A float as it was written: 1e-6, not the double 9.99999997e-7 that is nearest to the float.
double as_written(float number) {
  char text[32];
  const char* end = std::to_chars(std::begin(text), std::end(text), number).ptr;
  double out = number;
  std::from_chars(std::begin(text), end, out);
  return out;
}

}  // namespace

namespace {

bool equal(const Value& a, const Value& b, int depth) {
  constexpr int kDeepest = 16;
  if (!a || !b) return !a && !b;
  if (same(a, b)) return true;
  const ir::Node &x = producer(a), &y = producer(b);
  if (depth > kDeepest || x.outputs.size() != 1 || !x.graphs.empty() ||
      x.inputs.size() != y.inputs.size() || !ir::same(*x.op, *y.op))
    return false;
  for (size_t i = 0; i < x.inputs.size(); ++i) {
    if (!equal(operand(a, i), operand(b, i), depth + 1)) return false;
  }
  return true;
}

}  // namespace

bool equal(const Value& a, const Value& b) { return equal(a, b, 0); }

std::optional<double> number(const Value& v) {
  if (!v) return std::nullopt;
  if (const auto* constant = op_of<ir::Constant>(v)) {
    if (constant->value.num_elements() != 1) return std::nullopt;
    const double value = constant->value.at(0);
    return v.dtype() == DType::kF32 ? as_written(static_cast<float>(value)) : value;
  }
  switch (producer(v).kind()) {
    case ir::OpKind::kCast:
      // A number that a narrower dtype would change is not looked through.
      if (v.dtype() != DType::kF32 && v.dtype() != DType::kF64) return std::nullopt;
      [[fallthrough]];
    case ir::OpKind::kReshape:
    case ir::OpKind::kExpand:
    case ir::OpKind::kUnsqueeze:
    case ir::OpKind::kSqueeze:
    case ir::OpKind::kFull:
      return number(operand(v, 0));
    default:
      return std::nullopt;
  }
}

bool is_number(const Value& v, double expected) {
  const std::optional<double> found = number(v);
  return found && std::abs(*found - expected) <= 1e-7 * std::abs(expected);
}

std::optional<Pair> binary(const Value& v, ir::BinaryKind fn) {
  const auto* op = op_of<ir::Binary>(v);
  if (op == nullptr || op->fn != fn) return std::nullopt;
  return Pair{operand(v, 0), operand(v, 1)};
}

Value unary(const Value& v, ir::UnaryKind fn) {
  const auto* op = op_of<ir::Unary>(v);
  return op != nullptr && op->fn == fn ? operand(v, 0) : Value();
}

std::optional<WithNumber> binary_with_number(const Value& v, ir::BinaryKind fn) {
  const std::optional<Pair> pair = binary(v, fn);
  if (!pair) return std::nullopt;
  if (const auto right = number((*pair)[1])) return WithNumber{(*pair)[0], *right};
  const bool commutes = fn == ir::BinaryKind::kAdd || fn == ir::BinaryKind::kMul ||
                        fn == ir::BinaryKind::kMax || fn == ir::BinaryKind::kMin;
  if (!commutes) return std::nullopt;
  if (const auto left = number((*pair)[0])) return WithNumber{(*pair)[1], *left};
  return std::nullopt;
}

namespace {

void collect(const Value& v, Product& out, int depth) {
  constexpr int kDeepest = 8;
  if (const auto c = number(v)) {
    out.coefficient *= *c;
    return;
  }
  if (depth < kDeepest) {
    if (const auto pair = binary(v, ir::BinaryKind::kMul)) {
      collect((*pair)[0], out, depth + 1);
      collect((*pair)[1], out, depth + 1);
      return;
    }
    if (const auto pair = binary(v, ir::BinaryKind::kDiv)) {
      if (const auto divisor = number((*pair)[1]); divisor && *divisor != 0) {
        collect((*pair)[0], out, depth + 1);
        out.coefficient /= *divisor;
        return;
      }
    }
  }
  out.factors.push_back(v);
}

}  // namespace

Product product(const Value& v) {
  Product out;
  collect(v, out, 0);
  return out;
}

Value reduced(const Value& v, ir::ReduceKind fn, int64_t axis) {
  const auto* reduce = op_of<ir::Reduce>(v);
  if (reduce == nullptr || reduce->fn != fn || reduce->keepdims || reduce->axes.size() != 1)
    return {};
  const Value x = operand(v, 0);
  return axis_of(reduce->axes[0], x) == axis ? x : Value();
}

Value sliced(const Value& v, int64_t axis, const ir::Dim& begin, const ir::Dim& end) {
  const auto* slice = op_of<ir::Slice>(v);
  if (slice == nullptr || slice->step != 1 || !(slice->begin == begin) || !(slice->end == end))
    return {};
  const Value x = operand(v, 0);
  return axis_of(slice->axis, x) == axis ? x : Value();
}

std::optional<Pair> gathered(const Value& v, int64_t axis) {
  const auto* gather = op_of<ir::Gather>(v);
  if (gather == nullptr || axis_of(gather->axis, operand(v, 0)) != axis) return std::nullopt;
  return Pair{operand(v, 0), operand(v, 1)};
}

Value through_views(Value v) {
  while (op_of<ir::Reshape>(v) != nullptr || op_of<ir::Unsqueeze>(v) != nullptr ||
         op_of<ir::Squeeze>(v) != nullptr)
    v = operand(v, 0);
  return v;
}

bool counts_up(const Value& v, const ir::Dim& count) {
  const auto* iota = op_of<ir::Iota>(v);
  return iota != nullptr && iota->count == count;
}

}  // namespace tranship::passes::match

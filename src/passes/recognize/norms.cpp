#include "passes/match.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::BinaryKind;
using ir::OpKind;
using ir::Value;
using match::binary;
using match::op_of;
using match::operand;
using match::same;

/// z of 1 / sqrt(z).
Value under_reciprocal_root(const Value& v) {
  if (const Value root = match::unary(v, ir::UnaryKind::kReciprocal))
    return match::unary(root, ir::UnaryKind::kSqrt);
  if (const auto pow = match::binary_with_number(v, BinaryKind::kPow); pow && pow->number == -0.5)
    return pow->x;
  if (const auto pair = binary(v, BinaryKind::kDiv); pair && match::is_number((*pair)[0], 1))
    return match::unary((*pair)[1], ir::UnaryKind::kSqrt);
  return {};
}

/// x and z of x / sqrt(z).
struct Scaled {
  Value x;
  Value z;
};
std::optional<Scaled> scaled_by_root(const Value& v) {
  if (const auto pair = binary(v, BinaryKind::kDiv)) {
    if (const Value z = match::unary((*pair)[1], ir::UnaryKind::kSqrt))
      return Scaled{(*pair)[0], z};
  }
  if (const auto pair = binary(v, BinaryKind::kMul)) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (const Value z = under_reciprocal_root((*pair)[i])) return Scaled{(*pair)[1 - i], z};
    }
  }
  return std::nullopt;
}

/// x of mean(x) over the last axis, which stays.
Value under_mean(const Value& v) {
  const auto* reduce = op_of<ir::Reduce>(v);
  if (reduce == nullptr || reduce->fn != ir::ReduceKind::kMean || !reduce->keepdims ||
      reduce->axes.size() != 1 || match::axis_of(reduce->axes[0], v) != v.rank() - 1)
    return {};
  return operand(v, 0);
}

bool is_square_of(const Value& v, const Value& x) {
  if (const auto pow = match::binary_with_number(v, BinaryKind::kPow))
    return pow->number == 2 && same(pow->x, x);
  const auto pair = binary(v, BinaryKind::kMul);
  return pair && same((*pair)[0], x) && same((*pair)[1], x);
}

/// x and eps of x / sqrt(mean(x^2) + eps).
struct Normalized {
  Value x;
  double eps = 0;
};
std::optional<Normalized> normalized(const Value& v) {
  const auto scaled = scaled_by_root(v);
  if (!scaled) return std::nullopt;
  const auto sum = match::binary_with_number(scaled->z, BinaryKind::kAdd);
  if (!sum) return std::nullopt;
  const Value square = under_mean(sum->x);
  if (!square || !is_square_of(square, scaled->x)) return std::nullopt;
  return Normalized{scaled->x, sum->number};
}

bool is_vector_for(const Value& w, const Value& x) {
  return w && w.rank() == 1 && x.rank() > 0 && w.dtype() == x.dtype() && w.shape()[0].is_static() &&
         w.shape()[0] == x.shape().back();
}

/// The value before it was widened to f32 for the sum, if its result was narrowed again.
Value narrow(const Value& wide, DType dtype) {
  if (wide.dtype() == dtype) return wide;
  if (op_of<ir::Cast>(wide) == nullptr) return {};
  const Value x = operand(wide, 0);
  return x.dtype() == dtype ? x : Value();
}

Value through_cast(const Value& v) { return op_of<ir::Cast>(v) ? operand(v, 0) : v; }

/// x of x - mean(x).
Value under_centering(const Value& v) {
  const auto pair = binary(v, BinaryKind::kSub);
  if (!pair) return {};
  const Value mean = under_mean((*pair)[1]);
  return mean && same(mean, (*pair)[0]) ? (*pair)[0] : Value();
}

std::optional<Value> norm_with_weight(const Value& y, const Value& weight) {
  if (!is_vector_for(weight, y)) return std::nullopt;
  const auto n = normalized(through_cast(y));
  if (!n) return std::nullopt;
  if (const Value centered = under_centering(n->x)) {
    const Value x = narrow(centered, y.dtype());
    ir::LayerNorm op;
    op.eps = n->eps;
    if (x) return y.graph().add_one(ir::make(op), {x, weight, Value()});
  }
  const Value x = narrow(n->x, y.dtype());
  if (!x) return std::nullopt;
  ir::RmsNorm op;
  op.eps = n->eps;
  return y.graph().add_one(ir::make(op), {x, weight});
}

std::optional<std::vector<Value>> norm(ir::Graph& to, const ir::Node& node,
                                       const std::vector<Value>& in) {
  if (node.kind() != OpKind::kBinary) return std::nullopt;
  const BinaryKind fn = ir::as<ir::Binary>(*node.op).fn;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (fn == BinaryKind::kMul) {
      if (const auto y = norm_with_weight(in[i], in[1 - i])) return std::vector<Value>{*y};
    }
    const auto* layer_norm = op_of<ir::LayerNorm>(in[i]);
    if (fn == BinaryKind::kAdd && layer_norm != nullptr && !operand(in[i], 2) &&
        is_vector_for(in[1 - i], in[i])) {
      return std::vector<Value>{to.add_one(
          ir::make(*layer_norm), {operand(in[i], 0), operand(in[i], 1), in[1 - i]}, node.name)};
    }
  }
  return std::nullopt;
}

}  // namespace

bool recognize_norms(GraphPtr& graph) { return rewrite(graph, norm); }

}  // namespace tranship::passes

#include <algorithm>
#include <utility>

#include "passes/match.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::Dim;
using ir::OpKind;
using ir::Value;
using match::op_of;
using match::operand;

/// k of [B, K, T, D] repeated for its query heads, [B, K * G, T, D]: Reshape(Expand(Unsqueeze(k))).
Value under_repeat(const Value& v) {
  const Value wide = op_of<ir::Reshape>(v) != nullptr ? operand(v, 0) : Value();
  if (v.rank() != 4 || op_of<ir::Expand>(wide) == nullptr || wide.rank() != 5) return {};
  const Value column = operand(wide, 0);
  const ir::Shape& to = wide.shape();
  const ir::Shape once = {to[0], to[1], 1, to[3], to[4]},
                  all = {to[0], to[1] * to[2], to[3], to[4]};
  if (!(column.shape() == once) || !(v.shape() == all)) return {};
  const auto* unsqueeze = op_of<ir::Unsqueeze>(column);
  const bool added = unsqueeze != nullptr && unsqueeze->axes.size() == 1 &&
                     match::axis_of(unsqueeze->axes[0], column) == 2;
  return added ? operand(column, 0) : ir::squeeze(column, {2});
}

std::optional<std::vector<Value>> shared_keys(ir::Graph& to, const ir::Node& node,
                                              const std::vector<Value>& in) {
  const Value k = under_repeat(in[1]), v = under_repeat(in[2]);
  if (!k || !v || !(k.shape()[1] == v.shape()[1])) return std::nullopt;
  std::vector<Value> operands = in;
  operands[1] = k;
  operands[2] = v;
  return to.add(node.op, operands, node.name);
}

/// A factor on q, and 1 on k: part of the scale.
std::optional<std::vector<Value>> scaled_query(ir::Graph& to, const ir::Node& node,
                                               const std::vector<Value>& in) {
  const auto q = match::binary_with_number(in[0], ir::BinaryKind::kMul);
  if (!q || q->x.shape() != in[0].shape()) return std::nullopt;
  ir::Attention attention = ir::as<ir::Attention>(*node.op);
  attention.scale *= q->number;
  std::vector<Value> operands = in;
  operands[0] = q->x;
  return to.add(ir::make(attention), operands, node.name);
}

/// k of a matrix product with k^T, which may have been turned from another order at once.
Value under_transpose(const Value& v) {
  const auto* transpose = op_of<ir::Transpose>(v);
  if (transpose == nullptr || v.rank() != 4) return {};
  std::vector<int64_t> perm = transpose->perm;
  std::swap(perm[2], perm[3]);
  const Value x = operand(v, 0);
  return std::is_sorted(perm.begin(), perm.end()) ? x : ir::transpose(x, perm);
}

/// Heads that were made one axis with the batch, [B * H, M, N], as [B, H, M, N]: in front of the
/// ops between, down to where they were made one.
class Unmerged {
 public:
  Unmerged(Dim batch, Dim heads) : batch_(std::move(batch)), heads_(std::move(heads)) {}

  Value operator()(const Value& v, int depth = 0) const {
    constexpr int kDeepest = 8;
    if (!is_merged(v) || depth > kDeepest) return {};
    const Value inner = operand(v, 0);
    if (op_of<ir::Reshape>(v) != nullptr) return inner.shape() == wide(v) ? inner : Value();
    switch (match::producer(v).kind()) {
      case OpKind::kTranspose:
        if (op_of<ir::Transpose>(v)->perm != std::vector<int64_t>{0, 2, 1}) return {};
        return applied((*this)(inner, depth + 1),
                       [](const Value& x) { return ir::transpose(x, {0, 1, 3, 2}); });
      case OpKind::kSoftmax:
        if (match::axis_of(op_of<ir::Softmax>(v)->axis, v) != 2) return {};
        return applied((*this)(inner, depth + 1), [](const Value& x) { return ir::softmax(x, 3); });
      case OpKind::kMatMul: {
        const Value a = (*this)(inner, depth + 1), b = (*this)(operand(v, 1), depth + 1);
        return a && b ? ir::matmul(a, b) : Value();
      }
      case OpKind::kBinary:
        return sum_or_product(v, depth);
      default:
        return {};
    }
  }

 private:
  template <class Op>
  static Value applied(const Value& x, Op&& op) {
    return x ? op(x) : Value();
  }

  /// One operand is of heads; the other is, too, or is made so, or is a number.
  Value sum_or_product(const Value& v, int depth) const {
    const Value a = operand(v, 0), b = operand(v, 1);
    const Value wide_a = (*this)(a, depth + 1), wide_b = (*this)(b, depth + 1);
    if (!wide_a && !wide_b) return {};
    const auto other = [&](const Value& x) {
      if (is_merged(x)) return ir::reshape(x, wide(x));
      return x.rank() == 0 ? x : Value();
    };
    const Value left = wide_a ? wide_a : other(a), right = wide_b ? wide_b : other(b);
    return left && right ? ir::binary(op_of<ir::Binary>(v)->fn, left, right) : Value();
  }

  ir::Shape wide(const Value& v) const { return {batch_, heads_, v.shape()[1], v.shape()[2]}; }

  bool is_merged(const Value& v) const { return v.rank() == 3 && v.shape()[0] == batch_ * heads_; }

  Dim batch_, heads_;
};

/// Reshape(MatMul [B * H, M, N]) to [B, H, M, N]: a product of four axes.
std::optional<std::vector<Value>> unmerged(const ir::Node& node, const std::vector<Value>& in) {
  const ir::Shape& to = ir::as<ir::Reshape>(*node.op).shape;
  const ir::Shape& from = in[0].shape();
  if (op_of<ir::MatMul>(in[0]) == nullptr || from.rank() != 3 || to.rank() != 4)
    return std::nullopt;
  if (!(from[0] == to[0] * to[1]) || !(from[1] == to[2]) || !(from[2] == to[3]) ||
      !to[1].is_static())
    return std::nullopt;
  const Value product = Unmerged(to[0], to[1])(in[0]);
  if (!product) return std::nullopt;
  return std::vector<Value>{product};
}

/// What softmax is taken of: the scores' product and what is added to it.
struct Scores {
  Value product;
  double scale = 1;
  Value bias;
};
/// Scores that were replaced where they are hidden, by a number beside which no score counts: it is
/// added instead.
template <class Take>
std::optional<Scores> hidden_scores(const Value& v, const Take& take) {
  const Value condition = operand(v, 0);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const auto hidden = match::number(operand(v, 3 - i));
    if (!hidden || *hidden > -1e38 || v.dtype() != DType::kF32 || v.rank() != 4) continue;
    auto scores = take(operand(v, i));
    if (!scores || !(operand(v, i).shape() == v.shape()) || condition.rank() != 4) continue;
    const Value zero = ir::scalar(v.graph(), v.dtype(), 0), low = operand(v, 3 - i);
    const Value other = match::unary(condition, ir::UnaryKind::kNot);
    if (i == 1) {
      scores->bias = ir::where(condition, zero, low);
    } else if (other) {
      scores->bias = ir::where(other, zero, low);
    } else {
      scores->bias = ir::where(condition, low, zero);
    }
    return scores;
  }
  return std::nullopt;
}

std::optional<Scores> scores_of(const Value& v) {
  const auto take = [](const Value& x) -> std::optional<Scores> {
    const match::Product p = match::product(x);
    if (p.factors.size() != 1 || op_of<ir::MatMul>(p.factors[0]) == nullptr) return std::nullopt;
    return Scores{p.factors[0], p.coefficient, {}};
  };
  if (const auto plain = take(v)) return plain;
  if (op_of<ir::Where>(v) != nullptr) return hidden_scores(v, take);
  const auto sum = match::binary(v, ir::BinaryKind::kAdd);
  if (!sum) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    auto scores = take((*sum)[i]);
    if (!scores || !((*sum)[i].shape() == v.shape()) || (*sum)[1 - i].rank() != 4) continue;
    scores->bias = (*sum)[1 - i];
    return scores;
  }
  return std::nullopt;
}

/// MatMul(Softmax(q k^T * scale + bias), v).
std::optional<std::vector<Value>> written_out(ir::Graph& to, const ir::Node& node,
                                              const std::vector<Value>& in) {
  const auto* softmax = op_of<ir::Softmax>(in[0]);
  if (softmax == nullptr || in[0].rank() != 4 || in[1].rank() != 4 ||
      match::axis_of(softmax->axis, in[0]) != 3)
    return std::nullopt;
  const auto scores = scores_of(operand(in[0], 0));
  if (!scores) return std::nullopt;
  const Value q = operand(scores->product, 0), k = under_transpose(operand(scores->product, 1));
  if (!k || q.rank() != 4 || !(q.shape()[0] == k.shape()[0]) || !(q.shape()[1] == k.shape()[1]) ||
      !(k.shape()[2] == in[1].shape()[2]) || !(k.shape()[0] == in[1].shape()[0]) ||
      !(k.shape()[1] == in[1].shape()[1]) || !q.shape()[1].is_static())
    return std::nullopt;
  ir::Attention attention;
  attention.scale = scores->scale;
  return std::vector<Value>{
      to.add_one(ir::make(attention), {q, k, in[1], Value(), scores->bias}, node.name)};
}

std::optional<std::vector<Value>> attention(ir::Graph& to, const ir::Node& node,
                                            const std::vector<Value>& in) {
  if (node.kind() == OpKind::kMatMul) return written_out(to, node, in);
  if (node.kind() == OpKind::kReshape) return unmerged(node, in);
  if (node.kind() != OpKind::kAttention) return std::nullopt;
  if (auto shared = shared_keys(to, node, in)) return shared;
  return scaled_query(to, node, in);
}

}  // namespace

bool recognize_attention(GraphPtr& graph) { return rewrite(graph, attention); }

}  // namespace tranship::passes

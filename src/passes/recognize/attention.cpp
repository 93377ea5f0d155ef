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

/// k of a matrix product with k^T.
Value under_transpose(const Value& v) {
  const auto* transpose = op_of<ir::Transpose>(v);
  if (transpose == nullptr || transpose->perm != std::vector<int64_t>{0, 1, 3, 2}) return {};
  return operand(v, 0);
}

/// What softmax is taken of: the scores' product and what is added to it.
struct Scores {
  Value product;
  double scale = 1;
  Value bias;
};
std::optional<Scores> scores_of(const Value& v) {
  const auto take = [](const Value& x) -> std::optional<Scores> {
    const match::Product p = match::product(x);
    if (p.factors.size() != 1 || op_of<ir::MatMul>(p.factors[0]) == nullptr) return std::nullopt;
    return Scores{p.factors[0], p.coefficient, {}};
  };
  if (const auto plain = take(v)) return plain;
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
  if (node.kind() != OpKind::kAttention) return std::nullopt;
  if (auto shared = shared_keys(to, node, in)) return shared;
  return scaled_query(to, node, in);
}

}  // namespace

bool recognize_attention(GraphPtr& graph) { return rewrite(graph, attention); }

}  // namespace tranship::passes

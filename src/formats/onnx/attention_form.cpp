#include "formats/onnx/attention_form.h"

#include <map>
#include <optional>
#include <vector>

#include "formats/onnx/cache_update.h"
#include "formats/onnx/fusions/activations.h"
#include "formats/onnx/fusions/experts.h"
#include "formats/onnx/fusions/grouped_attention.h"
#include "formats/onnx/lowering.h"
#include "ir/build.h"
#include "ir/decompose.h"
#include "passes/rewrite.h"

namespace tranship::onnx {

using ir::as;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;

namespace {

bool is_multi_head(const ir::Graph& graph, const Node& n, const Capabilities& provider) {
  const ir::Type& q = graph.type(n.inputs[0]);
  const Shape &k = graph.type(n.inputs[1]).shape, &v = graph.type(n.inputs[2]).shape;
  return is_among(provider.multi_head_dtypes, q.dtype) && q.shape[1].is_static() &&
         k[1].is_static() && q.shape[3].is_static() && q.shape[3] == v[3];
}

}  // namespace

AttentionForm attention_form(const ir::Graph& graph, const Node& attention, const Target& target) {
  if (target.fusions) {
    const Capabilities& provider = capabilities(*target.fusions);
    if (grouped_attention(graph, attention, provider)) return AttentionForm::kGrouped;
    if (is_multi_head(graph, attention, provider)) return AttentionForm::kMultiHead;
  }
  return target.has_composites() ? AttentionForm::kStandard : AttentionForm::kPrimitives;
}

bool absorbs_caches(const ir::Graph& graph, const Node& attention, AttentionForm form) {
  const ir::ValueId keys = attention.inputs[1], values = attention.inputs[2];
  if (cache_update(graph, keys).past == ir::kAbsent) return false;
  if (cache_update(graph, values).past == ir::kAbsent) return false;
  if (form == AttentionForm::kGrouped) return true;
  if (form == AttentionForm::kPrimitives) return false;
  const auto grows = [&](ir::ValueId id) {  // slots are TensorScatter's
    return graph.producer(id).kind() == OpKind::kCacheAppend;
  };
  const ir::Dim &heads = graph.type(attention.inputs[0]).shape[1],
                &key_heads = graph.type(keys).shape[1];
  const bool has_heads = form == AttentionForm::kMultiHead
                             ? heads == key_heads
                             : heads.is_static() && key_heads.is_static();
  return has_heads && grows(keys) && grows(values);
}

namespace {

bool is_kept_rope(const ir::Graph& graph, const Node& rope) {
  const ir::Type& x = graph.type(rope.inputs[0]);
  return x.dtype != DType::kF64 && x.shape[1].is_static() && x.shape[3].is_static();
}

/// Whether an operator with an attribute for causality can say all of it.
bool is_square_causal(const ir::Attention& op, const std::vector<Value>& in) {
  const bool is_square = in[0].shape()[2] == in[1].shape()[2];
  return op.causal && !op.window && is_square && !in[3] && !in[4];
}

std::vector<Value> with_mask(ir::Graph& to, const Node& node, std::vector<Value> in,
                             bool has_causality) {
  in.resize(5);
  const auto& op = as<ir::Attention>(*node.op);
  if (has_causality && is_square_causal(op, in))
    return {to.add_one(node.op, {in[0], in[1], in[2]}, node.name)};
  const bool bias_is_mask = in[4] && in[4].dtype() == DType::kBool;
  Value keep = ir::visible_keys(to, op, in[0].shape(), in[1].shape(), in[3]);
  if (bias_is_mask) keep = ir::and_if_present(keep, in[4]);
  if (keep && keep.rank() == 2) keep = ir::unsqueeze(keep, {0, 1});
  Value mask = bias_is_mask ? Value() : in[4];
  if (keep && mask) {
    const DType dtype = mask.dtype();
    mask =
        mask + ir::where(keep, ir::scalar(to, dtype, 0), ir::scalar(to, dtype, ir::lowest(dtype)));
  } else if (keep) {
    mask = keep;
  }
  ir::Attention bare;
  bare.scale = op.scale;
  const Value y = to.add_one(ir::make(bare), {in[0], in[1], in[2], Value(), mask}, node.name);
  if (!in[3] && !bias_is_mask) return {y};  // otherwise a query may see no key at all
  const Value any = ir::reduce(ir::ReduceKind::kAny, keep, {-1}, true);
  return {ir::where(any, y, ir::scalar(to, y.dtype(), 0))};
}

bool is_kept(const ir::Graph& graph, const Node& node, const Target& target) {
  switch (node.kind()) {
    case OpKind::kAttention:
      return attention_form(graph, node, target) != AttentionForm::kPrimitives;
    case OpKind::kRope:
      return target.has_heads() && is_kept_rope(graph, node);
    case OpKind::kActivation:
      return target.fusions && !fused_activation(graph, node, *target.fusions).empty();
    case OpKind::kMoe:
      return target.fusions && target.may_change_weights &&
             routing(graph, node, capabilities(*target.fusions)).has_value();
    default:
      return false;
  }
}

}  // namespace

std::set<const Node*> kept_composites(const ir::Graph& graph, const Target& target) {
  std::set<const Node*> kept;
  for (const Node& node : graph.nodes()) {
    if (is_kept(graph, node, target)) kept.insert(&node);
  }
  return kept;
}

void write_out_masks(std::unique_ptr<ir::Graph>& graph, const Target& target) {
  std::map<const Node*, bool> written;  // and whether causality of a square may stay
  for (const Node& node : graph->nodes()) {
    if (node.kind() != OpKind::kAttention) continue;
    const AttentionForm form = attention_form(*graph, node, target);
    if (form == AttentionForm::kStandard) written.emplace(&node, true);
    if (form == AttentionForm::kMultiHead)
      written.emplace(&node, capabilities(*target.fusions).unidirectional);
  }
  passes::rewrite(graph,
                  [&](ir::Graph& to, const Node& node,
                      const std::vector<Value>& operands) -> std::optional<std::vector<Value>> {
                    const auto it = written.find(&node);
                    if (it == written.end()) return std::nullopt;
                    return with_mask(to, node, operands, it->second);
                  });
}

}  // namespace tranship::onnx

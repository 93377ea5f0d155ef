#include "formats/onnx/fusions/grouped_attention.h"

namespace tranship::onnx {

using ir::as;
using ir::Node;
using ir::Shape;

namespace {

constexpr int64_t kHeadSizeMultiple = 8;

bool has_sizes(const ir::Graph& graph, const Node& n, const Capabilities& provider) {
  const ir::Type& q = graph.type(n.inputs[0]);
  const Shape &k = graph.type(n.inputs[1]).shape, &v = graph.type(n.inputs[2]).shape;
  return is_among(provider.grouped_dtypes, q.dtype) && q.shape[1].is_static() && k[1].is_static() &&
         q.shape[3].is_static() && q.shape[3].value() % kHeadSizeMultiple == 0 &&
         q.shape[3] == v[3];
}

/// A bias of bool says for each query what it sees; else the op itself must be causal.
bool has_mask(const ir::Graph& graph, const Node& n, const GroupedAttention& found,
              const Capabilities& provider) {
  const auto& op = as<ir::Attention>(*n.op);
  const bool has_bias = n.inputs.size() > 4 && n.inputs[4] != ir::kAbsent;
  const Shape &q = graph.type(n.inputs[0]).shape, &added = graph.type(found.keys.added).shape;
  if (!(q[2] == added[2])) return false;
  const bool is_one = q[2] == ir::Dim(1);  // which stands last: it sees all that came before
  const bool has_any = has_bias || n.inputs[3] != ir::kAbsent;
  if (has_any && !is_one && !provider.grouped_prompt_bias) return false;
  const bool of_bool = has_bias && graph.type(n.inputs[4]).dtype == DType::kBool;
  if (found.keys.counter != ir::kAbsent || of_bool) {
    if (!of_bool || op.causal || op.window || n.inputs[3] != ir::kAbsent) return false;
    if (!is_one && !provider.grouped_not_causal) return false;
    const Shape& seen = graph.type(n.inputs[4]).shape;
    return seen.rank() == 4 && seen[1] == 1 && seen[2] == q[2];
  }
  return op.causal;
}

}  // namespace

std::optional<GroupedAttention> grouped_attention(const ir::Graph& graph, const Node& attention,
                                                  const Capabilities& provider) {
  if (!has_sizes(graph, attention, provider)) return std::nullopt;
  const GroupedAttention found = {cache_update(graph, attention.inputs[1]),
                                  cache_update(graph, attention.inputs[2])};
  const auto& [keys, values] = found;
  if ((keys.past == ir::kAbsent) != (values.past == ir::kAbsent)) return std::nullopt;
  if ((keys.counter == ir::kAbsent) != (values.counter == ir::kAbsent)) return std::nullopt;
  if (!has_mask(graph, attention, found, provider)) return std::nullopt;
  const Shape& q = graph.type(attention.inputs[0]).shape;
  const bool one = q[2] == ir::Dim(1) || q[0] == ir::Dim(1);
  if (keys.past != ir::kAbsent && !one) return std::nullopt;
  return found;
}

}  // namespace tranship::onnx

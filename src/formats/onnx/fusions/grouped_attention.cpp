#include "formats/onnx/fusions/grouped_attention.h"

#include <algorithm>

namespace tranship::onnx {

using ir::as;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

namespace {

constexpr int64_t kHeadSizeMultiple = 8;

bool is_input(const ir::Graph& graph, ValueId id) {
  return graph.producer(id).kind() == OpKind::kInput;
}

int64_t num_uses(const ir::Graph& graph, ValueId id) {
  int64_t count = 0;
  for (const Node& node : graph.nodes()) count += std::ranges::count(node.inputs, id);
  return count;
}

/// What an index looks at, when it is spread over a tensor.
ValueId without_views(const ir::Graph& graph, ValueId id) {
  for (;;) {
    const Node& node = graph.producer(id);
    const OpKind kind = node.kind();
    if (kind != OpKind::kExpand && kind != OpKind::kUnsqueeze && kind != OpKind::kReshape)
      return id;
    id = node.inputs[0];
  }
}

/// Whether a node gives 0, 1, ... up to `count`.
bool counts_up(const Node& node, const ir::Dim& count) {
  if (node.kind() == OpKind::kIota) return as<ir::Iota>(*node.op).count == count;
  if (node.kind() != OpKind::kConstant) return false;
  const Tensor& value = as<ir::Constant>(*node.op).value;
  if (value.shape().size() != 1 || !(ir::Dim(value.num_elements()) == count)) return false;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    if (value.at(i) != static_cast<double>(i)) return false;
  }
  return true;
}

/// The counter, if a scatter writes new tokens into the slots from the counter on; else kAbsent.
ValueId counter_of(const ir::Graph& graph, const Node& scatter) {
  const auto& op = as<ir::ScatterElements>(*scatter.op);
  if (op.reduction != ir::ScatterReduction::kNone || op.axis != 2) return ir::kAbsent;
  const Shape& added = graph.type(scatter.inputs[2]).shape;
  const ValueId place = without_views(graph, scatter.inputs[1]);
  const auto counts = [&](ValueId id) {
    return graph.type(id).shape.rank() == 0 && is_input(graph, id);
  };
  if (added[2] == ir::Dim(1) && counts(place)) return place;
  const Node& sum = graph.producer(place);
  if (sum.kind() != OpKind::kBinary || as<ir::Binary>(*sum.op).fn != ir::BinaryKind::kAdd)
    return ir::kAbsent;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Node& iota = graph.producer(sum.inputs[i]);
    const ValueId counter = sum.inputs[1 - i];
    if (counts_up(iota, added[2]) && counts(counter)) return counter;
  }
  return ir::kAbsent;
}

/// A cache and what is put into it.
struct Update {
  ValueId past = ir::kAbsent, added = ir::kAbsent, counter = ir::kAbsent;
};

/// How keys or values come about; what is no update of a cache is new.
Update update_of(const ir::Graph& graph, ValueId id) {
  const Node& node = graph.producer(id);
  const bool is_private = num_uses(graph, id) == 1;
  if (node.kind() == OpKind::kCacheAppend && is_private && is_input(graph, node.inputs[0]))
    return {node.inputs[0], node.inputs[1], ir::kAbsent};
  if (node.kind() == OpKind::kScatterElements && is_private && is_input(graph, node.inputs[0])) {
    const ValueId counter = counter_of(graph, node);
    if (counter != ir::kAbsent) return {node.inputs[0], node.inputs[2], counter};
  }
  return {ir::kAbsent, id, ir::kAbsent};
}

bool has_sizes(const ir::Graph& graph, const Node& n) {
  const ir::Type& q = graph.type(n.inputs[0]);
  const Shape &k = graph.type(n.inputs[1]).shape, &v = graph.type(n.inputs[2]).shape;
  return q.dtype == DType::kF32 && q.shape[1].is_static() && k[1].is_static() &&
         q.shape[3].is_static() && q.shape[3].value() % kHeadSizeMultiple == 0 &&
         q.shape[3] == v[3];
}

/// A bias of bool says for each query what it sees; else the op itself must be causal.
bool has_mask(const ir::Graph& graph, const Node& n, const GroupedAttention& found) {
  const auto& op = as<ir::Attention>(*n.op);
  const bool has_bias = n.inputs.size() > 4 && n.inputs[4] != ir::kAbsent;
  const Shape &q = graph.type(n.inputs[0]).shape, &added = graph.type(found.new_key).shape;
  if (!(q[2] == added[2])) return false;
  const bool of_bool = has_bias && graph.type(n.inputs[4]).dtype == DType::kBool;
  if (found.counter != ir::kAbsent || of_bool) {
    if (!of_bool || op.causal || op.window || n.inputs[3] != ir::kAbsent) return false;
    const Shape& seen = graph.type(n.inputs[4]).shape;
    return seen.rank() == 4 && seen[1] == 1 && seen[2] == q[2];
  }
  return op.causal;
}

}  // namespace

std::optional<GroupedAttention> grouped_attention(const ir::Graph& graph, const Node& attention) {
  if (!has_sizes(graph, attention)) return std::nullopt;
  const Update keys = update_of(graph, attention.inputs[1]),
               values = update_of(graph, attention.inputs[2]);
  if ((keys.past == ir::kAbsent) != (values.past == ir::kAbsent)) return std::nullopt;
  if ((keys.counter == ir::kAbsent) != (values.counter == ir::kAbsent)) return std::nullopt;
  const GroupedAttention found = {keys.past, values.past, keys.added, values.added, keys.counter};
  if (!has_mask(graph, attention, found)) return std::nullopt;
  const Shape& q = graph.type(attention.inputs[0]).shape;
  const bool one = q[2] == ir::Dim(1) || q[0] == ir::Dim(1);
  if (found.past_key != ir::kAbsent && !one) return std::nullopt;
  return found;
}

bool is_absorbed(const ir::Graph& graph, ValueId cache) {
  return update_of(graph, cache).past != ir::kAbsent;
}

std::set<const Node*> grouped_attentions(const ir::Graph& graph) {
  std::set<const Node*> found;
  for (const Node& node : graph.nodes()) {
    if (node.kind() == OpKind::kAttention && grouped_attention(graph, node)) found.insert(&node);
  }
  return found;
}

}  // namespace tranship::onnx

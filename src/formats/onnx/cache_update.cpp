#include "formats/onnx/cache_update.h"

#include <algorithm>

namespace tranship::onnx {

using ir::as;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

namespace {

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

/// Whether a scatter's updates are as large as its data, but along axis 2.
bool fills_other_axes(const Shape& data, const Shape& updates) {
  for (int64_t axis = 0; axis < data.rank(); ++axis) {
    if (axis != 2 && !(data[axis] == updates[axis])) return false;
  }
  return data.rank() == 4;
}

}  // namespace

ValueId counter_of(const ir::Graph& graph, const Node& scatter) {
  const auto& op = as<ir::ScatterElements>(*scatter.op);
  if (op.reduction != ir::ScatterReduction::kNone || op.axis != 2) return ir::kAbsent;
  const Shape& added = graph.type(scatter.inputs[2]).shape;
  if (!fills_other_axes(graph.type(scatter.inputs[0]).shape, added)) return ir::kAbsent;
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

CacheUpdate cache_update(const ir::Graph& graph, ValueId id) {
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

}  // namespace tranship::onnx

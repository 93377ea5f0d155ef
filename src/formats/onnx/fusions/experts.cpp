#include "formats/onnx/fusions/experts.h"

namespace tranship::onnx {

using ir::as;
using ir::Node;
using ir::OpKind;
using ir::ValueId;

namespace {

/// What a cast is of, or the value itself.
ValueId uncast(const ir::Graph& graph, ValueId id) {
  const Node& node = graph.producer(id);
  return node.kind() == OpKind::kCast ? node.inputs[0] : id;
}

const Node* producer_of(const ir::Graph& graph, ValueId id, OpKind kind) {
  const Node& node = graph.producer(id);
  return node.kind() == kind ? &node : nullptr;
}

bool is_last(int64_t axis, const ir::Shape& shape) {
  return axis == -1 || axis == shape.rank() - 1;
}

/// x, if a value is x over its sum along the last axis.
ValueId shared_out(const ir::Graph& graph, ValueId id) {
  const Node* quotient = producer_of(graph, id, OpKind::kBinary);
  if (quotient == nullptr || as<ir::Binary>(*quotient->op).fn != ir::BinaryKind::kDiv)
    return ir::kAbsent;
  const Node* sum = producer_of(graph, quotient->inputs[1], OpKind::kReduce);
  if (sum == nullptr || sum->inputs[0] != quotient->inputs[0]) return ir::kAbsent;
  const auto& op = as<ir::Reduce>(*sum->op);
  const bool is_sum = op.fn == ir::ReduceKind::kSum && op.keepdims && op.axes.size() == 1 &&
                      is_last(op.axes[0], graph.type(sum->inputs[0]).shape);
  return is_sum ? sum->inputs[0] : ir::kAbsent;
}

}  // namespace

std::optional<Routing> routing(const ir::Graph& graph, const Node& moe,
                               const Capabilities& provider) {
  const DType dtype = graph.type(moe.inputs[0]).dtype;
  if (as<ir::Moe>(*moe.op).fn != ir::ActivationKind::kSilu) return std::nullopt;
  if (!is_among(provider.moe_dtypes, dtype)) return std::nullopt;
  for (const size_t i : {size_t{3}, size_t{4}}) {
    if (producer_of(graph, moe.inputs[i], OpKind::kParam) == nullptr) return std::nullopt;
  }
  Routing found;
  ValueId weights = uncast(graph, moe.inputs[2]);
  if (const ValueId unshared = shared_out(graph, weights); unshared != ir::kAbsent) {
    found.normalizes = true;
    weights = unshared;
  }
  const Node* top = producer_of(graph, weights, OpKind::kTopK);
  if (top == nullptr || top->outputs[0] != weights || top->outputs[1] != moe.inputs[1])
    return std::nullopt;
  const auto& op = as<ir::TopK>(*top->op);
  const Node* softmax = producer_of(graph, top->inputs[0], OpKind::kSoftmax);
  if (!op.largest || !op.k.is_static() || softmax == nullptr) return std::nullopt;
  const ir::Shape& shape = graph.type(top->inputs[0]).shape;
  if (!is_last(op.axis, shape) || !is_last(as<ir::Softmax>(*softmax->op).axis, shape))
    return std::nullopt;
  found.num_chosen = op.k.value();
  found.logits = uncast(graph, softmax->inputs[0]);
  return graph.type(found.logits).dtype == dtype ? std::optional(found) : std::nullopt;
}

std::string interleaved_name(const ir::Graph& graph, const Node& moe) {
  return as<ir::Param>(*graph.producer(moe.inputs[3]).op).name + ".interleaved";
}

std::map<std::string, TensorSourcePtr> interleaved_weights(
    const ir::Graph& graph, const Capabilities& provider,
    const std::map<std::string, TensorSourcePtr>& parameters) {
  std::map<std::string, TensorSourcePtr> made;
  for (const Node& node : graph.nodes()) {
    if (node.kind() != OpKind::kMoe || !routing(graph, node, provider)) continue;
    const TensorSourcePtr source =
        parameters.at(as<ir::Param>(*graph.producer(node.inputs[3]).op).name);
    const std::vector<int64_t> shape = source->shape();  // [experts, gate and up, hidden]
    const int64_t rows = shape[1], half = rows / 2;
    const auto row_of = [rows, half](int64_t row) {
      const int64_t within = row % rows;
      return row - within + within % 2 * half + within / 2;
    };
    const TensorSourcePtr matrix = reshape_source(source, {shape[0] * rows, shape[2]});
    made.emplace(interleaved_name(graph, node),
                 reshape_source(permute_rows_source(matrix, row_of), shape));
  }
  return made;
}

}  // namespace tranship::onnx

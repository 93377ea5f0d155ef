// From a graph of ours, decomposed as far as ONNX needs it, to ONNX nodes.
// Internal to formats/onnx.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/onnx/fusions/provider.h"
#include "ir/program.h"

namespace onnx {  // the generated classes
class GraphProto;
}  // namespace onnx

namespace tranship::onnx {

/// What is lowered to.
struct Target {
  int opset_version = 20;
  std::optional<Provider> fusions = {};  // whose own operators may be used; absent: standard ONNX
  bool may_change_weights = true;        // whether weights may stand in another order

  /// Whether the standard itself has attention, rotary positions and RMS norms.
  bool has_composites() const { return opset_version >= 23; }
  /// Whether it can write into slots: TensorScatter.
  bool has_slots() const { return opset_version >= 24; }
  /// Whether anything takes heads as projections make them.
  bool has_heads() const { return fusions || has_composites(); }
};

/// Composites that the target has an operator for, whatever their operands are; attention_form.h
/// has those that depend on them. The others are decomposed before lower_graph().
bool claims(const ir::Node& node, const Target& target);

/// What lower_graph() could not say: op -> why. Filled for all nodes before anything is reported.
using Unsupported = std::map<std::string, std::string>;

/// Fills `to` with inputs, nodes and outputs. Weights are not added: nodes name them as the
/// parameters are named. `stored`: dtypes of weights that are stored in another one than the
/// graph's; a Cast stands before their use.
/// -> names of the weights in the order of their first use; those that are not parameters of the
/// graph are interleaved_weights() of fusions/experts.h.
std::vector<std::string> lower_graph(const ir::Graph& graph, const Target& target,
                                     const std::map<std::string, DType>& stored,
                                     ::onnx::GraphProto& to, Unsupported& unsupported);

}  // namespace tranship::onnx

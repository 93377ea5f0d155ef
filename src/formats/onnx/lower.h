// From a graph of ours, decomposed as far as ONNX needs it, to ONNX nodes.
// Internal to formats/onnx.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/program.h"

namespace onnx {  // the generated classes
class GraphProto;
}  // namespace onnx

namespace tranship::onnx {

/// Composites that ONNX has an operator for at an opset; the others are decomposed before
/// lower_graph().
bool claims(const ir::Node& node, int opset_version);

/// What lower_graph() could not say: op -> why. Filled for all nodes before anything is reported.
using Unsupported = std::map<std::string, std::string>;

/// Fills `to` with inputs, nodes and outputs. Weights are not added: nodes name them as the
/// parameters are named. `stored`: dtypes of weights that are stored in another one than the
/// graph's; a Cast stands before their use.
/// -> names of the weights in the order of their first use.
std::vector<std::string> lower_graph(const ir::Graph& graph, int opset_version,
                                     const std::map<std::string, DType>& stored,
                                     ::onnx::GraphProto& to, Unsupported& unsupported);

}  // namespace tranship::onnx

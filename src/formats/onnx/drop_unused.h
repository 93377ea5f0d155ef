// What nobody uses goes: an operator of many ops leaves behind what it makes itself.
// Internal to formats/onnx.
#pragma once

#include <set>
#include <string>

namespace onnx {  // the generated classes
class GraphProto;
}  // namespace onnx

namespace tranship::onnx {

/// Drops nodes and initializers that no output of the graph needs. -> the names that are used.
std::set<std::string> drop_unused(::onnx::GraphProto& graph);

}  // namespace tranship::onnx

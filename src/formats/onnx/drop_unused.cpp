#include "formats/onnx/drop_unused.h"

#include <algorithm>
#include <vector>

#include "onnx-ml.pb.h"

namespace tranship::onnx {
namespace {

/// All that a node's sub-graphs read, theirs and what they capture.
void add_reads(const ::onnx::NodeProto& node, std::set<std::string>& used) {
  for (const std::string& input : node.input()) used.insert(input);
  for (const auto& attribute : node.attribute()) {
    for (const ::onnx::NodeProto& inner : attribute.g().node()) add_reads(inner, used);
    for (const auto& output : attribute.g().output()) used.insert(output.name());
  }
}

/// Keeps the elements of a repeated field that `kept` says.
template <class Field, class Kept>
void keep(Field& field, const Kept& kept) {
  int count = 0;
  for (int i = 0; i < field.size(); ++i) {
    if (kept(field.Get(i))) field.SwapElements(count++, i);
  }
  field.DeleteSubrange(count, field.size() - count);
}

}  // namespace

std::set<std::string> drop_unused(::onnx::GraphProto& graph) {
  std::set<std::string> used;
  for (const auto& output : graph.output()) used.insert(output.name());
  const auto is_used = [&](const ::onnx::NodeProto& node) {
    return std::ranges::any_of(node.output(),
                               [&](const std::string& name) { return used.contains(name); });
  };
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    if (is_used(graph.node(i))) add_reads(graph.node(i), used);
  }
  keep(*graph.mutable_node(), is_used);
  keep(*graph.mutable_initializer(),
       [&](const ::onnx::TensorProto& tensor) { return used.contains(tensor.name()); });
  return used;
}

}  // namespace tranship::onnx

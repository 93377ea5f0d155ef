#include "formats/onnx/module_outputs.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/error.h"
#include "formats/onnx/read_model.h"
#include "onnx-ml.pb.h"

namespace tranship::onnx {
namespace {

constexpr std::array<std::string_view, 4> kOperators = {"Gemm", "FusedMatMul", "Gather",
                                                        "LayerNormalization"};

/// The module that a node stands for; empty if it stands for none.
std::string module_of(const ::onnx::NodeProto& node) {
  if (std::ranges::find(kOperators, node.op_type()) == kOperators.end()) return "";
  const std::string ending = "/" + node.op_type();
  if (!node.name().ends_with(ending)) return "";
  return node.name().substr(0, node.name().size() - ending.size());
}

}  // namespace

ModuleOutputs with_module_outputs(const std::filesystem::path& path) {
  ::onnx::ModelProto model = read_model(path);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  std::set<std::string> outputs, seen;
  for (const auto& output : graph.output()) outputs.insert(output.name());
  ModuleOutputs result;
  for (const auto& node : graph.node()) {
    const std::string module = module_of(node);
    if (module.empty() || node.output_size() == 0 || !seen.insert(module).second) continue;
    const std::string& value = node.output(0);
    result.modules.push_back({module, value});
    if (outputs.insert(value).second) graph.add_output()->set_name(value);  // the type is inferred
  }
  if (!model.SerializeToString(&result.model)) {
    fail(ErrorKind::kUnsupported,
         "[onnx] '{}' is too large to be changed in memory: protobuf holds less than 2 GB",
         path.string());
  }
  return result;
}

}  // namespace tranship::onnx

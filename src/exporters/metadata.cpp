#include "exporters/metadata.h"

#include "base/error.h"
#include "base/json.h"
#include "tranship/version.h"

namespace tranship::exporters {
namespace {

using pt2::PythonValue;

/// What a tensor argument looks like.
Json describe_input(const ir::Graph& graph, const std::string& name,
                    const std::map<std::string, int64_t>& example_sizes) {
  for (const ir::Node* node : graph.inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    if (input.name != name) continue;
    Json shape = Json::array();
    for (const ir::Dim& dim : input.shape.dims) shape.push_back(dim.evaluate(example_sizes));
    return {{"rank", input.shape.rank()},
            {"shape", std::move(shape)},
            {"dtype", torch_name(input.dtype)}};
  }
  fail(ErrorKind::kInternal, "[export] the graph has no input '{}': a bug in tranship", name);
}

/// An argument: a tensor, or the class of what holds tensors.
Json describe_argument(const PythonValue& argument, const ir::Graph& graph,
                       const std::map<std::string, int64_t>& example_sizes) {
  if (argument.kind == PythonValue::Kind::kTensor)
    return describe_input(graph, argument.text, example_sizes);
  return {{"container", argument.text.substr(argument.text.find(':') + 1)}};
}

}  // namespace

ExportMetadata describe(const pt2::Call& call, const ir::Graph& graph,
                        const std::string& architecture, DType dtype, const ExportOptions& options,
                        const std::map<std::string, int64_t>& example_sizes) {
  Json kwargs = Json::object();
  for (size_t i = 0; i < call.kwargs.items.size(); ++i)
    kwargs[call.kwargs.names[i]] = describe_argument(call.kwargs.items[i], graph, example_sizes);
  ExportMetadata metadata;
  metadata.architecture = architecture;
  metadata.packages = {{"tranship", std::string(version())}};
  metadata.export_config = options.config_json;
  metadata.export_dtype = torch_name(dtype);
  metadata.export_device = "cpu";
  metadata.kwargs = to_python_json_line(kwargs);
  metadata.in_spec = tree_spec(PythonValue::tuple({PythonValue::tuple({}), call.kwargs}));
  metadata.out_spec = tree_spec(call.result);
  metadata.in_constants = "{}";
  metadata.out_constants = "[]";
  return metadata;
}

}  // namespace tranship::exporters

#include "exporters/metadata.h"

#include "base/error.h"
#include "base/json.h"
#include "exporters/python_call.h"
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

/// An argument: a tensor, the fields of an output, or the class of what holds tensors otherwise.
Json describe_argument(const PythonValue& argument, const ir::Graph& graph,
                       const std::map<std::string, int64_t>& example_sizes) {
  if (argument.kind == PythonValue::Kind::kTensor)
    return describe_input(graph, argument.text, example_sizes);
  if (argument.kind != PythonValue::Kind::kOutput)
    return {{"container", argument.text.substr(argument.text.find(':') + 1)}};
  Json leaves = Json::object();
  for (size_t i = 0; i < argument.items.size(); ++i)
    leaves[argument.names[i]] = describe_argument(argument.items[i], graph, example_sizes);
  return {{"leaves", std::move(leaves)}};
}

}  // namespace

ExportMetadata describe(const tasks::Signature& signature, const ir::Component& component,
                        const std::string& architecture, DType dtype, const ExportOptions& options,
                        const std::map<std::string, int64_t>& example_sizes) {
  const pt2::PythonCall call = call_of(signature, component, example_sizes);
  Json kwargs = Json::object();
  for (size_t i = 0; i < call.kwargs.items.size(); ++i) {
    kwargs[call.kwargs.names[i]] =
        describe_argument(call.kwargs.items[i], *component.graph, example_sizes);
  }
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
  metadata.logits_to_keep = signature.last_token_logits ? 1 : 0;
  return metadata;
}

}  // namespace tranship::exporters

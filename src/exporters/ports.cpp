#include "exporters/ports.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/onnx/fusions/provider.h"

namespace tranship::exporters {
namespace {

Port port(std::string name, const ir::Type& type) {
  Port out{std::move(name), type.dtype, {}};
  for (const ir::Dim& dim : type.shape.dims) out.shape.push_back(dim.text());
  return out;
}

}  // namespace

ExportedProgram describe_ports(const ir::Graph& graph, size_t num_nodes) {
  std::vector<Port> inputs, outputs;
  for (const ir::Node* node : graph.inputs()) {
    inputs.push_back(port(ir::as<ir::Input>(*node->op).name, graph.type(node->outputs.front())));
  }
  for (const ir::Output& output : graph.outputs())
    outputs.push_back(port(output.name, graph.type(output.value)));
  return {std::move(inputs), std::move(outputs), num_nodes};
}

std::optional<int64_t> fixed_size(const std::string& axis) {
  const bool is_number =
      !axis.empty() && axis.size() < 10 && axis.find_first_not_of("0123456789") == axis.npos;
  return is_number ? std::optional(std::stoll(axis)) : std::nullopt;
}

std::optional<ir::Dim> declared(const std::string& axis) {
  try {
    return ir::Dim::parse(axis);
  } catch (const Error&) {
    return std::nullopt;
  }
}

onnx::OnnxOptions onnx_options(const OnnxConfig& config) {
  onnx::OnnxOptions options;
  if (config.opset_version) options.opset_version = *config.opset_version;
  if (!config.external_data) options.weights = onnx::Weights::kInline;
  if (config.ort_fusions) {
    options.fusions = onnx::find_provider(*config.ort_fusions);
    if (!options.fusions) {
      fail(ErrorKind::kInvalidArgument, "[export] ort_fusions is '{}', expected {}",
           *config.ort_fusions, listed(onnx::provider_names()));
    }
  }
  if (config.weights == WeightsPlacement::kReference) options.weights = onnx::Weights::kReference;
  return options;
}

onnx::SessionOptions session_options(const RunOptions& options) {
  return {.library = options.library,
          .intra_op_threads = options.threads,
          .device = options.device,
          .memory_arena = options.memory_arena,
          .memory_pattern = options.memory_pattern,
          .config = options.session_config};
}

}  // namespace tranship::exporters

#include "formats/onnx/fusions/activations.h"

namespace tranship::onnx {

std::string_view fused_activation(const ir::Graph& graph, const ir::Node& activation,
                                  Provider provider) {
  if (!is_among(capabilities(provider).dtypes, graph.type(activation.inputs[0]).dtype)) return "";
  switch (ir::as<ir::Activation>(*activation.op).fn) {
    case ir::ActivationKind::kGelu:
      return "Gelu";
    case ir::ActivationKind::kGeluTanh:
      return "FastGelu";
    case ir::ActivationKind::kQuickGelu:
    case ir::ActivationKind::kSilu:
      return "QuickGelu";
    default:
      return "";
  }
}

}  // namespace tranship::onnx

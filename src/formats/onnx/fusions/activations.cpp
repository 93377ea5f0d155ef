#include "formats/onnx/fusions/activations.h"

#include <algorithm>

namespace tranship::onnx {

std::string_view fused_activation(const ir::Graph& graph, const ir::Node& activation,
                                  Provider provider) {
  const auto& dtypes = capabilities(provider).dtypes;
  const DType dtype = graph.type(activation.inputs[0]).dtype;
  if (std::ranges::find(dtypes, dtype) == dtypes.end()) return "";
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

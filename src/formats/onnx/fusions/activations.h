// Which activations are operators of ONNX Runtime's own. Internal to formats/onnx.
#pragma once

#include <string_view>

#include "formats/onnx/fusions/provider.h"
#include "ir/graph.h"

namespace tranship::onnx {

/// The operator, or "" where the provider has none in that dtype: Gelu, FastGelu (of tanh),
/// QuickGelu (also of silu).
std::string_view fused_activation(const ir::Graph& graph, const ir::Node& activation,
                                  Provider provider);

}  // namespace tranship::onnx

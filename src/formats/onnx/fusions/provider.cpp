#include "formats/onnx/fusions/provider.h"

namespace tranship::onnx {

std::optional<Provider> find_provider(std::string_view name) {
  return name == "cpu" ? std::optional(Provider::kCpu) : std::nullopt;
}

}  // namespace tranship::onnx

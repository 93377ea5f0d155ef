// The execution providers of ONNX Runtime that an export may be fused for.
#pragma once

#include <optional>
#include <string_view>

namespace tranship::onnx {

enum class Provider { kCpu };

/// By its name in ort_fusions: "cpu". Nothing for one whose operators are not built in.
std::optional<Provider> find_provider(std::string_view name);

}  // namespace tranship::onnx

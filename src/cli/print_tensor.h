// Small tensors for eyes.
#pragma once

#include <string>
#include <string_view>

#include "tranship/tensor.h"

namespace tranship::cli {

/// "logits f32[1, 2, 3]" and its elements, a line a row, indented; of long axes only the first and
/// last three.
std::string describe_tensor(std::string_view name, const Tensor& tensor);

}  // namespace tranship::cli

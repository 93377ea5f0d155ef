// The table of model families. It is generated from the names of the files in this folder:
// models/<model_type>.cpp defines `const nn::Family& <model_type>()`.
#pragma once

#include <span>
#include <string_view>

#include "nn/model.h"

namespace tranship::models {

using nn::Family;
using nn::Tensor;  // in definitions a tensor is a handle of the graph, not tranship::Tensor

/// All families, by model_type.
std::span<const Family* const> families();
/// Null for an unknown one.
const Family* find_family(std::string_view model_type);
/// The class of that name in any family; null for an unknown one.
const nn::Architecture* find_architecture(const Family& family, std::string_view name);

}  // namespace tranship::models

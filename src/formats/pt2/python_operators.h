// What PyTorch's graphs do with numbers of Python: sizes above all.
#pragma once

#include <string_view>
#include <vector>

#include "formats/pt2/call.h"

namespace tranship::pt2 {

/// Whether a target is one: "_operator.add", "math.trunc", "torch.sym_max".
bool is_python_operator(std::string_view target);

/// Errors: unsupported for an operator that nobody knows, or numbers that it is not defined for.
Number call_python_operator(std::string_view target, const std::vector<Number>& arguments,
                            ir::Graph& graph, Symbols& symbols);

/// A comparison as far as it can be decided.
Number decide(const Condition& condition, const Bounds& bounds);

}  // namespace tranship::pt2

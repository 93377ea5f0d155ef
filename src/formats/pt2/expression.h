// Sizes as model.json writes them: sympy's srepr, "Mul(Integer(2), Symbol('s0', integer=True))".
#pragma once

#include <optional>
#include <string_view>

#include "ir/dim.h"

namespace tranship::pt2 {

/// Reads an expression of integers.
/// -> nothing if it is well formed but says what a Dim cannot: roundings of floats, conditions.
/// Errors: corrupt, with the column, for text that is no expression, words nobody knows, deep
/// nesting, numbers over 63 bits.
std::optional<ir::Dim> read_expression(std::string_view text);

}  // namespace tranship::pt2

// An element of a computed tensor as a function of one integer: then all that it can be is known by
// trying, or by bounds.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "passes/recognize/index_formula.h"

namespace tranship::passes {

/// Whether the value holds, at the place, the integer that the function is of.
using IsVariable = std::function<bool(const ir::Value& v, const Place& place)>;

/// The ops between the variable and `v` at `place`: a graph with the input "n", i64 [count], and
/// the output "f" of that shape. Null if anything but the variable and constants is needed.
std::unique_ptr<ir::Graph> function_of(const ir::Value& v, const Place& place,
                                       const IsVariable& is_variable);

/// f of each of `numbers`, i64 [count].
Tensor applied(const ir::Graph& function, const Tensor& numbers);

/// What f is for every n from `low` to `high`, if that is proved to be one number.
std::optional<double> constant_on(ir::Graph& function, double low, double high);

}  // namespace tranship::passes

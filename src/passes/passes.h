// The passes, Graph -> Graph. Each returns whether it changed the graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "ir/graph.h"

namespace tranship::passes {

using GraphPtr = std::unique_ptr<ir::Graph>;

/// Gives symbols a value everywhere: static shapes.
/// Errors: invalid_argument for a symbol that the graph does not have, or a value outside its
/// range.
bool specialize(GraphPtr& graph, const std::map<std::string, int64_t>& sizes);

/// Replaces composites by primitives, those excepted that `claimed` says the format lowers itself.
bool decompose(GraphPtr& graph, const std::function<bool(const ir::Node&)>& claimed);

/// Drops what changes nothing: a cast to the same dtype, a reshape, expand or transpose that keeps
/// the shape, all but one of views upon each other, slices that are joined again, x * 1, x + 0 and
/// the like; and repeats elements only behind ops on each of them, or not at all where an op
/// broadcasts.
bool simplify(GraphPtr& graph);

/// Computes nodes whose operands are constants, if the result has at most 4096 elements.
bool fold_constants(GraphPtr& graph);

/// Makes equal nodes one.
bool merge_common_subexpressions(GraphPtr& graph);

/// Drops nodes that no output needs. Inputs stay.
bool eliminate_dead_code(GraphPtr& graph);

/// All of the above but specialize, until nothing changes. In builds without NDEBUG, verify() runs
/// after each.
void run_pipeline(GraphPtr& graph, const std::function<bool(const ir::Node&)>& claimed);

}  // namespace tranship::passes

// Whether a graph is one: what every pass must leave behind.
#pragma once

#include "ir/graph.h"

namespace tranship::ir {

/// Checks that operands stand before their uses, each value has one producer, types are what
/// infer() says, names of inputs and outputs are unique, sub-graphs verify as well. Errors:
/// internal, with the node.
void verify(const Graph& graph);

}  // namespace tranship::ir

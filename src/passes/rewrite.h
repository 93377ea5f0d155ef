// How a pass changes a graph: it is copied, node by node, and some nodes are copied otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "ir/graph.h"

namespace tranship::passes {

/// Gets a node and the copies of its operands. -> the values that stand for its results, or
/// nothing: copy as it is.
using Replace = std::function<std::optional<std::vector<ir::Value>>(
    ir::Graph& to, const ir::Node& node, const std::vector<ir::Value>& operands)>;

/// Rebuilds the graph, sub-graphs included (innermost first). -> whether any node was replaced.
bool rewrite(std::unique_ptr<ir::Graph>& graph, const Replace& replace);

}  // namespace tranship::passes

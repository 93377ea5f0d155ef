#include "passes/rewrite.h"

#include "base/error.h"

namespace tranship::passes {

bool rewrite(std::unique_ptr<ir::Graph>& graph, const Replace& replace) {
  auto rebuilt = std::make_unique<ir::Graph>(graph->name());
  ir::Copier copier(*graph, *rebuilt);
  bool changed = false;
  for (const ir::Node& node : graph->nodes()) {
    const std::vector<ir::Value> operands = copier.inputs_of(node);
    std::optional<std::vector<ir::Value>> results = replace(*rebuilt, node, operands);
    if (results) {
      changed = true;
    } else {
      std::vector<std::unique_ptr<ir::Graph>> graphs;
      for (const auto& sub : node.graphs) {
        graphs.push_back(sub->clone());
        changed |= rewrite(graphs.back(), replace);
      }
      results = rebuilt->add(node.op, operands, node.name, std::move(graphs));
    }
    check(results->size() == node.outputs.size(),
          "rewrite: a node is replaced by another number of results");
    for (size_t i = 0; i < results->size(); ++i) copier.set(node.outputs[i], (*results)[i]);
  }
  copier.finish();
  if (changed) graph = std::move(rebuilt);
  return changed;
}

}  // namespace tranship::passes

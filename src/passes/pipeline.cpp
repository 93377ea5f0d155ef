#include "ir/verify.h"
#include "passes/passes.h"

namespace tranship::passes {

void run_pipeline(GraphPtr& graph, const std::function<bool(const ir::Node&)>& claimed) {
  const auto checked = [&](bool changed) {
#ifndef NDEBUG
    ir::verify(*graph);
#endif
    return changed;
  };
  checked(decompose(graph, claimed));  // composites that the format has no operator for
  constexpr int kMostRounds = 8;       // each round needs a change; real graphs take two or three
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    changed |= checked(simplify(graph));        // what does nothing
    changed |= checked(fold_constants(graph));  // what is known now
    changed |= checked(
        merge_common_subexpressions(graph));  // masks and tables that every layer makes again
    changed |= checked(eliminate_dead_code(graph));  // what is left over
    if (!changed) break;
  }
}

}  // namespace tranship::passes

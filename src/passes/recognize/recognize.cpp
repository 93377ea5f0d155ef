#include "passes/recognize/recognize.h"

#include "ir/verify.h"
#include "passes/passes.h"

namespace tranship::passes {

bool recognize(GraphPtr& graph) {
  bool any = false;
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = simplify(graph);
    changed |= fold_constants(graph);
    changed |= merge_common_subexpressions(graph);  // an operand used twice is one value
    changed |= recognize_norms(graph);
    changed |= recognize_activations(graph);
    changed |= recognize_rope(graph);
    changed |= recognize_attention(graph);
    changed |= recognize_masks(graph);
    changed |= recognize_tables(graph);
    changed |= recognize_moe(graph);
    changed |= recognize_caches(graph);
    changed |= eliminate_dead_code(graph);
#ifndef NDEBUG
    ir::verify(*graph);
#endif
    any |= changed;
    if (!changed) break;
  }
  return any;
}

}  // namespace tranship::passes

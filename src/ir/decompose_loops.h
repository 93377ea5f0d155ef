// Composites that need a sub-graph to be said in primitives. Internal to ir/.
#pragma once

#include "ir/graph.h"

namespace tranship::ir {

/// operands: those of Moe. A Loop over the experts that some token has chosen: each takes its
/// tokens' rows, and adds to their results, in f32.
Value decompose_moe(Graph& to, ActivationKind fn, std::span<const Value> operands);

/// operands: those of SelectiveScan. A Scan over the sequence; nothing of the kind for a single
/// step.
std::vector<Value> decompose_selective_scan(Graph& to, std::span<const Value> operands);

}  // namespace tranship::ir

// Raises primitives to the composites that they are: what an imported graph says in twenty nodes,
// and a definition in one. Each is exact: what is not proved to be the composite stays as it is.
#pragma once

#include <memory>

#include "ir/graph.h"

namespace tranship::passes {

using GraphPtr = std::unique_ptr<ir::Graph>;

/// x / sqrt(mean(x^2) + eps) * weight -> RmsNorm; the same of x - mean(x), with a bias ->
/// LayerNorm.
bool recognize_norms(GraphPtr& graph);
/// The formulas of silu, GELU (erf, tanh, quick), relu and its square -> Activation.
bool recognize_activations(GraphPtr& graph);
/// x * cos + rotate_half(x) * sin, where both halves of the tables are proved equal -> Rope; with
/// the rest of a head passed through, too.
bool recognize_rope(GraphPtr& graph);
/// softmax(q k^T * scale + bias) v -> Attention, with heads on an axis of their own or on the
/// batch's; keys and values that are repeated for their query heads are not; a factor on q becomes
/// the scale.
bool recognize_attention(GraphPtr& graph);
/// A bias of an Attention that hides what a mask says, where that is proved to be causal, a window,
/// a padding of keys, or all of these -> the mask said as such. A bias that is anything else stays;
/// so does one of numbers that may hide all keys from a query, which then shares it among all.
bool recognize_masks(GraphPtr& graph);
/// A learned bias whose row is computed from how far a key is from its query, and is one row beyond
/// some distance -> a small table of rows, read by that distance.
bool recognize_tables(GraphPtr& graph);
/// Experts of a router's choice, in groups or with a copy of their weights for each token -> Moe.
bool recognize_moe(GraphPtr& graph);
/// A cache (an input [B, K, P, D]) with new entries behind it -> CacheAppend.
bool recognize_caches(GraphPtr& graph);

/// All of the above, simplified between, until nothing changes.
bool recognize(GraphPtr& graph);

}  // namespace tranship::passes

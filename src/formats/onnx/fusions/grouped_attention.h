// Which attentions ONNX Runtime's GroupQueryAttention computes, with their caches.
// Internal to formats/onnx.
#pragma once

#include <optional>

#include "formats/onnx/fusions/provider.h"
#include "ir/graph.h"

namespace tranship::onnx {

/// An attention over what is cached and what is new. Values are of the graph; kAbsent: there are
/// none.
struct GroupedAttention {
  ir::ValueId past_key = ir::kAbsent, past_value = ir::kAbsent;
  ir::ValueId new_key = ir::kAbsent, new_value = ir::kAbsent;  // [B, K, S, D]
  ir::ValueId counter = ir::kAbsent;  // of a cache of slots: how many are taken, i64 scalar
};

/// What a provider's GroupQueryAttention computes exactly: heads of a size and dtype that it takes;
/// no cache, one that grows, or one of slots that are written from the counter on; and with a
/// cache, either one new token or one sequence (more of both is an error of the kernels).
std::optional<GroupedAttention> grouped_attention(const ir::Graph& graph, const ir::Node& attention,
                                                  const Capabilities& provider);

}  // namespace tranship::onnx

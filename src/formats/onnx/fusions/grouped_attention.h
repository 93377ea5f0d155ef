// Which attentions ONNX Runtime's GroupQueryAttention computes, with their caches.
// Internal to formats/onnx.
#pragma once

#include <optional>

#include "formats/onnx/cache_update.h"
#include "formats/onnx/fusions/provider.h"
#include "ir/graph.h"

namespace tranship::onnx {

/// An attention over what is cached and what is new [B, K, S, D], both of keys and of values.
struct GroupedAttention {
  CacheUpdate keys, values;
};

/// What a provider's GroupQueryAttention computes exactly: heads of a size and dtype that it takes;
/// no cache, one that grows, or one of slots that are written from the counter on; and with a
/// cache, either one new token or one sequence (more of both is an error of the kernels).
std::optional<GroupedAttention> grouped_attention(const ir::Graph& graph, const ir::Node& attention,
                                                  const Capabilities& provider);

}  // namespace tranship::onnx

// How keys and values come to stand in a cache, read from a graph. Internal to formats/onnx.
#pragma once

#include "ir/graph.h"

namespace tranship::onnx {

/// A cache and what is put into it. Values are of the graph; kAbsent: there is none.
struct CacheUpdate {
  ir::ValueId past = ir::kAbsent, added = ir::kAbsent;
  ir::ValueId counter = ir::kAbsent;  // of a cache of slots: how many are taken, i64 scalar
};

/// What makes the value `id`, which attention reads: past and new tokens, if it is an input with
/// new tokens behind it (past and added), or written into its slots from the counter on (all
/// three), and nobody else reads it; anything else is new (added alone).
CacheUpdate cache_update(const ir::Graph& graph, ir::ValueId id);

/// The counter, if a scatter writes new tokens into the slots of axis 2, from the counter on, over
/// the whole of the other axes; else kAbsent.
ir::ValueId counter_of(const ir::Graph& graph, const ir::Node& scatter);

}  // namespace tranship::onnx

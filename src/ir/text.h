// A graph as text, and back. parse(print(g)) is g; the form is made for tests, diffs and eyes.
//
//   graph prefill
//     range sequence 1 2048
//     %0 = Input {name="input_ids", dtype=i64, shape=[batch, sequence]} : i64[batch, sequence]
//     %1 = Param {name="embed.weight", dtype=f32, shape=[96, 64]} : f32[96, 64]
//     %2 = Embedding(%1, %0) : f32[batch, sequence, 64] @model.embed_tokens
//     output hidden %2
//   end
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tranship::ir {

/// Values are numbered in order; an absent operand is "_"; sub-graphs stand indented under their
/// node.
std::string print(const Graph& graph);

/// Reads what print() writes; types after ":" may be left out, and are checked where they stand.
/// Errors: corrupt with line, for text that is not a graph; invalid_argument where operands do not
/// fit.
std::unique_ptr<Graph> parse(std::string_view text);

}  // namespace tranship::ir

// In which form an attention is lowered, and its mask written out for operators that take no rule.
// Internal to formats/onnx.
#pragma once

#include <memory>
#include <set>

#include "formats/onnx/lower.h"

namespace tranship::onnx {

enum class AttentionForm {
  kPrimitives,  // no operator of the target computes it
  kStandard,    // Attention, of opset 23 and 24
  kGrouped,     // GroupQueryAttention
  kMultiHead,   // MultiHeadAttention
};

/// The form of an attention of `graph`. Masks written out change nothing of it.
AttentionForm attention_form(const ir::Graph& graph, const ir::Node& attention,
                             const Target& target);

/// Whether an attention in that form makes its caches as it goes: they need no node of their own.
bool absorbs_caches(const ir::Graph& graph, const ir::Node& attention, AttentionForm form);

/// Composites that hang on more than their op: attentions with an operator, and rotations,
/// activations and experts in dtypes and sizes that their operators take.
std::set<const ir::Node*> kept_composites(const ir::Graph& graph, const Target& target);

/// Writes out which keys are seen, where the operator has no attribute for it: causality that is
/// not that of a square, a window, a mask of keys become a bias, bool where that is all of it. A
/// query that sees nothing gets its zeros from a Where, as operators give anything there.
void write_out_masks(std::unique_ptr<ir::Graph>& graph, const Target& target);

}  // namespace tranship::onnx

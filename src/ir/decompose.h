// Composites in terms of primitives: what an op means to a format that has no operator for it.
#pragma once

#include "ir/graph.h"

namespace tranship::ir {

/// Adds the primitives of a composite to `to` (which may hold the operands' producers already).
/// operands: as the op's, absent ones default-made.  -> its results.
/// Norms compute in f32, as PyTorch does, and give x's dtype.
/// Errors: internal for a primitive.
std::vector<Value> decompose(Graph& to, const Op& op, std::span<const Value> operands);

/// An activation in terms of primitives. slope: of kLeakyRelu alone.
Value decompose_activation(ActivationKind fn, Value x, Value slope = {});

/// The lowest number of a dtype: what a score becomes that must not count.
double lowest(DType dtype);

/// Which keys the queries of an Attention may see, its bias apart: bool, broadcasting to [B, 1, S,
/// T]; absent if all of them. q and k: the operands' shapes; key_mask: the op's, or absent.
Value visible_keys(Graph& to, const Attention& attention, Shape q, Shape k, Value key_mask);

}  // namespace tranship::ir

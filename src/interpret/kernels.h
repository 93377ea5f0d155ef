// One function an op, over arrays. Internal to interpret/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interpret/array.h"
#include "ir/graph.h"

namespace tranship {

using Symbols = std::map<std::string, int64_t>;
/// Null: absent.
using Operands = std::vector<const Array*>;

/// The one result of an op that is not Input, Param, Opaque or control flow, not yet rounded.
Array run_kernel(const ir::Op& op, const Operands& in, const Symbols& symbols);

// Composites, in composites.cpp.
Array run_linear(const Operands& in);
Array run_rms_norm(const Operands& in, double eps);
Array run_layer_norm(const Operands& in, double eps);
Array run_activation(const Operands& in, ir::ActivationKind fn);
Array run_rope(const Operands& in);
Array run_attention(const Operands& in, const ir::Attention& attention);
// Primitives that composites use.
Array run_gather(const Operands& in, int64_t axis);
Array run_concat(const Operands& in, int64_t axis);

}  // namespace tranship

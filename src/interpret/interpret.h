// The meaning of each op, in plain loops: what passes and formats are judged by. Made to be right,
// not fast.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "ir/program.h"

namespace tranship {

/// Numbers are computed in double and rounded to each value's dtype; integers are exact up to 2^53.
/// inputs: by the names of the graph's Inputs; more are ignored.  parameter: the tensor of a Param,
/// by name.
/// -> the outputs by name.
/// Errors: invalid_argument for a missing input, one of another dtype or shape, a size that breaks
/// an assumption, an index out of range; unsupported for an Opaque op.
NamedTensors interpret(const ir::Graph& graph, const NamedTensors& inputs,
                       const std::function<Tensor(const std::string&)>& parameter);

/// As above, with a program's parameters, each read once.
NamedTensors interpret(const ir::Program& program, const std::string& component,
                       const NamedTensors& inputs);

/// The results of one node whose operands are known (no sub-graphs, no symbols left in its
/// attributes).
std::vector<Tensor> evaluate(const ir::Op& op, const std::vector<const Tensor*>& operands);

}  // namespace tranship

// Projections of one value (queries, keys and values; gate and up) as one, with their weights one
// below the other. Internal to formats/onnx.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor_source.h"

namespace tranship::onnx {

/// Makes each group of Linears of one operand and module a Linear and slices of it, where their
/// weights, and biases if they have any, are parameters that nobody else uses, in any of the
/// graphs. least: of how many a group is worth it, two or more.
/// -> the new parameters, put together from `parameters` as they are read.
std::map<std::string, TensorSourcePtr> pack_projections(
    std::vector<std::unique_ptr<ir::Graph>>& graphs,
    const std::map<std::string, TensorSourcePtr>& parameters, size_t least);

}  // namespace tranship::onnx

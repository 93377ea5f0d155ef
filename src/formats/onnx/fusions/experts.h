// Which mixtures of experts ONNX Runtime's MoE computes. Internal to formats/onnx.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "formats/onnx/fusions/provider.h"
#include "ir/graph.h"
#include "ir/tensor_source.h"

namespace tranship::onnx {

/// What the operator takes in place of chosen experts and their weights.
struct Routing {
  ir::ValueId logits = ir::kAbsent;  // [..., experts]
  int64_t num_chosen = 0;
  bool normalizes = false;  // the weights of those chosen add up to 1
};

/// Of a Moe with silu whose experts are the largest of a softmax over logits, in a dtype that the
/// provider has, with weights that are parameters; else nothing.
std::optional<Routing> routing(const ir::Graph& graph, const ir::Node& moe,
                               const Capabilities& provider);

/// The parameter that has the rows of gate and up in turns.
std::string interleaved_name(const ir::Graph& graph, const ir::Node& moe);
/// It, for each such Moe of a graph, made of `parameters` as it is read.
std::map<std::string, TensorSourcePtr> interleaved_weights(
    const ir::Graph& graph, const Capabilities& provider,
    const std::map<std::string, TensorSourcePtr>& parameters);

}  // namespace tranship::onnx

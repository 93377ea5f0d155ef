// One node on its way to ONNX: what the lowering of a primitive by name, not by form, needs.
// Internal to formats/onnx.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/onnx/emitter.h"
#include "ir/graph.h"

namespace tranship::onnx {

/// Borrows the emitter, the graph and the node.
struct OpLowering {
  Emitter& emit;
  const ir::Graph& graph;
  const ir::Node& node;
  std::vector<std::string> in;  // operands' names; absent ones are empty
  std::string wanted;           // the first result's name, or empty

  const ir::Shape& shape(size_t i) const { return graph.type(node.inputs[i]).shape; }
  DType dtype(size_t i) const { return graph.type(node.inputs[i]).dtype; }
  /// A node on the way, and the last one.
  std::string step(std::string_view op_type, std::vector<std::string> inputs,
                   const std::vector<Attribute>& attributes = {}) const {
    return emit.node(op_type, std::move(inputs), attributes, node.name);
  }
  std::string last(std::string_view op_type, std::vector<std::string> inputs,
                   const std::vector<Attribute>& attributes = {}) const {
    return emit.node(op_type, std::move(inputs), attributes, node.name, wanted);
  }
  std::string cast(const std::string& value, DType from, DType to) const {
    return from == to ? value : step("Cast", {value}, {Attribute::of("to", onnx_dtype(to))});
  }
};

// lower_windows.cpp: -> the result's name
std::string lower_conv(const OpLowering& n);
std::string lower_conv_transpose(const OpLowering& n);
std::string lower_pool(const OpLowering& n);
std::string lower_resize(const OpLowering& n);
std::string lower_pad(const OpLowering& n);

// lower_indexing.cpp
std::string lower_scatter_elements(const OpLowering& n);
std::string lower_scatter_nd(const OpLowering& n);
std::string lower_non_zero(const OpLowering& n);
std::string lower_arg(const OpLowering& n);
/// -> values, indices
std::pair<std::string, std::string> lower_top_k(const OpLowering& n);

// lower_binary.cpp: what ONNX has no operator for, or another one for each dtype
std::string lower_mod(const OpLowering& n);
std::string lower_shift(const OpLowering& n);
std::string lower_trunc(const OpLowering& n);

}  // namespace tranship::onnx

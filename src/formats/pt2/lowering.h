// The state of lowering one graph: which value has which name. Internal to formats/pt2; the cases
// of its switch lie in several files.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "formats/pt2/emitter.h"
#include "formats/pt2/lower.h"

namespace tranship::pt2 {

/// Owns the names; the graph, the emitter and the collected must outlive it.
///
/// A constant of one element and a size as a number are not made before they are needed as a
/// tensor: most operators take them as a Scalar.
class Lowering {
 public:
  Lowering(const ir::Graph& graph, Emitter& emit, Unsupported& unsupported)
      : graph_(graph), emit_(emit), unsupported_(unsupported), names_(graph.num_values()) {}

  /// An Input or Param that is a placeholder.
  void set_name(ir::ValueId id, std::string name) { names_[index(id)] = std::move(name); }
  void lower(const ir::Node& node);
  /// An input that is never below zero.
  void set_counter(ir::ValueId id) { counters_.insert(id); }
  /// Of a scatter: it changes its first operand.
  void write_in_place(const ir::Node& scatter) { in_place_.insert(&scatter); }

  /// The name of a value as a tensor; a constant gets one now.
  std::string tensor(ir::ValueId id);
  /// Constants that were needed as tensors: names of placeholders and their numbers, in order.
  const std::vector<std::pair<std::string, Tensor>>& constants() const { return constants_; }

 private:
  static size_t index(ir::ValueId id) { return static_cast<size_t>(id); }
  const ir::Type& type(ir::ValueId id) const { return graph_.type(id); }
  const ir::Shape& shape(ir::ValueId id) const { return type(id).shape; }
  DType dtype(ir::ValueId id) const { return type(id).dtype; }
  static bool has(const ir::Node& n, size_t i) {
    return i < n.inputs.size() && n.inputs[i] != ir::kAbsent;
  }
  Operand self(const ir::Node& n, size_t i = 0) { return {"self", as_tensor(tensor(n.inputs[i]))}; }
  Operand operand(std::string name, const ir::Node& n, size_t i) {
    return {std::move(name), as_tensor(tensor(n.inputs[i]))};
  }
  /// The axis counted from the front.
  Operand axis(const ir::Node& n, int64_t axis, std::string name = "dim") const;
  /// The value as a Scalar, if it is a number that the graph knows.
  std::optional<std::string> scalar(ir::ValueId id);

  void set(const ir::Node& n, std::string name) { names_[index(n.outputs[0])] = std::move(name); }
  /// The node's only result by one operator.
  void say(const ir::Node& n, std::string_view target, const std::vector<Operand>& operands) {
    set(n, emit_.node(target, operands, type(n.outputs[0])));
  }
  /// dtype and device, as operators that make a tensor of nothing want them.
  std::vector<Operand> made_of(DType dtype) const;
  std::string constant(const Tensor& value);

  void lower_full(const ir::Node& n);
  void lower_unary(const ir::Node& n);
  void lower_binary(const ir::Node& n);
  void lower_compare(const ir::Node& n);
  void lower_reduce(const ir::Node& n);
  void lower_product(const ir::Node& n);
  void lower_expand(const ir::Node& n);
  void lower_unsqueeze(const ir::Node& n);
  void lower_slice(const ir::Node& n);
  // lower_windows.cpp
  void lower_conv(const ir::Node& n);
  void lower_conv_transpose(const ir::Node& n);
  void lower_pool(const ir::Node& n);
  void lower_resize(const ir::Node& n);
  void lower_pad(const ir::Node& n);
  std::string padded(std::string value, ir::Type& type, const std::vector<int64_t>& begin,
                     const std::vector<int64_t>& end, const std::string& with);
  std::string taken(const std::string& value, ir::Type& type, int64_t axis,
                    const std::string& index, const ir::Dim& size);
  std::string places(ir::PadMode mode, const ir::Dim& size, const ir::Dim& begin,
                     const ir::Dim& end);
  // lower_indexing.cpp
  void lower_embedding(const ir::Node& n);
  void lower_gather(const ir::Node& n);
  void lower_gather_nd(const ir::Node& n);
  void lower_slice_write(const ir::Node& n, ir::ValueId places);
  void lower_scatter_elements(const ir::Node& n);
  void lower_scatter_nd(const ir::Node& n);
  void lower_top_k(const ir::Node& n);
  void lower_birth(const ir::Node& n);
  bool is_from_front(ir::ValueId id) const;
  std::string from_front(const ir::Node& n, size_t index, int64_t axis);
  std::string counted_from_front(const std::string& at, const ir::Type& made, const ir::Dim& size);
  std::string index_column(const ir::Node& n, int64_t column);
  // lower_control.cpp
  /// A call of an operator that takes graphs.
  struct HigherOrder {
    std::vector<std::string> before;  // arguments in front of the graphs
    std::vector<std::pair<std::string, const ir::Graph*>> graphs;
    std::vector<std::vector<std::string>> lists;  // of tensors; graphs' constants join the last
    std::vector<ir::Type> extra;                  // results in front of the node's own
    std::set<std::string> symbols;  // sizes that the graphs are given whatever they read
  };
  void say_higher_order(const ir::Node& n, std::string_view target, const HigherOrder& operation);
  void separate(std::vector<std::vector<std::string>>& lists);
  std::vector<std::string> tensors(std::span<const ir::ValueId> ids);
  std::vector<ir::Dim> sizes_for(const HigherOrder& operation) const;
  std::set<std::string> stacked_symbols(const ir::Node& scan) const;
  void lower_if(const ir::Node& n);
  void lower_loop(const ir::Node& n);
  void lower_scan(const ir::Node& n);
  void lower_norm(const ir::Node& n);
  void lower_activation(const ir::Node& n);
  void lower_attention(const ir::Node& n);
  void lower_unsupported(const ir::Node& n, const std::string& what, const std::string& why);

  const ir::Graph& graph_;
  Emitter& emit_;
  Unsupported& unsupported_;
  std::set<const ir::Node*> in_place_;
  std::set<ir::ValueId> counters_;
  std::vector<std::string> names_;  // by value; empty: not made yet
  std::vector<std::pair<std::string, Tensor>> constants_;
  std::map<std::string, std::string> constant_names_;  // by type and bytes
};

}  // namespace tranship::pt2

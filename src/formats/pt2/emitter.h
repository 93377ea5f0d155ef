// The nodes of one graph of model.json, each once: what is asked for twice is made once.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pt2/operands.h"
#include "formats/pt2/tensor_meta.h"

namespace tranship::pt2 {

/// Holds texts of JSON; the symbols must outlive it. Names are safe in Python and unique.
class Emitter {
 public:
  explicit Emitter(const SymbolTable& symbols) : symbols_(symbols) {}

  /// A graph's input. -> its name, `wanted` or that with a number behind it.
  std::string placeholder(const std::string& wanted, const ir::Type& type);
  /// An input that is a size. -> it, as an argument.
  std::string size_placeholder(const ir::Dim& size);
  /// A name for what is no tensor: an input that is a constant, a sub-graph.
  std::string other_name(const std::string& wanted) { return unique(wanted); }
  /// Where a size can be read from: an axis of a tensor. The first one counts.
  void set_origin(const ir::Dim& size, const std::string& tensor, int64_t axis);
  /// The same for all axes of a tensor.
  void set_origins(const ir::Shape& shape, const std::string& tensor);
  /// Whether a size can be read, or computed from others.
  bool is_known(const ir::Dim& dim) const;

  /// An operator with one result, or an equal one that is there. target: "aten.add.Tensor".
  std::string node(std::string_view target, const std::vector<Operand>& operands,
                   const ir::Type& type);
  /// With several results: a tuple.
  std::vector<std::string> node(std::string_view target, const std::vector<Operand>& operands,
                                std::span<const ir::Type> types);
  /// An operator that changes its operand or checks something: never merged. -> its result's name,
  /// or an empty one without a type.
  std::string effect(std::string_view target, const std::vector<Operand>& operands,
                     const ir::Type* type);

  /// An operator that takes graphs. Operands have no names, the results are a tuple.
  std::vector<std::string> higher_order(std::string_view target,
                                        const std::vector<Operand>& operands,
                                        std::span<const ir::Type> types);

  /// A size whose value is that of a tensor, known when the graph runs.
  void give_birth(const ir::Dim& size, const std::string& tensor);
  /// A size as an argument: an int, or what the graph computes.
  std::string size(const ir::Dim& dim);
  std::string sizes(const std::vector<ir::Dim>& dims);
  /// What the graph calls a size that is not a number.
  std::string size_name(const ir::Dim& dim);
  /// Stops a run in which two sizes differ.
  void check_equal(const ir::Dim& a, const ir::Dim& b);

  const SymbolTable& symbols() const { return symbols_; }
  /// The type of a tensor of this graph. Errors: internal for an unknown name.
  const ir::Type& type(const std::string& name) const;
  /// Nodes of this graph, those of its sub-graphs apart.
  size_t num_nodes() const { return num_nodes_; }
  /// The graph: inputs and outputs are arguments. gives_tensor: a sub-graph whose only result is
  /// not in a tuple.
  std::string json(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   bool gives_tensor = false) const;

 private:
  struct Origin {
    std::string tensor;
    int64_t axis = 0;
  };

  std::string unique(std::string wanted);
  std::string fresh_name(std::string_view target);
  void add_value(const std::string& name, const ir::Type& type);
  void add_node(std::string_view target, std::string_view operands, const std::string& outputs,
                const std::string& name, bool is_higher_order = false);
  /// The name of a size that is computed.
  std::string sym_int(std::string_view target, const std::vector<Operand>& operands,
                      const ir::Dim& value);
  std::string compute_size(const ir::Dim& dim);
  std::string factor_size(const ir::Dim::Factor& factor);

  const SymbolTable& symbols_;
  std::string nodes_, tensor_values_, sym_int_values_, sym_bool_values_;
  size_t num_nodes_ = 0;
  std::map<std::string, ir::Type> types_;                 // of tensors, by name
  std::map<std::string, std::vector<std::string>> made_;  // target and operands -> results
  std::map<std::string, std::string> sizes_;              // a size's text -> its name
  std::map<std::string, Origin> origins_;                 // by a size's text
  std::set<std::string> names_;
  std::map<std::string, size_t> last_number_;  // of a name that was wanted before
};

}  // namespace tranship::pt2

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
  /// Where a symbol can be read from: an axis of an input.
  void set_origin(const std::string& symbol, const std::string& input, int64_t axis);
  bool has_origin(const std::string& symbol) const { return origins_.contains(symbol); }

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

  /// A size as an argument: an int, or what the graph computes.
  std::string size(const ir::Dim& dim);
  std::string sizes(const std::vector<ir::Dim>& dims);
  /// Stops a run in which two sizes differ.
  void check_equal(const ir::Dim& a, const ir::Dim& b);

  size_t num_nodes() const { return num_nodes_; }
  /// The graph: inputs and outputs are arguments.
  std::string json(const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) const;

 private:
  struct Origin {
    std::string input;
    int64_t axis = 0;
  };

  std::string unique(std::string wanted);
  std::string fresh_name(std::string_view target);
  void add_value(const std::string& name, const ir::Type& type);
  void add_node(std::string_view target, std::string_view operands, const std::string& outputs,
                const std::string& name);
  /// The name of a size that is computed.
  std::string sym_int(std::string_view target, const std::vector<Operand>& operands,
                      const ir::Dim& value);
  std::string size_name(const ir::Dim& dim);
  std::string compute_size(const ir::Dim& dim);
  std::string factor_size(const ir::Dim::Factor& factor);

  const SymbolTable& symbols_;
  std::string nodes_, tensor_values_, sym_int_values_, sym_bool_values_;
  size_t num_nodes_ = 0;
  std::map<std::string, std::vector<std::string>> made_;  // target and operands -> results
  std::map<std::string, std::string> sizes_;              // a size's text -> its name
  std::map<std::string, Origin> origins_;
  std::set<std::string> names_;
  std::map<std::string, size_t> last_number_;  // of a name that was wanted before
};

}  // namespace tranship::pt2

// Types and sizes as model.json has them. Texts here are pieces of JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tranship::pt2 {

/// PyTorch's number for a dtype in model.json (not c10's). Source: torch/_export/serde/schema.py.
int scalar_type(DType dtype);

/// Strides, in elements, of a tensor whose elements lie row by row without gaps.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes);
std::vector<ir::Dim> dense_strides(const ir::Shape& shape);

/// A text in quotes.
std::string json_text(std::string_view text);

/// The symbols of a component's sizes: PyTorch's names for them, ranges, and an example of each.
class SymbolTable {
 public:
  /// Symbols get numbers in the order in which the inputs have them; those born from data, in
  /// sub-graphs too, in the order of their nodes. examples: a size for each of the inputs'.
  SymbolTable(const ir::Graph& graph, std::map<std::string, int64_t> examples);

  /// "s0". Errors: internal for an unknown symbol.
  const std::string& name(const std::string& symbol) const;
  /// As sympy's srepr writes it: "Add(Symbol('s1', positive=True, integer=True), Integer(1))".
  std::string expression(const ir::Dim& dim) const;
  /// {"as_int": 4} or {"as_expr": ...}, with the example as its hint.
  std::string size(const ir::Dim& dim) const;
  /// Errors: invalid_argument if data decide.
  int64_t example(const ir::Dim& dim) const { return dim.evaluate(examples_); }
  /// {"s0": {"min_val": 1, "max_val": null}, ...}.
  std::string range_constraints() const;

 private:
  void add(const std::string& symbol, char prefix, const ir::Range& range);
  void add_born(const ir::Graph& graph);
  bool is_born(const std::string& symbol) const { return !examples_.contains(symbol); }
  std::string factor(const ir::Dim::Factor& factor) const;

  std::vector<std::pair<std::string, std::string>> names_;  // symbol, PyTorch's name; in order
  std::map<std::string, ir::Range> ranges_;
  std::map<std::string, int64_t> examples_;
};

/// A TensorMeta: dense, on the CPU.
std::string tensor_meta(const ir::Type& type, const SymbolTable& symbols, bool requires_grad);
/// The same for a tensor without symbols.
std::string tensor_meta(DType dtype, const std::vector<int64_t>& sizes, bool requires_grad);

}  // namespace tranship::pt2

// A call of an operator: what it is called with, by the names of PyTorch's schema, and what the
// file says that it gives.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "formats/pt2/bounds.h"
#include "formats/pt2/promotion.h"
#include "formats/pt2/reference.h"
#include "formats/pt2/schema.h"

namespace tranship::pt2 {

/// A graph under construction, and what the names of PyTorch's graph stand for in it.
struct Scope {
  ir::Graph* graph = nullptr;
  std::map<std::string, Reference, std::less<>> tensors;
  std::map<std::string, Number, std::less<>> numbers;
};

/// What is known of symbols, in all graphs of a program.
struct Symbols {
  Bounds bounds;
  /// Those that have an origin: an axis of an input, or an operator that made them from data.
  std::set<std::string> bound;

  /// A symbol for a size that is born from data: the one that the file has for it, if it is free.
  ir::Dim birth(const std::optional<ir::Dim>& wanted);

 private:
  int64_t num_made_ = 0;
};

/// Where PyTorch takes a tensor or a number of Python.
using Operand = std::variant<ir::Value, Number>;

/// Arguments are read in the order of the schema. Those of an operator that nobody reads are an
/// error: they would change what it means. Errors of all accessors: corrupt for a missing argument
/// without a default, one of another kind, or one that PyTorch would bind to another name;
/// unsupported for a value that is only known when the graph runs where a number is needed.
class Call {
 public:
  /// `used`: the names that the rest of the graph reads.
  Call(const Node& node, const Graph& source, const std::set<std::string, std::less<>>& used,
       Scope& scope, Symbols& symbols);

  ir::Graph& graph() const { return *scope_.graph; }
  Symbols& symbols() const { return symbols_; }
  const Bounds& bounds() const { return symbols_.bounds; }
  const Node& node() const { return node_; }

  /// Whether the argument is there and not None.
  bool has(std::string_view name);
  Reference reference(std::string_view name);
  ir::Value tensor(std::string_view name) { return reference(name).value(); }
  ir::Value optional_tensor(std::string_view name);       // absent for None
  std::vector<ir::Value> tensors(std::string_view name);  // absent for a None in the list
  Operand operand(std::string_view name);
  std::optional<Operand> optional_operand(std::string_view name);
  Number number(std::string_view name);
  Number number(std::string_view name, Number otherwise);
  ir::Dim size(std::string_view name);
  std::optional<ir::Dim> optional_size(std::string_view name);
  std::vector<ir::Dim> sizes(std::string_view name);
  int64_t integer(std::string_view name);
  int64_t integer(std::string_view name, int64_t otherwise);
  std::optional<int64_t> optional_integer(std::string_view name);
  /// One int stands for a list of one.
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {});
  double real(std::string_view name);
  double real(std::string_view name, double otherwise);
  std::vector<double> reals(std::string_view name);  // none if it is None
  bool flag(std::string_view name, bool otherwise);
  std::string text(std::string_view name, std::string_view otherwise);
  std::optional<DType> dtype(std::string_view name);
  /// Arguments that change nothing here: devices, layouts, memory formats.
  void ignore(std::initializer_list<std::string_view> names);
  /// Errors: unsupported unless the argument is absent or None.
  void refuse(std::string_view name);

  /// The names of the results, those in lists too.
  const std::vector<std::string>& outputs() const { return outputs_; }
  bool is_used(size_t output) const;
  /// As the file says. Errors: corrupt if it does not; unsupported for a dtype of no tensor of
  /// ours.
  const TensorMeta& output_meta(size_t output) const;
  DType output_dtype(size_t output = 0) const;
  /// Nothing for an axis that no Dim can say.
  std::vector<std::optional<ir::Dim>> output_sizes(size_t output = 0) const;
  /// What the file says of a tensor argument: for strides.
  const TensorMeta* find_meta(std::string_view argument) const;
  /// Whether a tensor argument is one of complex numbers.
  bool is_complex(std::string_view argument) const;
  /// Whether any argument or result is.
  bool has_complex() const;

  /// Errors: unsupported if an argument was not read.
  void finish() const;

  template <class... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, const Args&... args) const {
    vcorrupt(format, fmt::make_format_args(args...));
  }

 private:
  [[noreturn]] void vcorrupt(fmt::string_view format, fmt::format_args args) const;
  const Argument* find(std::string_view name);
  const Argument& at(std::string_view name);
  [[noreturn]] void wrong_kind(std::string_view name, const Argument& found,
                               std::string_view expected) const;
  Number lookup(const Name& name) const;
  template <class Item>
  Number resolve(const Item& item) const;
  ir::Dim to_size(std::string_view name, const Number& number) const;
  int64_t to_integer(std::string_view name, const ir::Dim& dim) const;
  Number to_number(std::string_view name, const Argument& argument) const;
  Reference lookup_tensor(const std::string& name) const;

  const Node& node_;
  const Graph& source_;
  const std::set<std::string, std::less<>>& used_;
  Scope& scope_;
  Symbols& symbols_;
  std::vector<std::string> outputs_;
  std::set<std::string, std::less<>> read_;
  std::string absent_;  // the first that was asked for and not there
};

/// The names that a node gives to its results, those in lists too; of numbers as well.
std::vector<std::string> output_names(const Node& node);

}  // namespace tranship::pt2

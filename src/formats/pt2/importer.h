// Walks PyTorch's graph and builds ours. Internal to formats/pt2; import.h is what others use.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "formats/pt2/call.h"
#include "formats/pt2/import.h"

namespace tranship::pt2 {

/// What a graph is called with, or gives.
using Actual = std::variant<Reference, Number>;

class Importer {
 public:
  explicit Importer(std::string file) : file_(std::move(file)) {}

  Symbols& symbols() { return symbols_; }

  /// Runs all nodes of a graph in a scope whose inputs are set.
  /// Errors: corrupt, with the node and its place, for what makes no sense. What is not supported
  /// is collected: its results are Opaque.
  void run(const Graph& graph, Scope& scope);
  /// The outputs of a graph that has run.
  std::vector<Actual> results(const Graph& graph, const Scope& scope) const;
  /// Runs a graph within another: its nodes are added to the scope's graph.
  std::vector<Actual> call(const Graph& graph, const std::vector<Actual>& arguments,
                           ir::Graph& into);

  const std::vector<Unmapped>& unmapped() const { return unmapped_; }

 private:
  using Used = std::set<std::string, std::less<>>;

  void run_node(const Node& node, const Graph& graph, const Used& used, Scope& scope);
  void dispatch(const Node& node, const Graph& graph, const Used& used, Scope& scope);
  void run_number(const Node& node, Scope& scope);
  bool run_size(const Node& node, const Graph& graph, const Used& used, Scope& scope);
  bool run_assertion(const Node& node, Scope& scope);
  void run_operator(const Node& node, const Graph& graph, const Used& used, Scope& scope);
  void store(const Node& node, const Graph& graph, const Used& used, Scope& scope,
             const std::vector<Reference>& results);
  void note_unmapped(const Node& node, std::string what);
  void make_opaque(const Node& node, const Graph& graph, Scope& scope);

  // Control flow, in control_flow.cpp.
  void run_higher_order(const Node& node, const Graph& graph, const Used& used, Scope& scope);
  std::vector<Actual> branch(Call& call, const Scope& scope);
  std::vector<Actual> while_loop(Call& call, const Scope& scope);
  std::vector<Actual> scan(Call& call, const Scope& scope);
  std::unique_ptr<ir::Graph> sub_graph(const std::string& name, const Graph& source,
                                       const std::vector<Actual>& arguments,
                                       const std::vector<ir::Type>& expected);

  std::string file_;
  Symbols symbols_;
  std::vector<Unmapped> unmapped_;
};

/// An argument as what it stands for; a list gives one for each element.
std::vector<Actual> actuals_of(const Argument& argument, const Scope& scope);

}  // namespace tranship::pt2

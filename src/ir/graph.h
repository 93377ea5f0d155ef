// A graph of operations, in an order in which it can be run.
//
// Ownership, in three lines: a Graph owns its nodes, values and sub-graphs. A Value is a handle
// {graph, id} and borrows the graph. Ops are immutable and shared.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/dim.h"
#include "ir/op.h"

namespace tranship::ir {

class Graph;

struct Type {
  DType dtype = DType::kF32;
  Shape shape;
  std::string text() const;  // "f32[batch, 4]"
  friend bool operator==(const Type&, const Type&) = default;
};

using ValueId = int32_t;
inline constexpr ValueId kAbsent = -1;  // an optional input that is not there

/// A handle; the graph must outlive it. Default-made: an absent operand.
class Value {
 public:
  Value() = default;
  Value(Graph* graph, ValueId id) : graph_(graph), id_(id) {}
  explicit operator bool() const { return id_ != kAbsent; }
  Graph& graph() const { return *graph_; }
  ValueId id() const { return id_; }
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int64_t rank() const { return shape().rank(); }

 private:
  Graph* graph_ = nullptr;
  ValueId id_ = kAbsent;
};

struct Node {
  OpPtr op;
  std::vector<ValueId> inputs;                 // kAbsent for an optional one that is not there
  std::vector<ValueId> outputs;                // made by this node, in order
  std::vector<std::unique_ptr<Graph>> graphs;  // If: then, else; Loop, Scan: body
  std::string name;  // where it stands in the model ("model.layers.0.mlp.up_proj"), or empty
  OpKind kind() const { return op->kind; }
};

struct Output {
  std::string name;
  ValueId value;
};

/// Two sizes that must be equal but could not be proved so: checked when the graph runs.
struct Assumption {
  Dim a;
  Dim b;
};

class Graph {
 public:
  explicit Graph(std::string name = "") : name_(std::move(name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::string& name() const { return name_; }
  void rename(std::string name) { name_ = std::move(name); }

  /// Adds a node after all others and infers its results' types.
  /// Errors: invalid_argument if the operands do not fit the op, naming the node, with expected and
  /// found.
  std::vector<Value> add(OpPtr op, std::span<const Value> inputs, std::string node_name = "",
                         std::vector<std::unique_ptr<Graph>> graphs = {});
  /// The value of a node with one result.
  Value add_one(OpPtr op, std::initializer_list<Value> inputs, std::string node_name = "");
  /// Gives a name to those nodes from the `first` on that have none.
  void name_nodes(size_t first, const std::string& name);
  void add_output(std::string output_name, Value value);
  void clear_outputs() { outputs_.clear(); }

  const std::vector<Node>& nodes() const { return nodes_; }
  const Type& type(ValueId id) const { return values_[static_cast<size_t>(id)].type; }
  size_t num_values() const { return values_.size(); }
  /// The node that makes a value.
  const Node& producer(ValueId id) const {
    return nodes_[static_cast<size_t>(values_[static_cast<size_t>(id)].node)];
  }
  Value value(ValueId id) { return {this, id}; }
  /// Input nodes, in order.
  std::vector<const Node*> inputs() const;
  const std::vector<Output>& outputs() const { return outputs_; }

  /// Symbols of its dims and what they may be. A symbol without an entry may be anything from 1.
  const std::map<std::string, Range>& symbols() const { return symbols_; }
  void set_range(const std::string& symbol, Range range) { symbols_[symbol] = range; }
  const std::vector<Assumption>& assumptions() const { return assumptions_; }
  void assume(const Dim& a, const Dim& b);

  std::unique_ptr<Graph> clone() const;

 private:
  /// A size whose origin is a node. Errors: invalid_argument if it has another one.
  void give_birth(const std::string& symbol);
  struct ValueInfo {
    Type type;
    int32_t node;
  };
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::vector<Output> outputs_;
  std::map<std::string, Range> symbols_;
  std::vector<Assumption> assumptions_;
};

inline const Type& Value::type() const { return graph_->type(id_); }

/// Makes an op ready for a graph: make(RmsNorm{...}).
template <class T>
OpPtr make(T op) {
  return std::make_shared<const T>(std::move(op));
}

/// Copies nodes of one graph into another. `map` says what has been copied so far.
class Copier {
 public:
  Copier(const Graph& from, Graph& to) : from_(from), to_(to), map_(from.num_values()) {}
  /// The copy of a value; internal error if it has none yet.
  Value operator()(ValueId id) const;
  std::vector<Value> inputs_of(const Node& node) const;
  void set(ValueId id, Value copy) { map_[static_cast<size_t>(id)] = copy; }
  /// Copies a node with its sub-graphs.
  void copy(const Node& node);
  /// Outputs, symbols and assumptions: call it last.
  void finish();

 private:
  const Graph& from_;
  Graph& to_;
  std::vector<Value> map_;
};

}  // namespace tranship::ir

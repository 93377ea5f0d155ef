#include "ir/graph.h"

#include "base/error.h"
#include "ir/infer.h"

namespace tranship::ir {

std::string Type::text() const { return std::string(tranship::name(dtype)) + shape.text(); }

namespace {

/// Errors: invalid_argument if there is an input of that name.
void check_new_input(const Graph& graph, const std::string& name) {
  for (const Node& n : graph.nodes()) {
    if (n.kind() == OpKind::kInput && as<Input>(*n.op).name == name)
      fail(ErrorKind::kInvalidArgument, "[graph] '{}' has two inputs named '{}'", graph.name(),
           name);
  }
}

}  // namespace

std::vector<Value> Graph::add(OpPtr op, std::span<const Value> inputs, std::string node_name,
                              std::vector<std::unique_ptr<Graph>> graphs) {
  std::vector<const Type*> types;
  Node node;
  for (const Value& v : inputs) {
    check(!v || &v.graph() == this, "an operand is of another graph");
    check(!v || static_cast<size_t>(v.id()) < values_.size(), "an operand is not in the graph");
    types.push_back(v ? &values_[static_cast<size_t>(v.id())].type : nullptr);
    node.inputs.push_back(v.id());
  }
  Inference inference;
  try {
    inference = infer(*op, types, graphs);
  } catch (const Error& error) {
    fail(error.kind(), "{} (node {} '{}' of graph '{}')", error.what(), text(*op), node_name,
         name_);
  }
  for (const Assumption& a : inference.assumptions) assume(a.a, a.b);
  if (const auto symbol = born_symbol(*op)) give_birth(*symbol);
  if (op->kind == OpKind::kInput) check_new_input(*this, as<Input>(*op).name);
  std::vector<Value> results;
  for (Type& type : inference.results) {
    const auto id = static_cast<ValueId>(values_.size());
    values_.push_back({std::move(type), static_cast<int32_t>(nodes_.size())});
    node.outputs.push_back(id);
    results.emplace_back(this, id);
  }
  node.op = std::move(op);
  node.name = std::move(node_name);
  node.graphs = std::move(graphs);
  nodes_.push_back(std::move(node));
  return results;
}

void Graph::give_birth(const std::string& symbol) {
  for (const Node& n : nodes_) {
    if (born_symbol(*n.op) == symbol ||
        (n.kind() == OpKind::kInput && ir::symbols(*n.op).contains(symbol)))
      fail(ErrorKind::kInvalidArgument, "[graph] the size '{}' of graph '{}' has two origins",
           symbol, name_);
  }
  symbols_.try_emplace(symbol, Range{.min = 0, .max = {}});
}

Value Graph::add_one(OpPtr op, std::initializer_list<Value> inputs, std::string node_name) {
  std::vector<Value> results = add(
      std::move(op), std::span<const Value>(inputs.begin(), inputs.size()), std::move(node_name));
  check(results.size() == 1, "add_one: the op has one result");
  return results[0];
}

void Graph::name_nodes(size_t first, const std::string& name) {
  for (size_t i = first; i < nodes_.size(); ++i) {
    if (nodes_[i].name.empty()) nodes_[i].name = name;
  }
}

void Graph::add_output(std::string output_name, Value value) {
  check(value && &value.graph() == this, "an output is of another graph");
  for (const Output& o : outputs_) {
    if (o.name == output_name)
      fail(ErrorKind::kInvalidArgument, "[graph] '{}' has two outputs named '{}'", name_,
           output_name);
  }
  outputs_.push_back({std::move(output_name), value.id()});
}

std::vector<const Node*> Graph::inputs() const {
  std::vector<const Node*> inputs;
  for (const Node& n : nodes_) {
    if (n.kind() == OpKind::kInput) inputs.push_back(&n);
  }
  return inputs;
}

void Graph::assume(const Dim& a, const Dim& b) {
  for (const Assumption& known : assumptions_) {
    if ((known.a == a && known.b == b) || (known.a == b && known.b == a)) return;
  }
  assumptions_.push_back({a, b});
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>(name_);
  Copier copier(*this, *copy);
  for (const Node& n : nodes_) copier.copy(n);
  copier.finish();
  return copy;
}

Value Copier::operator()(ValueId id) const {
  if (id == kAbsent) return {};
  const Value v = map_[static_cast<size_t>(id)];
  check(static_cast<bool>(v), "Copier: a value is used before it is copied");
  return v;
}

std::vector<Value> Copier::inputs_of(const Node& node) const {
  std::vector<Value> inputs;
  for (const ValueId id : node.inputs) inputs.push_back((*this)(id));
  return inputs;
}

void Copier::copy(const Node& node) {
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const auto& g : node.graphs) graphs.push_back(g->clone());
  const std::vector<Value> results =
      to_.add(node.op, inputs_of(node), node.name, std::move(graphs));
  for (size_t i = 0; i < results.size(); ++i) set(node.outputs[i], results[i]);
}

void Copier::finish() {
  for (const Output& o : from_.outputs()) to_.add_output(o.name, (*this)(o.value));
  for (const auto& [symbol, range] : from_.symbols()) to_.set_range(symbol, range);
  for (const Assumption& a : from_.assumptions()) to_.assume(a.a, a.b);
}

}  // namespace tranship::ir

#include "passes/passes.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "interpret/interpret.h"
#include "ir/build.h"
#include "ir/decompose.h"
#include "ir/infer.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::as;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;
using Results = std::optional<std::vector<Value>>;

const Tensor* constant_of(const Value& v) {
  if (!v) return nullptr;
  const ir::Op& op = *v.graph().producer(v.id()).op;
  return op.kind == OpKind::kConstant ? &as<ir::Constant>(op).value : nullptr;
}

}  // namespace

namespace {

using Dims = std::map<std::string, ir::Dim>;

Dims checked_sizes(const Graph& graph, const std::map<std::string, int64_t>& sizes) {
  Dims dims;
  for (const auto& [symbol, size] : sizes) {
    const auto it = graph.symbols().find(symbol);
    const ir::Range range = it == graph.symbols().end() ? ir::Range{} : it->second;
    if (size < range.min || (range.max && size > *range.max)) {
      fail(ErrorKind::kInvalidArgument, "[static] '{}' = {} is outside its range, {} to {}", symbol,
           size, range.min, range.max ? std::to_string(*range.max) : "any");
    }
    dims.emplace(symbol, size);
  }
  return dims;
}

void keep_assumption(const ir::Assumption& a, const Dims& dims, Graph& to) {
  const ir::Dim left = a.a.substitute(dims), right = a.b.substitute(dims);
  if (left == right) return;
  if (left.is_static() && right.is_static()) {
    fail(ErrorKind::kInvalidArgument,
         "[static] the graph needs {} == {}, but they become {} and {}", a.a.text(), a.b.text(),
         left.text(), right.text());
  }
  to.assume(left, right);
}

}  // namespace

bool specialize(GraphPtr& graph, const std::map<std::string, int64_t>& sizes) {
  const Dims dims = checked_sizes(*graph, sizes);
  if (dims.empty()) return false;
  auto rebuilt = std::make_unique<Graph>(graph->name());
  ir::Copier copier(*graph, *rebuilt);
  for (const Node& n : graph->nodes()) {
    std::vector<GraphPtr> graphs;
    for (const auto& sub : n.graphs) {
      graphs.push_back(sub->clone());
      specialize(graphs.back(), sizes);
    }
    const std::vector<Value> results =
        rebuilt->add(ir::substitute(*n.op, dims), copier.inputs_of(n), n.name, std::move(graphs));
    for (size_t i = 0; i < results.size(); ++i) copier.set(n.outputs[i], results[i]);
  }
  for (const ir::Output& o : graph->outputs()) rebuilt->add_output(o.name, copier(o.value));
  for (const auto& [symbol, range] : graph->symbols()) {
    if (!dims.contains(symbol)) rebuilt->set_range(symbol, range);
  }
  for (const ir::Assumption& a : graph->assumptions()) keep_assumption(a, dims, *rebuilt);
  graph = std::move(rebuilt);
  return true;
}

bool decompose(GraphPtr& graph, const std::function<bool(const Node&)>& claimed) {
  return rewrite(graph,
                 [&](Graph& to, const Node& node, const std::vector<Value>& operands) -> Results {
                   if (!ir::is_composite(node.kind()) || claimed(node)) return std::nullopt;
                   return ir::decompose(to, *node.op, operands);
                 });
}

namespace {

/// Whether a node's results depend on nothing but its operands' numbers.
bool is_pure(const Node& node) {
  switch (node.kind()) {
    case OpKind::kInput:
    case OpKind::kParam:
    case OpKind::kConstant:
    case OpKind::kOpaque:
    case OpKind::kIf:
    case OpKind::kLoop:
    case OpKind::kScan:
    case OpKind::kNonZero:
    case OpKind::kItem:
      return false;
    default:
      return ir::symbols(*node.op).empty();
  }
}

/// Whether the result is known to be small.
bool has_small_result(const Node& node, const std::vector<Value>& in) {
  constexpr int64_t kMostElements = 4096;
  std::vector<const ir::Type*> types;
  for (const Value& v : in) types.push_back(v ? &v.type() : nullptr);
  const ir::Inference inference = ir::infer(*node.op, types, {});
  const ir::Shape& shape = inference.results[0].shape;
  return inference.assumptions.empty() && shape.is_static() &&
         shape.num_elements().value() <= kMostElements;
}

}  // namespace

bool fold_constants(GraphPtr& graph) {
  return rewrite(graph, [](Graph& to, const Node& node, const std::vector<Value>& in) -> Results {
    std::vector<const Tensor*> operands;
    for (const Value& v : in) {
      operands.push_back(constant_of(v));
      if (v && operands.back() == nullptr) return std::nullopt;
    }
    if (!is_pure(node) || !has_small_result(node, in)) return std::nullopt;
    std::vector<Value> results;
    for (Tensor& result : evaluate(*node.op, operands))
      results.push_back(ir::constant(to, std::move(result)));
    return results;
  });
}

namespace {

std::string key_of(const Node& node, const std::vector<ir::ValueId>& operands) {
  std::string key = ir::text(*node.op);
  for (const ir::ValueId id : operands) key += " " + std::to_string(id);
  return key;
}

}  // namespace

bool merge_common_subexpressions(GraphPtr& graph) {
  auto rebuilt = std::make_unique<Graph>(graph->name());
  ir::Copier copier(*graph, *rebuilt);
  std::map<std::string, const Node*> seen;
  bool changed = false;
  for (const Node& node : graph->nodes()) {
    if (node.kind() == OpKind::kInput || !node.graphs.empty()) {
      copier.copy(node);
      continue;
    }
    std::vector<ir::ValueId> operands;
    for (const Value& v : copier.inputs_of(node)) operands.push_back(v.id());
    const auto [it, added] = seen.try_emplace(key_of(node, operands), &node);
    if (added) {
      copier.copy(node);
    } else {
      changed = true;
      for (size_t i = 0; i < node.outputs.size(); ++i)
        copier.set(node.outputs[i], copier(it->second->outputs[i]));
    }
  }
  copier.finish();
  if (changed) graph = std::move(rebuilt);
  return changed;
}

namespace {

/// The sizes that a node names, in sub-graphs too.
void add_symbols(const Node& node, std::set<std::string>& all) {
  all.merge(ir::symbols(*node.op));
  for (const auto& sub : node.graphs) {
    for (const Node& inner : sub->nodes()) add_symbols(inner, all);
  }
}

}  // namespace

bool eliminate_dead_code(GraphPtr& graph) {
  std::vector<bool> live(graph->num_values(), false);
  for (const ir::Output& o : graph->outputs()) live[static_cast<size_t>(o.value)] = true;
  const auto& nodes = graph->nodes();
  std::vector<bool> kept(nodes.size(), false);
  std::set<std::string> named;  // sizes that are needed: their origin is, too
  const bool has_births = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.kind() == OpKind::kNonZero || node.kind() == OpKind::kItem;
  });
  for (size_t i = nodes.size(); i-- > 0;) {
    const std::optional<std::string> born = ir::born_symbol(*nodes[i].op);
    kept[i] = nodes[i].kind() == OpKind::kInput || (born && named.contains(*born)) ||
              std::any_of(nodes[i].outputs.begin(), nodes[i].outputs.end(),
                          [&](ir::ValueId id) { return live[static_cast<size_t>(id)]; });
    if (!kept[i]) continue;
    if (has_births) add_symbols(nodes[i], named);
    for (const ir::ValueId id : nodes[i].inputs) {
      if (id != ir::kAbsent) live[static_cast<size_t>(id)] = true;
    }
  }
  if (std::all_of(kept.begin(), kept.end(), [](bool k) { return k; })) return false;
  auto rebuilt = std::make_unique<Graph>(graph->name());
  ir::Copier copier(*graph, *rebuilt);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (kept[i]) copier.copy(nodes[i]);
  }
  copier.finish();
  graph = std::move(rebuilt);
  return true;
}

}  // namespace tranship::passes

#include "formats/onnx/fusions/packed_projections.h"

#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "ir/build.h"
#include "passes/rewrite.h"

namespace tranship::onnx {

using ir::as;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;
using ir::ValueId;

namespace {

using Sources = std::map<std::string, TensorSourcePtr>;

/// Linears of one operand and one module around them, in order.
using Group = std::vector<const Node*>;

/// The name of a parameter; null for any other value.
const std::string* parameter(const Graph& graph, ValueId id) {
  if (id == ir::kAbsent) return nullptr;
  const Node& node = graph.producer(id);
  return node.kind() == OpKind::kParam ? &as<ir::Param>(*node.op).name : nullptr;
}

ValueId bias_of(const Node& linear) {
  return linear.inputs.size() > 2 ? linear.inputs[2] : ir::kAbsent;
}

/// How often each parameter is used, by name, in sub-graphs too.
void count_uses(const Graph& graph, std::map<std::string, int>& uses) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.inputs) {
      if (const std::string* name = parameter(graph, id)) ++uses[*name];
    }
    for (const auto& inner : node.graphs) count_uses(*inner, uses);
  }
  for (const ir::Output& output : graph.outputs()) {
    if (const std::string* name = parameter(graph, output.value)) ++uses[*name];
  }
}

/// "a.q_proj.weight" -> "a.q_proj" -> "a".
std::string module_of(const std::string& name) { return name.substr(0, name.rfind('.')); }
std::string parent_of(const std::string& module) {
  const size_t end = module.rfind('.');
  return end == module.npos ? "" : module.substr(0, end);
}

std::vector<Group> groups_of(const Graph& graph, const std::map<std::string, int>& uses,
                             size_t least) {
  const auto is_own = [&](ValueId id) {
    const std::string* name = parameter(graph, id);
    return name != nullptr && uses.at(*name) == 1;
  };
  std::map<std::tuple<ValueId, bool, std::string>, Group> by_operand;
  for (const Node& node : graph.nodes()) {
    if (node.kind() != OpKind::kLinear || !is_own(node.inputs[1])) continue;
    const bool has_bias = bias_of(node) != ir::kAbsent;
    if (has_bias && !is_own(bias_of(node))) continue;
    const std::string parent = parent_of(module_of(*parameter(graph, node.inputs[1])));
    by_operand[{node.inputs[0], has_bias, parent}].push_back(&node);
  }
  std::vector<Group> groups;
  for (auto& [key, group] : by_operand) {
    if (group.size() >= least) groups.push_back(std::move(group));
  }
  return groups;
}

/// "a.q_proj.weight", "a.k_proj.weight" -> "a.q_proj_k_proj.weight".
std::string joined_name(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) {
    const std::string module = module_of(name);
    const size_t begin = module.rfind('.');
    joined += joined.empty() ? module : "_" + module.substr(begin == module.npos ? 0 : begin + 1);
  }
  const std::string& last = names.back();
  return joined + last.substr(last.rfind('.') == last.npos ? last.size() : last.rfind('.'));
}

std::vector<std::string> names_of(const Graph& graph, const Group& group, size_t input) {
  std::vector<std::string> names;
  for (const Node* node : group) names.push_back(*parameter(graph, node->inputs[input]));
  return names;
}

/// The parameters of a group: names of the weights, and if there are any of the biases.
std::vector<std::vector<std::string>> parameters_of(const Graph& graph, const Group& group) {
  std::vector<std::vector<std::string>> all = {names_of(graph, group, 1)};
  if (bias_of(*group[0]) != ir::kAbsent) all.push_back(names_of(graph, group, 2));
  return all;
}

/// What a graph uses, and how it may be packed.
struct Packing {
  Packing(const Graph& graph, size_t least) {
    count_uses(graph, uses);
    groups = groups_of(graph, uses, least);
  }
  std::map<std::string, int> uses;  // of each parameter, by name
  std::vector<Group> groups;
};

/// Which group each weight is in, over all graphs; "" if some graph has it in another, or in none.
std::map<std::string, std::string> agreed_groups(const std::vector<std::unique_ptr<Graph>>& graphs,
                                                 const std::vector<Packing>& packings) {
  std::map<std::string, std::string> agreed;
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::map<std::string, std::string> here;
    for (const auto& [name, count] : packings[i].uses) here.emplace(name, "");
    for (const Group& group : packings[i].groups) {
      for (const std::vector<std::string>& names : parameters_of(*graphs[i], group)) {
        for (const std::string& name : names) here[name] = joined_name(names);
      }
    }
    for (const auto& [name, group] : here) {
      const auto [it, added] = agreed.emplace(name, group);
      if (!added && it->second != group) it->second.clear();
    }
  }
  return agreed;
}

/// A parameter of the group's, one below the other.
Value packed(Graph& to, const Graph& from, const Group& group, size_t input,
             const Sources& parameters, Sources& made) {
  const std::vector<std::string> names = names_of(from, group, input);
  std::vector<TensorSourcePtr> parts;
  Shape shape = from.type(group[0]->inputs[input]).shape;
  shape[0] = 0;
  for (const std::string& name : names) {
    parts.push_back(parameters.at(name));
    shape[0] = shape[0] + ir::Dim(parts.back()->shape()[0]);
  }
  ir::Param param;
  param.name = joined_name(names);
  param.dtype = from.type(group[0]->inputs[input]).dtype;
  param.shape = shape;
  check(!parameters.contains(param.name), "packed projections: a name is taken");
  made.emplace(param.name, concat_source(param.name, std::move(parts), shape.sizes()));
  return to.add_one(ir::make(std::move(param)), {});
}

void pack(std::unique_ptr<Graph>& graph, const std::vector<Group>& groups,
          const Sources& parameters, Sources& made) {
  std::map<const Node*, const Group*> group_of;
  for (const Group& group : groups) {
    for (const Node* node : group) group_of.emplace(node, &group);
  }
  std::map<const Group*, Value> products;
  const Graph& from = *graph;
  passes::rewrite(
      graph,
      [&](Graph& to, const Node& node,
          const std::vector<Value>& operands) -> std::optional<std::vector<Value>> {
        const auto it = group_of.find(&node);
        if (it == group_of.end()) return std::nullopt;
        const Group& group = *it->second;
        if (!products.contains(&group)) {
          const bool has_bias = bias_of(node) != ir::kAbsent;
          const Value weight = packed(to, from, group, 1, parameters, made);
          const Value bias = has_bias ? packed(to, from, group, 2, parameters, made) : Value();
          std::vector<std::string> names;
          for (const Node* one : group) names.push_back(one->name + ".");
          std::string name = joined_name(names);
          name.pop_back();
          products.emplace(&group,
                           to.add_one(ir::make(ir::Linear{}), {operands[0], weight, bias}, name));
        }
        ir::Dim begin = 0;
        for (const Node* one : group) {
          const ir::Dim size = from.type(one->outputs[0]).shape.back();
          if (one == &node) return {{ir::slice(products.at(&group), -1, begin, begin + size)}};
          begin = begin + size;
        }
        return std::nullopt;
      });
}

}  // namespace

Sources pack_projections(std::vector<std::unique_ptr<Graph>>& graphs, const Sources& parameters,
                         size_t least) {
  std::vector<Packing> packings;
  for (const auto& graph : graphs) packings.emplace_back(*graph, least);
  const std::map<std::string, std::string> agreed = agreed_groups(graphs, packings);
  Sources made;
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::erase_if(packings[i].groups, [&](const Group& group) {
      for (const std::vector<std::string>& names : parameters_of(*graphs[i], group)) {
        for (const std::string& name : names) {
          if (agreed.at(name).empty() || parameters.contains(joined_name(names))) return true;
        }
      }
      return false;
    });
    pack(graphs[i], packings[i].groups, parameters, made);
  }
  return made;
}

}  // namespace tranship::onnx

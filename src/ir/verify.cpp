#include "ir/verify.h"

#include <set>

#include "base/error.h"
#include "ir/infer.h"

namespace tranship::ir {

void verify(const Graph& graph) {
  const auto require = [&](bool holds, const Node* node, std::string_view what) {
    if (holds) return;
    fail(ErrorKind::kInternal, "[verify] graph '{}'{}: {}", graph.name(),
         node == nullptr ? "" : ", node " + text(*node->op) + " '" + node->name + "'", what);
  };
  std::vector<bool> made(graph.num_values(), false);
  std::set<std::string> names;
  for (const Node& n : graph.nodes()) {
    std::vector<const Type*> types;
    for (const ValueId id : n.inputs) {
      require(id == kAbsent || (id >= 0 && static_cast<size_t>(id) < made.size()), &n,
              "an operand is not a value");
      require(id == kAbsent || made[static_cast<size_t>(id)], &n,
              "an operand is used before it is made");
      types.push_back(id == kAbsent ? nullptr : &graph.type(id));
    }
    for (const auto& g : n.graphs) verify(*g);
    const Inference inference = infer(*n.op, types, n.graphs);
    require(inference.results.size() == n.outputs.size(), &n,
            "the number of results is not what the op gives");
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const auto id = static_cast<size_t>(n.outputs[i]);
      require(!made[id], &n, "a value is made twice");
      made[id] = true;
      require(graph.type(n.outputs[i]) == inference.results[i], &n,
              "a result's type is not what infer() says");
    }
    if (n.kind() == OpKind::kInput)
      require(names.insert(as<Input>(*n.op).name).second, &n, "two inputs have one name");
  }
  names.clear();
  for (const Output& o : graph.outputs()) {
    require(o.value >= 0 && static_cast<size_t>(o.value) < made.size() &&
                made[static_cast<size_t>(o.value)],
            nullptr, "an output is not made");
    require(names.insert(o.name).second, nullptr, "two outputs have one name");
  }
}

}  // namespace tranship::ir

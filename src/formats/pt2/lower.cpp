#include "formats/pt2/lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "formats/pt2/lowering.h"

namespace tranship::pt2 {
namespace {

using ir::as;

/// An entry of input_specs.
std::string parameter_spec(const std::string& name, const std::string& parameter) {
  return fmt::format(R"({{"parameter":{{"arg":{{"name":"{}"}},"parameter_name":{}}}}})", name,
                     json_text(parameter));
}

std::string constant_spec(const std::string& name, const std::string& constant) {
  return fmt::format(
      R"({{"tensor_constant":{{"arg":{{"name":"{}"}},"tensor_constant_name":"{}"}}}})", name,
      constant);
}

std::string user_spec(std::string_view kind, const std::string& name) {
  return fmt::format(R"({{"{}":{{"arg":{}}}}})", kind, as_tensor(name));
}

/// One graph, from its placeholders to its outputs.
class GraphLowering {
 public:
  GraphLowering(const ir::Graph& graph, const SymbolTable& symbols, Unsupported& unsupported)
      : graph_(graph), emit_(symbols), lowering_(graph, emit_, unsupported) {}

  LoweredGraph run(const std::vector<Leaf>& inputs, const std::vector<Leaf>& outputs) {
    for (const Leaf& leaf : inputs) add_input(leaf);
    for (const ir::Node& node : graph_.nodes()) {
      if (node.kind() == ir::OpKind::kParam) add_parameter(node);
    }
    std::vector<ir::Assumption> assumptions = graph_.assumptions();
    check_assumptions(assumptions);
    for (const ir::Node& node : graph_.nodes()) {
      lowering_.lower(node);
      if (ir::born_symbol(*node.op)) check_assumptions(assumptions);
    }
    return assemble(outputs);
  }

 private:
  /// Checks those whose sizes are known by now, and takes them off the list.
  void check_assumptions(std::vector<ir::Assumption>& assumptions) {
    std::erase_if(assumptions, [&](const ir::Assumption& a) {
      if (!emit_.is_known(a.a) || !emit_.is_known(a.b)) return false;
      emit_.check_equal(a.a, a.b);
      return true;
    });
  }

  const ir::Node& input_of(const std::string& port) const {
    for (const ir::Node* node : graph_.inputs()) {
      if (as<ir::Input>(*node->op).name == port) return *node;
    }
    fail(ErrorKind::kInternal, "[pt2] the graph has no input '{}': a bug in tranship", port);
  }

  void add_input(const Leaf& leaf) {
    const ir::Node& node = input_of(leaf.port);
    const ir::Type& type = graph_.type(node.outputs[0]);
    std::string name = emit_.placeholder(leaf.name, type);
    emit_.set_origins(type.shape, name);
    user_inputs_.push_back(name);
    lowering_.set_name(node.outputs[0], std::move(name));
  }

  /// A weight that two nodes name is one placeholder.
  void add_parameter(const ir::Node& node) {
    const std::string& parameter = as<ir::Param>(*node.op).name;
    auto known = std::ranges::find(parameters_, parameter, &Named::second);
    if (known == parameters_.end()) {
      const std::string name = emit_.placeholder("p_" + parameter, graph_.type(node.outputs[0]));
      parameters_.emplace_back(name, parameter);
      known = parameters_.end() - 1;
    }
    lowering_.set_name(node.outputs[0], known->first);
  }

  std::string output(const Leaf& leaf) {
    const auto& outputs = graph_.outputs();
    const auto found = std::ranges::find(outputs, leaf.port, &ir::Output::name);
    check(found != outputs.end(), "pt2: the graph has no output " + leaf.port);
    return lowering_.tensor(found->value);
  }

  LoweredGraph assemble(const std::vector<Leaf>& outputs) {
    std::vector<std::string> results, output_specs;
    for (const Leaf& leaf : outputs) {
      results.push_back(as_tensor(output(leaf)));  // may make one more constant
      output_specs.push_back(fmt::format(R"({{"user_output":{{"arg":{}}}}})", results.back()));
    }
    LoweredGraph lowered;
    std::vector<std::string> placeholders, input_specs;
    for (const auto& [name, parameter] : parameters_) {
      placeholders.push_back(as_tensor(name));
      input_specs.push_back(parameter_spec(name, parameter));
      lowered.parameters.push_back(parameter);
    }
    for (const auto& [name, value] : lowering_.constants()) {
      const std::string constant = name.substr(std::string_view("c_").size());
      placeholders.push_back(as_tensor(name));
      input_specs.push_back(constant_spec(name, constant));
      lowered.constants.emplace_back(constant, value);
    }
    for (const std::string& name : user_inputs_) {
      placeholders.push_back(as_tensor(name));
      input_specs.push_back(user_spec("user_input", name));
    }
    lowered.graph = emit_.json(placeholders, results);
    lowered.signature = fmt::format("{{\"input_specs\":[\n{}\n],\"output_specs\":[\n{}\n]}}",
                                    fmt::join(input_specs, ",\n"), fmt::join(output_specs, ",\n"));
    lowered.num_nodes = emit_.num_nodes();
    return lowered;
  }

  using Named = std::pair<std::string, std::string>;  // placeholder, weight
  const ir::Graph& graph_;
  Emitter emit_;
  Lowering lowering_;
  std::vector<Named> parameters_;
  std::vector<std::string> user_inputs_;
};

}  // namespace

bool claims(const ir::Node& node) {
  switch (node.kind()) {
    case ir::OpKind::kLinear:
    case ir::OpKind::kEmbedding:
    case ir::OpKind::kRmsNorm:
    case ir::OpKind::kLayerNorm:
    case ir::OpKind::kAttention:
    case ir::OpKind::kCacheAppend:
      return true;
    case ir::OpKind::kActivation: {
      const ir::ActivationKind fn = as<ir::Activation>(*node.op).fn;
      return fn != ir::ActivationKind::kQuickGelu && fn != ir::ActivationKind::kLeakyRelu &&
             fn != ir::ActivationKind::kRelu2;
    }
    default:
      return false;
  }
}

LoweredGraph lower_graph(const ir::Graph& graph, const std::vector<Leaf>& inputs,
                         const std::vector<Leaf>& outputs, const SymbolTable& symbols,
                         Unsupported& unsupported) {
  return GraphLowering(graph, symbols, unsupported).run(inputs, outputs);
}

}  // namespace tranship::pt2

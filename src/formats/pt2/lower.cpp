#include "formats/pt2/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "formats/pt2/in_place.h"
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

std::string constant_input_spec(const std::string& name, const std::string& value) {
  return fmt::format(R"({{"constant_input":{{"name":{},"value":{}}}}})", json_text(name), value);
}

std::string user_spec(std::string_view kind, const std::string& name) {
  return fmt::format(R"({{"{}":{{"arg":{}}}}})", kind, as_tensor(name));
}

/// One graph, from its placeholders to its outputs.
class GraphLowering {
 public:
  GraphLowering(const ir::Graph& graph, const SymbolTable& symbols, Unsupported& unsupported)
      : graph_(graph), emit_(symbols), lowering_(graph, emit_, unsupported) {}

  LoweredGraph run(const std::vector<Leaf>& inputs, const std::vector<Leaf>& outputs,
                   const std::vector<ir::State>& states) {
    for (const Leaf& leaf : inputs) add_input(leaf);
    for (const ir::Node& node : graph_.nodes()) {
      if (node.kind() == ir::OpKind::kParam) add_parameter(node);
    }
    in_place_ = writes_in_place(graph_, states);
    for (const InPlace& state : in_place_) {
      if (state.is_slots) lowering_.write_in_place(graph_.producer(state.to));
      if (state.is_counter) lowering_.set_counter(state.from);
    }
    std::vector<ir::Assumption> assumptions = graph_.assumptions();
    check_assumptions(assumptions);
    const std::vector<bool> needed = needed_values(graph_);
    for (const ir::Node& node : graph_.nodes()) {
      const bool is_needed = std::ranges::any_of(
          node.outputs, [&](ir::ValueId id) { return needed[static_cast<size_t>(id)]; });
      if (!is_needed && !ir::born_symbol(*node.op)) continue;
      lowering_.lower(node);
      if (ir::born_symbol(*node.op)) check_assumptions(assumptions);
    }
    write_back(outputs);
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

  void add_input(const Leaf& leaf) {
    if (!leaf.constant.empty()) {
      user_inputs_.push_back({emit_.other_name(leaf.name), leaf.constant});
      return;
    }
    const ir::ValueId id = input_of(graph_, leaf.port);
    check(id != ir::kAbsent, "pt2: the graph has no input " + leaf.port);
    const ir::Type& type = graph_.type(id);
    std::string name = emit_.placeholder(leaf.name, type);
    emit_.set_origins(type.shape, name);
    user_inputs_.push_back({name, {}});
    lowering_.set_name(id, std::move(name));
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

  ir::ValueId output(const Leaf& leaf) const {
    const ir::ValueId id = output_of(graph_, leaf.port);
    check(id != ir::kAbsent, "pt2: the graph has no output " + leaf.port);
    return id;
  }

  /// New values of states that are not in their inputs yet. What looks at the old ones, and goes
  /// out, is copied before.
  void write_back(const std::vector<Leaf>& outputs) {
    std::set<ir::ValueId> written, made;
    for (const InPlace& state : in_place_) {
      written.insert(state.from);
      made.insert(state.to);
    }
    const auto keep = [&](ir::ValueId id) {
      if (!written.contains(viewed(graph_, id))) return;
      const std::string name = lowering_.tensor(id);
      lowering_.set_name(
          id, emit_.effect("aten.clone.default", {{"self", as_tensor(name)}}, &graph_.type(id)));
    };
    for (const ir::ValueId id : made) keep(id);
    for (const Leaf& leaf : outputs) {
      if (leaf.constant.empty() && !made.contains(output(leaf))) keep(output(leaf));
    }
    for (const InPlace& state : in_place_) {
      if (state.is_slots) continue;  // written by its node
      const std::string from = lowering_.tensor(state.from), to = lowering_.tensor(state.to);
      lowering_.set_name(state.to, emit_.effect("aten.copy_.default",
                                                {{"self", as_tensor(from)}, {"src", as_tensor(to)}},
                                                &graph_.type(state.from)));
    }
  }

  /// What the graph gives, as an argument.
  std::string result(const Leaf& leaf) {
    if (!leaf.constant.empty()) return leaf.constant;
    const ir::ValueId id = output(leaf);
    if (!leaf.is_size) return as_tensor(lowering_.tensor(id));
    const ir::Node& node = graph_.producer(id);
    if (node.kind() == ir::OpKind::kDimToTensor)
      return emit_.size(as<ir::DimToTensor>(*node.op).dim);
    if (node.kind() == ir::OpKind::kConstant)
      return as_int(as<ir::Constant>(*node.op).value.i64()[0]);
    fail(ErrorKind::kUnsupported, "[pt2] '{}' is an int that the graph computes from data",
         leaf.port);
  }

  LoweredGraph assemble(const std::vector<Leaf>& outputs) {
    std::vector<std::string> results, output_specs;
    for (const Leaf& leaf : outputs) {
      results.push_back(result(leaf));  // may make one more constant
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
    for (const UserInput& input : user_inputs_) {
      placeholders.push_back(input.constant.empty() ? as_tensor(input.name) : input.constant);
      input_specs.push_back(input.constant.empty()
                                ? user_spec("user_input", input.name)
                                : constant_input_spec(input.name, input.constant));
    }
    lowered.graph = emit_.json(placeholders, results);
    lowered.signature = fmt::format("{{\"input_specs\":[\n{}\n],\"output_specs\":[\n{}\n]}}",
                                    fmt::join(input_specs, ",\n"), fmt::join(output_specs, ",\n"));
    lowered.num_nodes = emit_.num_nodes();
    lowered.is_functional = in_place_.empty();
    return lowered;
  }

  using Named = std::pair<std::string, std::string>;  // placeholder, weight
  struct UserInput {
    std::string name;
    std::string constant;  // as Leaf has it
  };
  const ir::Graph& graph_;
  Emitter emit_;
  Lowering lowering_;
  std::vector<Named> parameters_;
  std::vector<UserInput> user_inputs_;
  std::vector<InPlace> in_place_;
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
                         const std::vector<Leaf>& outputs, const std::vector<ir::State>& states,
                         const SymbolTable& symbols, Unsupported& unsupported) {
  return GraphLowering(graph, symbols, unsupported).run(inputs, outputs, states);
}

}  // namespace tranship::pt2

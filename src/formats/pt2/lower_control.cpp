// Branches and loops as PyTorch's higher-order operators: cond, while_loop, scan.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "formats/pt2/lowering.h"
#include "ir/build.h"

namespace tranship::pt2 {

using ir::as;
using ir::Graph;
using ir::Node;
using ir::ValueId;

namespace {

std::vector<std::string> as_arguments(const std::vector<std::string>& names) {
  std::vector<std::string> arguments;
  for (const std::string& name : names) arguments.push_back(as_tensor(name));
  return arguments;
}

/// The symbols that a graph reads and none of its inputs has; those of its sub-graphs too.
std::set<std::string> missing_symbols(const Graph& graph) {
  std::set<std::string> missing, known;
  for (const Node& node : graph.nodes()) {
    if (node.kind() == ir::OpKind::kInput) {
      for (const ir::Dim& size : as<ir::Input>(*node.op).shape.dims)
        if (auto symbol = size.as_symbol()) known.insert(*symbol);
      continue;
    }
    missing.merge(ir::symbols(*node.op));
    for (const auto& sub : node.graphs) missing.merge(missing_symbols(*sub));
    if (const auto born = ir::born_symbol(*node.op)) known.insert(*born);
  }
  std::erase_if(missing, [&](const std::string& symbol) { return known.contains(symbol); });
  return missing;
}

/// A sub-graph that is being written: its Inputs are its own placeholders, and so are `sizes`. A
/// constant that it needs as a tensor is one more.
class SubGraph {
 public:
  SubGraph(const Graph& graph, const std::vector<ir::Dim>& sizes, const SymbolTable& symbols,
           Unsupported& unsupported)
      : graph_(graph), emit_(symbols), lowering_(graph, emit_, unsupported) {
    for (const ir::Dim& size : sizes) sizes_.push_back(emit_.size_placeholder(size));
    for (const Node* node : graph.inputs()) {
      const ir::Type& type = graph.type(node->outputs[0]);
      const std::string name = add_input(type);
      emit_.set_origins(type.shape, name);
      lowering_.set_name(node->outputs[0], name);
    }
    lower();
  }

  std::string add_input(const ir::Type& type) {
    return inputs_.emplace_back(emit_.placeholder("arg", type));
  }
  void add_constant(size_t i) { inputs_.push_back(constants()[i].first); }
  const std::vector<std::pair<std::string, Tensor>>& constants() const {
    return lowering_.constants();
  }
  std::string json(bool gives_tensor) const {
    std::vector<std::string> arguments = as_arguments(inputs_);
    arguments.insert(arguments.end(), sizes_.begin(), sizes_.end());
    return emit_.json(arguments, as_arguments(results_), gives_tensor);
  }

 private:
  /// A value that is an input, or is given twice, is copied: operators of higher order do not
  /// alias.
  void lower() {
    for (const Node& node : graph_.nodes()) lowering_.lower(node);
    const std::vector<std::string> inputs = inputs_;
    for (const ir::Output& output : graph_.outputs()) {
      std::string name = lowering_.tensor(output.value);
      const bool is_constant =
          std::ranges::find(constants(), name, &std::pair<std::string, Tensor>::first) !=
          constants().end();
      if (is_constant || std::ranges::find(inputs, name) != inputs.end() ||
          std::ranges::find(results_, name) != results_.end()) {
        name = emit_.effect("aten.clone.default", {{"self", as_tensor(name)}},
                            &graph_.type(output.value));
      }
      results_.push_back(std::move(name));
    }
  }

  const Graph& graph_;
  Emitter emit_;
  Lowering lowering_;
  std::vector<std::string> inputs_, results_;
  std::vector<std::string> sizes_;  // as arguments
};

}  // namespace

/// A tensor that is passed twice is copied: operators of higher order do not alias.
void Lowering::separate(std::vector<std::vector<std::string>>& lists) {
  std::set<std::string> seen;
  for (std::vector<std::string>& list : lists) {
    for (std::string& name : list) {
      if (seen.insert(name).second) continue;
      name = emit_.effect("aten.clone.default", {{"self", as_tensor(name)}}, &emit_.type(name));
    }
  }
}

/// What the graphs are given besides tensors. They stand among these, as PyTorch writes sizes that
/// a body reads.
std::vector<ir::Dim> Lowering::sizes_for(const HigherOrder& operation) const {
  std::set<std::string> symbols = operation.symbols;
  for (const auto& [name, graph] : operation.graphs) symbols.merge(missing_symbols(*graph));
  std::vector<ir::Dim> sizes;
  for (const std::string& symbol : symbols) {
    if (emit_.is_known(ir::Dim::symbol(symbol))) sizes.push_back(ir::Dim::symbol(symbol));
  }
  return sizes;
}

void Lowering::say_higher_order(const Node& n, std::string_view target,
                                const HigherOrder& operation) {
  const std::vector<ir::Dim> sizes = sizes_for(operation);
  std::vector<SubGraph> graphs;
  graphs.reserve(operation.graphs.size());
  for (const auto& [name, graph] : operation.graphs)
    graphs.emplace_back(*graph, sizes, emit_.symbols(), unsupported_);
  std::vector<std::vector<std::string>> lists = operation.lists;
  for (size_t owner = 0; owner < graphs.size(); ++owner) {
    for (size_t i = 0; i < graphs[owner].constants().size(); ++i) {
      const Tensor& value = graphs[owner].constants()[i].second;
      lists.back().push_back(constant(value));
      for (size_t other = 0; other < graphs.size(); ++other) {
        if (other == owner) {
          graphs[other].add_constant(i);
        } else {
          graphs[other].add_input({value.dtype(), ir::Shape::of(value.shape())});
        }
      }
    }
  }
  std::vector<Operand> operands;
  for (const std::string& argument : operation.before) operands.push_back({"", argument});
  for (size_t i = 0; i < graphs.size(); ++i) {
    const auto& [name, graph] = operation.graphs[i];
    operands.push_back(
        {"", fmt::format(R"({{"as_graph":{{"name":"{}","graph":{}}}}})", emit_.other_name(name),
                         graphs[i].json(name == "while_loop_cond_graph"))});
  }
  separate(lists);
  for (const ir::Dim& size : sizes) lists.back().push_back(emit_.size_name(size));
  for (const std::vector<std::string>& list : lists) operands.push_back({"", as_tensors(list)});
  std::vector<ir::Type> types = operation.extra;
  for (const ValueId id : n.outputs) types.push_back(type(id));
  const std::vector<std::string> results = emit_.higher_order(target, operands, types);
  for (size_t i = 0; i < n.outputs.size(); ++i)
    names_[index(n.outputs[i])] = results[operation.extra.size() + i];
}

std::vector<std::string> Lowering::tensors(std::span<const ValueId> ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(tensor(id));
  return names;
}

void Lowering::lower_if(const Node& n) {
  say_higher_order(
      n, "higher_order.cond",
      {.before = {as_tensor(tensor(n.inputs[0]))},
       .graphs = {{"true_graph", n.graphs[0].get()}, {"false_graph", n.graphs[1].get()}},
       .lists = {tensors(std::span(n.inputs).subspan(1))},
       .extra = {},
       .symbols = {}});
}

/// The symbols in the shape of what a scan stacks: Inductor makes room for that, and knows symbols
/// only from the scan's operands and its length (2.13).
std::set<std::string> Lowering::stacked_symbols(const Node& scan) const {
  std::set<std::string> symbols;
  for (const ValueId id : std::span(scan.outputs).subspan(as<ir::Scan>(*scan.op).num_carried)) {
    for (int64_t axis = 0; axis < shape(id).rank(); ++axis) {
      if (axis > 0 || !shape(id)[axis].as_symbol()) symbols.merge(shape(id)[axis].symbols());
    }
  }
  return symbols;
}

void Lowering::lower_scan(const Node& n) {
  const auto& op = as<ir::Scan>(*n.op);
  const auto carried = static_cast<size_t>(op.num_carried);
  const auto scanned = static_cast<size_t>(op.num_scanned);
  const std::span<const ValueId> inputs(n.inputs);
  say_higher_order(
      n, "higher_order.scan",
      {.before = {},
       .graphs = {{"scan_combine_graph", n.graphs[0].get()}},
       .lists = {tensors(inputs.first(carried)), tensors(inputs.subspan(carried, scanned)),
                 tensors(inputs.subspan(carried + scanned))},
       .extra = {},
       .symbols = stacked_symbols(n)});
}

namespace {

/// Inputs of the graphs of a while_loop: trip, going, carried..., trips, captured...
struct LoopInputs {
  ir::Value trip, going, trips;
  std::vector<ir::Value> carried, captured;
};

LoopInputs add_inputs(Graph& to, const Graph& body, size_t num_carried) {
  const auto add = [&](const ir::Type& type) {
    ir::Input input;
    input.name = fmt::format("state_{}", to.inputs().size());
    input.dtype = type.dtype;
    input.shape = type.shape;
    return to.add_one(ir::make(std::move(input)), {});
  };
  LoopInputs in;
  in.trip = add({DType::kI64, {}});
  in.going = add({DType::kBool, {}});
  const std::vector<const Node*> inputs = body.inputs();  // trip, carried..., captured...
  for (size_t i = 1; i <= num_carried; ++i)
    in.carried.push_back(add(body.type(inputs[i]->outputs[0])));
  in.trips = add({DType::kI64, {}});
  for (size_t i = num_carried + 1; i < inputs.size(); ++i)
    in.captured.push_back(add(body.type(inputs[i]->outputs[0])));
  return in;
}

/// Whether there is another trip.
std::unique_ptr<Graph> loop_condition(const Graph& body, size_t num_carried) {
  auto graph = std::make_unique<Graph>("condition");
  const LoopInputs in = add_inputs(*graph, body, num_carried);
  const ir::Value left = ir::compare(ir::CompareKind::kLess, in.trip, in.trips);
  graph->add_output("going", ir::logical_and(left, in.going));
  return graph;
}

/// One trip: the next trip, whether to go on, what is carried.
std::unique_ptr<Graph> loop_body(const Graph& body, size_t num_carried) {
  auto graph = std::make_unique<Graph>("body");
  const LoopInputs in = add_inputs(*graph, body, num_carried);
  std::vector<ir::Value> values = {in.trip};
  values.insert(values.end(), in.carried.begin(), in.carried.end());
  values.insert(values.end(), in.captured.begin(), in.captured.end());
  ir::Copier copier(body, *graph);
  size_t next = 0;
  for (const Node& node : body.nodes()) {
    if (node.kind() == ir::OpKind::kInput) {
      copier.set(node.outputs[0], values[next++]);
    } else {
      copier.copy(node);
    }
  }
  graph->add_output("trip", in.trip + 1);
  copier.finish();
  return graph;
}

bool is_true(const Node& node) {
  return node.kind() == ir::OpKind::kConstant &&
         as<ir::Constant>(*node.op).value.num_elements() == 1 &&
         as<ir::Constant>(*node.op).value.at(0) != 0;
}

}  // namespace

void Lowering::lower_loop(const Node& n) {
  const auto carried = static_cast<size_t>(as<ir::Loop>(*n.op).num_carried);
  const std::unique_ptr<Graph> condition = loop_condition(*n.graphs[0], carried);
  const std::unique_ptr<Graph> body = loop_body(*n.graphs[0], carried);
  const std::span<const ValueId> inputs(n.inputs);  // trips, going, carried..., captured...
  // Computed, both: Inductor has no lowering for a loop that begins with constants (2.13).
  const ir::Type one = {DType::kI64, {1}}, number = {DType::kI64, {}};
  std::vector<Operand> range = made_of(DType::kI64);
  range.insert(range.begin(), {"end", as_int(1)});
  const std::string trip =
      emit_.node("aten.select.int",
                 {{"self", as_tensor(emit_.node("aten.arange.default", range, one))},
                  {"dim", as_int(0)},
                  {"index", as_int(0)}},
                 number);
  std::string going = tensor(inputs[1]);
  if (is_true(graph_.producer(inputs[1])))
    going = emit_.node("aten.ge.Scalar", {{"self", as_tensor(trip)}, {"other", as_int(0)}},
                       {DType::kBool, {}});
  std::vector<std::string> state = {trip, going};
  for (std::string& name : tensors(inputs.subspan(2, carried))) state.push_back(std::move(name));
  std::vector<std::string> captured = {tensor(inputs[0])};
  for (std::string& name : tensors(inputs.subspan(2 + carried)))
    captured.push_back(std::move(name));
  say_higher_order(n, "higher_order.while_loop",
                   {.before = {},
                    .graphs = {{"while_loop_cond_graph", condition.get()},
                               {"while_loop_body_graph", body.get()}},
                    .lists = {std::move(state), std::move(captured)},
                    .extra = {{DType::kI64, {}}, {DType::kBool, {}}},
                    .symbols = {}});
}

}  // namespace tranship::pt2

// Higher-order operators: branches, loops and scans as sub-graphs; regions that only wrap are
// taken apart.
#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "formats/pt2/importer.h"
#include "ir/build.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Value;

/// The arguments by their place: names of higher-order operators mean little.
const Argument& argument_at(const Call& call, size_t i) {
  if (i >= call.node().inputs.size()) call.corrupt("argument {} is missing", i);
  return call.node().inputs[i].value;
}

const GraphArgument& graph_at(const Call& call, size_t i) {
  const auto* graph = std::get_if<GraphArgument>(&argument_at(call, i));
  if (graph == nullptr) call.corrupt("argument {} is not a graph", i);
  return *graph;
}

std::vector<Actual> actuals_from(const Call& call, size_t first, const Scope& scope) {
  std::vector<Actual> out;
  for (size_t i = first; i < call.node().inputs.size(); ++i) {
    for (Actual& actual : actuals_of(call.node().inputs[i].value, scope))
      out.push_back(std::move(actual));
  }
  return out;
}

std::vector<Actual> actuals_at(const Call& call, size_t i, const Scope& scope) {
  return i < call.node().inputs.size() ? actuals_of(call.node().inputs[i].value, scope)
                                       : std::vector<Actual>();
}

Value value_of(const Actual& actual, ir::Graph& graph) {
  if (const auto* reference = std::get_if<Reference>(&actual)) {
    if (*reference) return reference->value();
    fail(ErrorKind::kUnsupported, "None where a tensor is expected");
  }
  return to_value(graph, std::get<Number>(actual));
}

/// A dtype and shape as they must be; shapes that could not be proved equal are assumed so.
Value fitted(Value x, const ir::Type& type) {
  if (x.dtype() != type.dtype)
    fail(ErrorKind::kCorrupt, "a result is {}, expected {}", x.type().text(), type.text());
  return x.shape() == type.shape ? x : reshape(x, type.shape);
}

std::vector<Value> tensors_of(const std::vector<Actual>& actuals) {
  std::vector<Value> out;
  for (const Actual& actual : actuals) {
    const auto* reference = std::get_if<Reference>(&actual);
    if (reference != nullptr && *reference) out.push_back(reference->value());
  }
  return out;
}

std::vector<ir::Type> types_of(const std::vector<Value>& values) {
  std::vector<ir::Type> out;
  for (const Value& value : values) out.push_back(value.type());
  return out;
}

std::vector<Actual> references_of(const std::vector<Value>& values) {
  std::vector<Actual> out;
  for (const Value& value : values) out.emplace_back(Reference(value));
  return out;
}

Value add_input(ir::Graph& graph, std::string name, ir::Type type) {
  ir::Input input;
  input.name = std::move(name);
  input.dtype = type.dtype;
  input.shape = std::move(type.shape);
  return graph.add_one(ir::make(std::move(input)), {});
}

/// Stands for the arguments in a sub-graph: tensors become inputs, numbers stay what they are.
/// `sliced`: which of them come one slice along axis 0 at a time.
std::vector<Actual> inputs_for(ir::Graph& graph, const std::vector<Actual>& arguments,
                               const std::vector<bool>& sliced) {
  std::vector<Actual> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* reference = std::get_if<Reference>(&arguments[i]);
    if (reference == nullptr || !*reference) {
      out.push_back(arguments[i]);
      continue;
    }
    ir::Type type = reference->value().type();
    if (i < sliced.size() && sliced[i]) {
      if (type.shape.rank() == 0) fail(ErrorKind::kCorrupt, "a scalar is scanned");
      type.shape.dims.erase(type.shape.dims.begin());
    }
    out.emplace_back(Reference(add_input(graph, "in" + std::to_string(i), type)));
  }
  return out;
}

/// Writing to an argument would have to reach the tensor outside.
void refuse_writes(const std::vector<Actual>& inputs) {
  for (const Actual& input : inputs) {
    const auto* reference = std::get_if<Reference>(&input);
    if (reference != nullptr && reference->was_written())
      fail(ErrorKind::kUnsupported, "a sub-graph that writes to what it is given");
  }
}

/// What the file says of the results.
std::vector<ir::Type> claimed_types(const Call& call) {
  std::vector<ir::Type> out;
  for (size_t i = 0; i < call.outputs().size(); ++i) {
    ir::Type type{call.output_dtype(i), {}};
    for (const std::optional<Dim>& size : call.output_sizes(i)) {
      if (!size) fail(ErrorKind::kUnsupported, "a result of a size that is no expression");
      type.shape.dims.push_back(*size);
    }
    out.push_back(std::move(type));
  }
  return out;
}

bool wraps(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {"wrap_with_set_grad_enabled",
                                                             "wrap_with_autocast",
                                                             "wrap",
                                                             "hints_wrapper",
                                                             "invoke_subgraph",
                                                             "strict_mode"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// Automatic casts would change dtypes inside.
void refuse_autocast(const Call& call) {
  for (size_t i = 0; i < call.node().inputs.size(); ++i) {
    const NamedArgument& input = call.node().inputs[i];
    const auto* flag = std::get_if<BoolArgument>(&input.value);
    const auto* on = flag == nullptr ? nullptr : std::get_if<bool>(&flag->value);
    const bool is_enabled = input.name == "enabled" || (input.name.empty() && i == 2);
    if (is_enabled && on != nullptr && *on)
      fail(ErrorKind::kUnsupported, "a region under autocast: capture the model without it");
  }
}

}  // namespace

std::unique_ptr<ir::Graph> Importer::sub_graph(const std::string& name, const Graph& source,
                                               const std::vector<Actual>& arguments,
                                               const std::vector<ir::Type>& expected) {
  auto graph = std::make_unique<ir::Graph>(name);
  const std::vector<Actual> inputs = inputs_for(*graph, arguments, {});
  const std::vector<Actual> results = call(source, inputs, *graph);
  refuse_writes(inputs);
  if (results.size() != expected.size())
    fail(ErrorKind::kCorrupt, "a branch gives {} results of {}", results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    graph->add_output("out" + std::to_string(i), fitted(value_of(results[i], *graph), expected[i]));
  return graph;
}

/// (condition, graph, graph, operands).
std::vector<Actual> Importer::branch(Call& call, const Scope& scope) {
  const std::vector<Actual> condition = actuals_at(call, 0, scope);
  const GraphArgument &yes = graph_at(call, 1), &no = graph_at(call, 2);
  if (condition.size() != 1) call.corrupt("the condition");
  const std::vector<Actual> arguments = actuals_from(call, 3, scope);
  if (const auto* number = std::get_if<Number>(&condition[0])) {
    if (const auto* known = std::get_if<bool>(number))
      return this->call(*known ? *yes.graph : *no.graph, arguments, call.graph());
  }
  const std::vector<ir::Type> expected = claimed_types(call);
  Value truth = value_of(condition[0], call.graph());
  if (truth.rank() > 0) truth = reshape(truth, {});
  std::vector<Value> operands = {cast(truth, DType::kBool)};
  for (const Value& value : tensors_of(arguments)) operands.push_back(value);
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  graphs.push_back(sub_graph(yes.name, *yes.graph, arguments, expected));
  graphs.push_back(sub_graph(no.name, *no.graph, arguments, expected));
  return references_of(call.graph().add(ir::make(ir::If()), operands, "", std::move(graphs)));
}

/// (graph of the condition, graph of the body, carried, more): runs while the condition of what is
/// carried holds.
std::vector<Actual> Importer::while_loop(Call& call, const Scope& scope) {
  const GraphArgument &condition = graph_at(call, 0), &step = graph_at(call, 1);
  const std::vector<Actual> carried = actuals_at(call, 2, scope);
  const std::vector<Actual> more = actuals_from(call, 3, scope);
  std::vector<Actual> arguments = carried;
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (tensors_of(carried).size() != carried.size())
    fail(ErrorKind::kUnsupported, "a loop that carries numbers");
  const auto holds = [&](const std::vector<Actual>& of, ir::Graph& in) {
    const std::vector<Actual> result = this->call(*condition.graph, of, in);
    if (result.size() != 1) call.corrupt("the condition gives {} results", result.size());
    const Value truth = cast(value_of(result[0], in), DType::kBool);
    return truth.rank() == 0 ? truth : reshape(truth, {});
  };
  ir::Graph& outer = call.graph();
  auto body = std::make_unique<ir::Graph>(step.name);
  add_input(*body, "trip", {DType::kI64, {}});
  const std::vector<Actual> inputs = inputs_for(*body, arguments, {});
  std::vector<Actual> next = this->call(*step.graph, inputs, *body);
  if (next.size() != carried.size())
    call.corrupt("the body gives {} of {} results", next.size(), carried.size());
  const std::vector<ir::Type> types = types_of(tensors_of(carried));
  for (size_t i = 0; i < next.size(); ++i)
    next[i] = Reference(fitted(value_of(next[i], *body), types[i]));
  const std::vector<Value> values = tensors_of(next);
  next.insert(next.end(), inputs.begin() + std::ssize(carried), inputs.end());
  body->add_output("going", holds(next, *body));
  refuse_writes(inputs);
  for (size_t i = 0; i < values.size(); ++i)
    body->add_output("next" + std::to_string(i), values[i]);
  const int64_t forever = int64_t{1} << 53;
  std::vector<Value> operands = {constant(outer, Tensor::of(std::span(&forever, 1), {})),
                                 holds(arguments, outer)};
  for (const Value& value : tensors_of(arguments)) operands.push_back(value);
  ir::Loop loop;
  loop.num_carried = std::ssize(carried);
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  graphs.push_back(std::move(body));
  return references_of(outer.add(ir::make(loop), operands, "", std::move(graphs)));
}

/// (graph, carried, scanned, more), or for a map (graph, scanned, more).
std::vector<Actual> Importer::scan(Call& call, const Scope& scope) {
  const bool is_map = call.node().target.ends_with("map_impl");
  const GraphArgument& step = graph_at(call, 0);
  const std::vector<Actual> carried = is_map ? std::vector<Actual>() : actuals_at(call, 1, scope);
  const std::vector<Actual> scanned = actuals_at(call, is_map ? 1 : 2, scope);
  const std::vector<Actual> more = actuals_from(call, is_map ? 2 : 3, scope);
  std::vector<Actual> arguments = carried;
  arguments.insert(arguments.end(), scanned.begin(), scanned.end());
  std::vector<bool> sliced(arguments.size(), false);
  std::fill(sliced.begin() + std::ssize(carried), sliced.end(), true);
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (tensors_of(carried).size() != carried.size())
    fail(ErrorKind::kUnsupported, "a scan that carries numbers");
  auto body = std::make_unique<ir::Graph>(step.name);
  const std::vector<Actual> inputs = inputs_for(*body, arguments, sliced);
  const std::vector<Actual> results = this->call(*step.graph, inputs, *body);
  refuse_writes(inputs);
  if (results.size() < carried.size())
    call.corrupt("the body gives {} results, {} are carried", results.size(), carried.size());
  const std::vector<ir::Type> types = types_of(tensors_of(carried));
  for (size_t i = 0; i < results.size(); ++i) {
    const Value value = value_of(results[i], *body);
    body->add_output("out" + std::to_string(i), i < types.size() ? fitted(value, types[i]) : value);
  }
  ir::Scan op;
  op.num_carried = std::ssize(carried);
  op.num_scanned = std::ssize(scanned);
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  graphs.push_back(std::move(body));
  return references_of(
      call.graph().add(ir::make(op), tensors_of(arguments), "", std::move(graphs)));
}

void Importer::run_higher_order(const Node& node, const Graph& graph, const Used& used,
                                Scope& scope) {
  const std::string name = node.target.substr(node.target.rfind('.') + 1);
  Call call(node, graph, used, scope, symbols_);
  std::vector<Actual> results;
  if (name == "cond") {
    results = branch(call, scope);
  } else if (name == "while_loop") {
    results = while_loop(call, scope);
  } else if (name == "scan" || name == "map_impl") {
    results = scan(call, scope);
  } else if (wraps(name)) {
    if (name == "wrap_with_autocast") refuse_autocast(call);
    size_t body = 0;
    while (body < node.inputs.size() &&
           !std::holds_alternative<GraphArgument>(node.inputs[body].value))
      ++body;
    results =
        this->call(*graph_at(call, body).graph, actuals_from(call, body + 1, scope), *scope.graph);
  } else {
    fail(ErrorKind::kUnsupported, "the higher-order operator");
  }
  std::vector<Reference> references;
  const std::vector<std::string> names = output_names(node);
  for (size_t i = 0; i < results.size(); ++i) {
    const auto* number = std::get_if<Number>(&results[i]);
    if (number != nullptr && i < names.size()) scope.numbers[names[i]] = *number;
    references.push_back(number != nullptr ? Reference() : std::get<Reference>(results[i]));
  }
  store(node, graph, used, scope, references);
}

}  // namespace tranship::pt2

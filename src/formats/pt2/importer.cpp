#include "formats/pt2/importer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/pt2/aten.h"
#include "formats/pt2/expression.h"
#include "formats/pt2/python_operators.h"
#include "ir/build.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Value;

constexpr std::string_view kOperators = "torch.ops.";
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

std::string_view operator_of(const Node& node) {
  std::string_view target = node.target;
  if (target.starts_with(kOperators)) target.remove_prefix(kOperators.size());
  return target;
}

std::string place_of(const Node& node) {
  std::string place =
      node.module_path.empty() ? "node '" + node.name + "'" : "module '" + node.module_path + "'";
  if (!node.source_line.empty()) place += fmt::format(", {}", node.source_line);
  return place;
}

/// "aten.add_.Tensor" -> "aten.add.Tensor"; nothing for what is not in place.
std::optional<std::string> functional_name(std::string_view target) {
  const size_t first = target.find('.');
  const size_t last = target.rfind('.');
  if (first == target.npos || last <= first + 1) return std::nullopt;
  const std::string_view name = target.substr(first + 1, last - first - 1);
  const std::string space(target.substr(0, first + 1)), overload(target.substr(last));
  if (name.starts_with("__i") && name.ends_with("__"))
    return space + "__" + std::string(name.substr(3)) + overload;
  if (name.ends_with('_') && !name.ends_with("__"))
    return space + std::string(name.substr(0, name.size() - 1)) + overload;
  return std::nullopt;
}

/// "aten.view_copy.default" -> "aten.view.default".
std::optional<std::string> view_name(std::string_view target) {
  constexpr std::string_view kCopy = "_copy.";
  const size_t at = target.find(kCopy);
  if (at == target.npos) return std::nullopt;
  return std::string(target.substr(0, at)) + std::string(target.substr(at + kCopy.size() - 1));
}

struct Found {
  Mapper map = nullptr;
  bool in_place = false;
  bool copies = false;  // a view by its name, but a tensor of its own
};

Found find_operator(std::string_view target) {
  if (const Mapper map = find_mapper(target)) return {map, false, false};
  if (const auto name = functional_name(target)) {
    if (const Mapper map = find_mapper(*name)) return {map, true, false};
  }
  if (const auto name = view_name(target)) {
    if (const Mapper map = find_mapper(*name)) return {map, false, true};
  }
  return {};
}

/// Names that nodes and outputs of a graph read.
std::set<std::string, std::less<>> used_names(const Graph& graph) {
  std::set<std::string, std::less<>> names;
  const auto add = [&](const Argument& argument) {
    if (const auto* tensor = std::get_if<TensorArgument>(&argument)) names.insert(tensor->name);
    if (const auto* list = std::get_if<TensorsArgument>(&argument)) {
      for (const auto& name : list->names) names.insert(name.value_or(""));
    }
  };
  for (const Node& node : graph.nodes) {
    for (const NamedArgument& input : node.inputs) add(input.value);
  }
  for (const Argument& output : graph.outputs) add(output);
  return names;
}

/// What the file and the graph both know must not contradict each other. Complex numbers have a
/// last axis of two.
bool agrees(const ir::Type& type, const TensorMeta& meta) {
  const std::optional<DType> part = find_complex_part(meta.type);
  const std::optional<DType> dtype = part ? part : find_dtype(meta.type);
  const ir::Shape& shape = type.shape;
  const auto rank = std::ssize(meta.sizes);
  if (dtype != type.dtype || shape.rank() != rank + (part ? 1 : 0)) return false;
  for (int64_t i = 0; i < rank; ++i) {
    const auto* said = std::get_if<int64_t>(&meta.sizes[static_cast<size_t>(i)]);
    if (said != nullptr && shape[i].is_static() && shape[i].value() != *said) return false;
  }
  return true;
}

std::string text_of(const TensorMeta& meta) {
  std::string out = torch_name(meta.type) + "[";
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    if (i > 0) out += ", ";
    const auto* n = std::get_if<int64_t>(&meta.sizes[i]);
    out += n != nullptr ? std::to_string(*n) : "?";
  }
  return out + "]";
}

const Number* find_number(const Scope& scope, const std::string& name) {
  const auto it = scope.numbers.find(name);
  return it == scope.numbers.end() ? nullptr : &it->second;
}

Number number_named(const Scope& scope, const std::string& name) {
  const Number* number = find_number(scope, name);
  if (number == nullptr)
    fail(ErrorKind::kCorrupt, "the number '{}' is used before it is made", name);
  return *number;
}

template <class Item>
Number resolve(const Scope& scope, const Item& item) {
  if (const auto* name = std::get_if<Name>(&item)) return number_named(scope, name->text);
  return std::get<0>(item);
}

std::string only_output(const Node& node) {
  const std::vector<std::string> names = output_names(node);
  if (names.size() != 1) fail(ErrorKind::kCorrupt, "{} results, expected one", names.size());
  return names[0];
}

}  // namespace

/// Lists of what sub-graphs are given have sizes among the tensors: PyTorch writes no other.
std::vector<Actual> actuals_of(const Argument& argument, const Scope& scope) {
  const auto tensor = [&](const std::string& name) -> Actual {
    if (const auto size = scope.numbers.find(name); size != scope.numbers.end())
      return size->second;
    const auto it = scope.tensors.find(name);
    if (it == scope.tensors.end())
      fail(ErrorKind::kCorrupt, "the tensor '{}' is used before it is made", name);
    return it->second;
  };
  std::vector<Actual> out;
  if (const auto* t = std::get_if<TensorArgument>(&argument)) return {tensor(t->name)};
  if (const auto* list = std::get_if<TensorsArgument>(&argument)) {
    for (const auto& name : list->names) out.push_back(name ? tensor(*name) : Actual(Reference()));
    return out;
  }
  if (const auto* i = std::get_if<IntArgument>(&argument)) {
    if (const auto* n = std::get_if<int64_t>(&i->value)) return {Number(Dim(*n))};
    return {resolve(scope, i->value)};
  }
  if (const auto* list = std::get_if<IntsArgument>(&argument)) {
    for (const IntItem& item : list->values) {
      const auto* n = std::get_if<int64_t>(&item);
      out.push_back(n != nullptr ? Number(Dim(*n))
                                 : number_named(scope, std::get<Name>(item).text));
    }
    return out;
  }
  if (const auto* f = std::get_if<FloatArgument>(&argument)) return {resolve(scope, f->value)};
  if (const auto* b = std::get_if<BoolArgument>(&argument)) return {resolve(scope, b->value)};
  if (std::holds_alternative<NoneArgument>(argument)) return {Reference()};
  fail(ErrorKind::kUnsupported, "an argument that is {}", tag_of(argument));
}

void Importer::run(const Graph& graph, Scope& scope) {
  const Used used = used_names(graph);
  for (const Node& node : graph.nodes) run_node(node, graph, used, scope);
}

std::vector<Actual> Importer::results(const Graph& graph, const Scope& scope) const {
  std::vector<Actual> out;
  for (const Argument& output : graph.outputs) {
    for (Actual& actual : actuals_of(output, scope)) out.push_back(std::move(actual));
  }
  return out;
}

std::vector<Actual> Importer::call(const Graph& graph, const std::vector<Actual>& arguments,
                                   ir::Graph& into) {
  Scope scope;
  scope.graph = &into;
  if (graph.inputs.size() != arguments.size()) {
    fail(ErrorKind::kCorrupt, "a sub-graph of {} inputs is called with {}", graph.inputs.size(),
         arguments.size());
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& input = graph.inputs[i];
    const auto* tensor = std::get_if<TensorArgument>(&input);
    const auto* reference = std::get_if<Reference>(&arguments[i]);
    if (tensor != nullptr && reference != nullptr) {
      scope.tensors[tensor->name] = *reference;
    } else if (const auto* number = std::get_if<Number>(&arguments[i])) {
      const auto* integer = std::get_if<IntArgument>(&input);
      const auto* name = integer == nullptr ? nullptr : std::get_if<Name>(&integer->value);
      if (name != nullptr) scope.numbers[name->text] = *number;
    }
  }
  run(graph, scope);
  return results(graph, scope);
}

void Importer::run_node(const Node& node, const Graph& graph, const Used& used, Scope& scope) {
  for (const std::string& name : output_names(node)) {
    if (scope.tensors.contains(name) || scope.numbers.contains(name))
      fail(ErrorKind::kCorrupt, "[pt2] '{}': the name '{}' is given twice, by '{}' again", file_,
           name, node.target);
  }
  const size_t first = scope.graph->nodes().size();
  try {
    dispatch(node, graph, used, scope);
    scope.graph->name_nodes(first, node.module_path);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUnsupported) {
      note_unmapped(node, fmt::format("{}: {}", operator_of(node), error.what()));
      return make_opaque(node, graph, scope);
    }
    // What follows an Opaque may not fit it: that is for the mapping to cure.
    if (!unmapped_.empty()) return make_opaque(node, graph, scope);
    fail(ErrorKind::kCorrupt, "[pt2] '{}': node '{}' ({}) makes no sense: {}; {}", file_, node.name,
         node.target, error.what(), place_of(node));
  }
}

void Importer::dispatch(const Node& node, const Graph& graph, const Used& used, Scope& scope) {
  if (is_python_operator(node.target)) return run_number(node, scope);
  if (node.target.starts_with(kHigherOrder)) return run_higher_order(node, graph, used, scope);
  if (run_size(node, graph, used, scope) || run_assertion(node, scope)) return;
  run_operator(node, graph, used, scope);
}

void Importer::run_number(const Node& node, Scope& scope) {
  std::vector<Number> arguments;
  for (const NamedArgument& input : node.inputs) {
    for (const Actual& actual : actuals_of(input.value, scope)) {
      const auto* number = std::get_if<Number>(&actual);
      if (number == nullptr) fail(ErrorKind::kUnsupported, "tensors as numbers");
      arguments.push_back(*number);
    }
  }
  scope.numbers[only_output(node)] =
      call_python_operator(node.target, arguments, *scope.graph, symbols_);
}

/// Operators that give a number: sizes, and what is read out of a tensor.
bool Importer::run_size(const Node& node, const Graph& graph, const Used& used, Scope& scope) {
  const std::string_view name = operator_of(node);
  const auto named = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  Call call(node, graph, used, scope, symbols_);
  if (named({"aten.sym_size.int"})) {
    const Value x = call.tensor("self");
    const int64_t dim = call.integer("dim");
    if (dim < -x.rank() || dim >= x.rank()) call.corrupt("there is no axis {}", dim);
    scope.numbers[only_output(node)] = x.shape()[dim];
  } else if (named({"aten.sym_numel.default"})) {
    scope.numbers[only_output(node)] = call.tensor("self").shape().num_elements();
  } else if (named({"aten.item.default", "aten._local_scalar_dense.default"})) {
    const Value x = call.tensor("self");
    const Value scalar_of = x.rank() == 0 ? x : reshape(x, {});
    const std::string output = only_output(node);
    if (is_floating(x.dtype())) {
      scope.numbers[output] = ComputedFloat{cast(scalar_of, DType::kF64)};
    } else if (x.dtype() == DType::kBool) {
      scope.numbers[output] = ComputedBool{scalar_of};
    } else {
      const auto said = graph.ints.find(output);
      const auto* expression =
          said == graph.ints.end() ? nullptr : std::get_if<Expression>(&said->second);
      const std::optional<Dim> wanted =
          expression == nullptr ? std::nullopt : read_expression(expression->text);
      ir::Item item;
      item.value = symbols_.birth(wanted);
      const Dim made = item.value;
      scope.graph->add_one(ir::make(std::move(item)), {cast(scalar_of, DType::kI64)});
      if (wanted && !(*wanted == made)) scope.graph->assume(made, *wanted);
      scope.numbers[output] = made;
    }
  } else {
    return false;
  }
  return true;
}

/// What only checks: equalities of sizes are kept, the rest goes.
bool Importer::run_assertion(const Node& node, Scope& scope) {
  static constexpr std::array<std::string_view, 10> kChecks = {
      "aten._assert_scalar.default",
      "aten._assert_async.default",
      "aten._assert_async.msg",
      "aten._functional_assert_async.msg",
      "aten._functional_assert_scalar.default",
      "aten._assert_tensor_metadata.default",
      "aten.sym_constrain_range.default",
      "aten.sym_constrain_range_for_size.default",
      "aten._make_dep_token.default",
      "profiler._record_function_enter_new.default"};
  if (std::ranges::find(kChecks, operator_of(node)) == kChecks.end()) return false;
  if (!node.inputs.empty() && operator_of(node) == kChecks[0]) {
    const auto* argument = std::get_if<BoolArgument>(&node.inputs[0].value);
    const auto* name = argument == nullptr ? nullptr : std::get_if<Name>(&argument->value);
    const Number* number = name == nullptr ? nullptr : find_number(scope, name->text);
    const auto* condition = number == nullptr ? nullptr : std::get_if<Condition>(number);
    if (condition != nullptr && condition->fn == ir::CompareKind::kEqual)
      scope.graph->assume(condition->a, condition->b);
  }
  return true;
}

void Importer::run_operator(const Node& node, const Graph& graph, const Used& used, Scope& scope) {
  Call call(node, graph, used, scope, symbols_);
  const bool complex = call.has_complex();
  const Found found = complex ? Found{find_complex_mapper(operator_of(node)), false, false}
                              : find_operator(operator_of(node));
  if (found.map == nullptr) {
    note_unmapped(node, std::string(operator_of(node)) + (complex ? " of complex numbers" : ""));
    return make_opaque(node, graph, scope);
  }
  Results results = found.map(call);
  call.finish();
  if (found.copies) {
    for (Reference& result : results) result = result ? Reference(result.value()) : result;
  }
  if (found.in_place) {
    const Reference self = call.reference(node.inputs.at(0).name);
    if (results.empty()) call.corrupt("nothing is written in place");
    if (results[0].shares_storage(self)) {  // the same numbers: a new shape, or nothing at all
      const auto* name = std::get_if<TensorArgument>(&node.inputs[0].value);
      if (name != nullptr) scope.tensors[name->name] = results[0];
    } else {
      const Value old = self.value();
      Value value = cast(results[0].value(), old.dtype());
      if (!(value.shape() == old.shape())) value = expand(value, old.shape());
      self.write(value);
      results = {self};
    }
  }
  store(node, graph, used, scope, results);
}

void Importer::store(const Node& node, const Graph& graph, const Used& used, Scope& scope,
                     const std::vector<Reference>& results) {
  const std::vector<std::string> names = output_names(node);
  for (size_t i = 0; i < names.size(); ++i) {
    const bool made = i < results.size() && results[i];
    if (!made) {
      if (used.contains(names[i])) fail(ErrorKind::kUnsupported, "its result {}", i);
      continue;
    }
    const Value value = results[i].value();
    const auto meta = graph.tensors.find(names[i]);
    if (meta == graph.tensors.end())
      fail(ErrorKind::kCorrupt, "nothing is said of its result '{}'", names[i]);
    if (!agrees(value.type(), meta->second)) {
      fail(ErrorKind::kCorrupt, "its result '{}' is {}, but the file says {}", names[i],
           value.type().text(), text_of(meta->second));
    }
    scope.tensors[names[i]] = results[i];
  }
}

void Importer::note_unmapped(const Node& node, std::string what) {
  for (Unmapped& known : unmapped_) {
    if (known.what != what) continue;
    ++known.count;
    return;
  }
  unmapped_.push_back({std::move(what), 1, place_of(node)});
}

/// Stands in for the results, with the types that the file claims.
void Importer::make_opaque(const Node& node, const Graph& graph, Scope& scope) {
  std::vector<Value> operands;
  for (const NamedArgument& input : node.inputs) {
    const auto* tensor = std::get_if<TensorArgument>(&input.value);
    const auto it = tensor == nullptr ? scope.tensors.end() : scope.tensors.find(tensor->name);
    if (it != scope.tensors.end() && it->second) operands.push_back(it->second.value());
  }
  for (const std::string& name : output_names(node)) {
    if (name.empty()) continue;
    const auto meta = graph.tensors.find(name);
    if (meta == graph.tensors.end()) {
      scope.numbers[name] = symbols_.birth(std::nullopt);
      continue;
    }
    ir::Opaque op;
    op.target = operator_of(node);
    op.dtype = find_dtype(meta->second.type).value_or(DType::kF32);
    for (const Size& size : meta->second.sizes) {
      const auto* n = std::get_if<int64_t>(&size);
      const auto dim = n != nullptr ? Dim(*n) : read_expression(std::get<Expression>(size).text);
      op.shape.dims.push_back(dim ? *dim : symbols_.birth(std::nullopt));
    }
    scope.tensors[name] = scope.graph->add(ir::make(std::move(op)), operands)[0];
  }
}

}  // namespace tranship::pt2

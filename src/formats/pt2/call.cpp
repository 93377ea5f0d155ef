#include "formats/pt2/call.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "formats/pt2/expression.h"

namespace tranship::pt2 {

using ir::Dim;
using ir::Value;

std::vector<std::string> output_names(const Node& node) {
  std::vector<std::string> names;
  const auto add = [&](const auto& item) {
    if (const auto* name = std::get_if<Name>(&item)) names.push_back(name->text);
  };
  for (const Argument& output : node.outputs) {
    if (const auto* tensor = std::get_if<TensorArgument>(&output)) {
      names.push_back(tensor->name);
    } else if (const auto* list = std::get_if<TensorsArgument>(&output)) {
      for (const auto& name : list->names) names.push_back(name.value_or(""));
    } else if (const auto* i = std::get_if<IntArgument>(&output)) {
      add(i->value);
    } else if (const auto* f = std::get_if<FloatArgument>(&output)) {
      add(f->value);
    } else if (const auto* b = std::get_if<BoolArgument>(&output)) {
      add(b->value);
    } else if (std::holds_alternative<NoneArgument>(output)) {
      names.emplace_back();
    }
  }
  return names;
}

Dim Symbols::birth(const std::optional<Dim>& wanted) {
  const std::optional<std::string> name = wanted ? wanted->as_symbol() : std::nullopt;
  if (name && bound.insert(*name).second) return *wanted;
  std::string made;
  do {
    made = "count" + std::to_string(num_made_++);
  } while (!bound.insert(made).second);
  return Dim::symbol(made);
}

Call::Call(const Node& node, const Graph& source, const std::set<std::string, std::less<>>& used,
           Scope& scope, Symbols& symbols)
    : node_(node),
      source_(source),
      used_(used),
      scope_(scope),
      symbols_(symbols),
      outputs_(output_names(node)) {}

void Call::vcorrupt(fmt::string_view format, fmt::format_args args) const {
  fail(ErrorKind::kCorrupt, "[pt2] the call of '{}': {}", node_.target, fmt::vformat(format, args));
}

void Call::wrong_kind(std::string_view name, const Argument& found,
                      std::string_view expected) const {
  corrupt("the argument '{}' is {}, expected {}", name, tag_of(found), expected);
}

/// Null for one that is absent or None. PyTorch hands positional arguments over in the order in
/// which they stand: one that is missing before shifts those after it to other names.
const Argument* Call::find(std::string_view name) {
  for (const NamedArgument& argument : node_.inputs) {
    if (argument.name != name) continue;
    if (read_.emplace(name).second && argument.positional && !absent_.empty()) {
      corrupt("the positional argument '{}' stands where '{}' belongs", name, absent_);
    }
    return std::holds_alternative<NoneArgument>(argument.value) ? nullptr : &argument.value;
  }
  if (absent_.empty()) absent_ = name;
  return nullptr;
}

const Argument& Call::at(std::string_view name) {
  const Argument* argument = find(name);
  if (argument == nullptr) corrupt("the argument '{}' is missing", name);
  return *argument;
}

bool Call::has(std::string_view name) { return find(name) != nullptr; }

Reference Call::lookup_tensor(const std::string& name) const {
  const auto it = scope_.tensors.find(name);
  if (it == scope_.tensors.end() || !it->second)
    corrupt("the tensor '{}' is used before it is made", name);
  return it->second;
}

Reference Call::reference(std::string_view name) {
  const Argument& argument = at(name);
  if (const auto* tensor = std::get_if<TensorArgument>(&argument))
    return lookup_tensor(tensor->name);
  return to_value(graph(), to_number(name, argument));  // PyTorch wraps a number
}

Value Call::optional_tensor(std::string_view name) {
  return find(name) == nullptr ? Value() : reference(name).value();
}

std::vector<Value> Call::tensors(std::string_view name) {
  const Argument* argument = find(name);
  if (argument == nullptr) return {};
  const auto* list = std::get_if<TensorsArgument>(argument);
  if (list == nullptr) {
    const auto* ints = std::get_if<IntsArgument>(argument);  // an empty list of some kind
    if (ints != nullptr && ints->values.empty()) return {};
    wrong_kind(name, *argument, "a list of tensors");
  }
  std::vector<Value> out;
  for (const auto& tensor : list->names)
    out.push_back(tensor ? lookup_tensor(*tensor).value() : Value());
  return out;
}

Number Call::lookup(const Name& name) const {
  const auto it = scope_.numbers.find(name.text);
  if (it == scope_.numbers.end()) corrupt("the number '{}' is used before it is made", name.text);
  return it->second;
}

template <class Item>
Number Call::resolve(const Item& item) const {
  if (const auto* name = std::get_if<Name>(&item)) return lookup(*name);
  return std::get<0>(item);
}

Number Call::to_number(std::string_view name, const Argument& argument) const {
  if (const auto* i = std::get_if<IntArgument>(&argument)) {
    if (const auto* n = std::get_if<int64_t>(&i->value)) return Dim(*n);
    return lookup(std::get<Name>(i->value));
  }
  if (const auto* f = std::get_if<FloatArgument>(&argument)) return resolve(f->value);
  if (const auto* b = std::get_if<BoolArgument>(&argument)) return resolve(b->value);
  wrong_kind(name, argument, "a number");
}

Operand Call::operand(std::string_view name) {
  const Argument& argument = at(name);
  if (const auto* tensor = std::get_if<TensorArgument>(&argument))
    return lookup_tensor(tensor->name).value();
  return to_number(name, argument);
}

std::optional<Operand> Call::optional_operand(std::string_view name) {
  if (find(name) == nullptr) return std::nullopt;
  return operand(name);
}

Number Call::number(std::string_view name) { return to_number(name, at(name)); }

Number Call::number(std::string_view name, Number otherwise) {
  const Argument* argument = find(name);
  return argument == nullptr ? otherwise : to_number(name, *argument);
}

Dim Call::to_size(std::string_view name, const Number& number) const {
  if (const auto* dim = std::get_if<Dim>(&number)) return *dim;
  if (const auto* truth = std::get_if<bool>(&number)) return *truth ? 1 : 0;
  corrupt("the argument '{}' is not an integer", name);
}

Dim Call::size(std::string_view name) { return to_size(name, number(name)); }

std::optional<Dim> Call::optional_size(std::string_view name) {
  if (find(name) == nullptr) return std::nullopt;
  return size(name);
}

std::vector<Dim> Call::sizes(std::string_view name) {
  const Argument& argument = at(name);
  if (std::holds_alternative<IntArgument>(argument)) return {size(name)};
  const auto* list = std::get_if<IntsArgument>(&argument);
  if (list == nullptr) wrong_kind(name, argument, "a list of integers");
  std::vector<Dim> out;
  for (const IntItem& item : list->values) {
    if (const auto* n = std::get_if<int64_t>(&item)) {
      out.emplace_back(*n);
    } else {
      out.push_back(to_size(name, lookup(std::get<Name>(item))));
    }
  }
  return out;
}

int64_t Call::to_integer(std::string_view name, const Dim& dim) const {
  if (dim.is_static()) return dim.value();
  fail(ErrorKind::kUnsupported, "the argument '{}' is {}, which is not fixed", name, dim.text());
}

int64_t Call::integer(std::string_view name) { return to_integer(name, size(name)); }

int64_t Call::integer(std::string_view name, int64_t otherwise) {
  return find(name) == nullptr ? otherwise : integer(name);
}

std::optional<int64_t> Call::optional_integer(std::string_view name) {
  if (find(name) == nullptr) return std::nullopt;
  return integer(name);
}

std::vector<int64_t> Call::integers(std::string_view name, std::vector<int64_t> otherwise) {
  if (find(name) == nullptr) return otherwise;
  std::vector<int64_t> out;
  for (const Dim& dim : sizes(name)) out.push_back(to_integer(name, dim));
  return out;
}

double Call::real(std::string_view name) {
  const Number value = number(name);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  if (const auto* dim = std::get_if<Dim>(&value))
    return static_cast<double>(to_integer(name, *dim));
  fail(ErrorKind::kUnsupported, "the argument '{}' is a number that is not fixed", name);
}

double Call::real(std::string_view name, double otherwise) {
  return find(name) == nullptr ? otherwise : real(name);
}

std::vector<double> Call::reals(std::string_view name) {
  const Argument* argument = find(name);
  if (argument == nullptr) return {};
  std::vector<double> out;
  if (const auto* list = std::get_if<FloatsArgument>(argument)) {
    for (const FloatItem& item : list->values) {
      const auto* value = std::get_if<double>(&item);
      if (value == nullptr)
        fail(ErrorKind::kUnsupported, "the argument '{}' is a number that is not fixed", name);
      out.push_back(*value);
    }
    return out;
  }
  if (!std::holds_alternative<IntsArgument>(*argument))
    wrong_kind(name, *argument, "a list of floats");
  for (const int64_t value : integers(name)) out.push_back(static_cast<double>(value));
  return out;
}

bool Call::flag(std::string_view name, bool otherwise) {
  const Argument* argument = find(name);
  if (argument == nullptr) return otherwise;
  const Number value = to_number(name, *argument);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  if (const auto* dim = std::get_if<Dim>(&value); dim != nullptr && dim->is_static())
    return dim->value() != 0;
  fail(ErrorKind::kUnsupported, "the argument '{}' is not fixed", name);
}

std::string Call::text(std::string_view name, std::string_view otherwise) {
  const Argument* argument = find(name);
  if (argument == nullptr) return std::string(otherwise);
  const auto* text = std::get_if<StringArgument>(argument);
  if (text == nullptr) wrong_kind(name, *argument, "a string");
  return text->text;
}

std::optional<DType> Call::dtype(std::string_view name) {
  const Argument* argument = find(name);
  if (argument == nullptr) return std::nullopt;
  const auto* type = std::get_if<ScalarType>(argument);
  if (type == nullptr) wrong_kind(name, *argument, "a dtype");
  const std::optional<DType> out = find_dtype(*type);
  if (!out) fail(ErrorKind::kUnsupported, "the dtype {}", torch_name(*type));
  return out;
}

void Call::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) read_.emplace(name);
}

void Call::refuse(std::string_view name) {
  if (has(name)) fail(ErrorKind::kUnsupported, "the argument '{}'", name);
}

bool Call::is_used(size_t output) const {
  return output < outputs_.size() && used_.contains(outputs_[output]);
}

const TensorMeta& Call::output_meta(size_t output) const {
  if (output >= outputs_.size()) corrupt("result {} is missing", output);
  const auto it = source_.tensors.find(outputs_[output]);
  if (it == source_.tensors.end()) corrupt("nothing is said of its result '{}'", outputs_[output]);
  return it->second;
}

DType Call::output_dtype(size_t output) const {
  const ScalarType type = output_meta(output).type;
  const std::optional<DType> dtype = find_dtype(type);
  if (!dtype) fail(ErrorKind::kUnsupported, "the dtype {}", torch_name(type));
  return *dtype;
}

std::vector<std::optional<Dim>> Call::output_sizes(size_t output) const {
  std::vector<std::optional<Dim>> out;
  for (const Size& size : output_meta(output).sizes) {
    const auto* expression = std::get_if<Expression>(&size);
    out.push_back(expression == nullptr ? Dim(std::get<int64_t>(size))
                                        : read_expression(expression->text));
  }
  return out;
}

const TensorMeta* Call::find_meta(std::string_view argument) const {
  for (const NamedArgument& input : node_.inputs) {
    const auto* tensor = std::get_if<TensorArgument>(&input.value);
    if (input.name != argument || tensor == nullptr) continue;
    const auto it = source_.tensors.find(tensor->name);
    return it == source_.tensors.end() ? nullptr : &it->second;
  }
  return nullptr;
}

bool Call::is_complex(std::string_view argument) const {
  const TensorMeta* meta = find_meta(argument);
  return meta != nullptr && find_complex_part(meta->type).has_value();
}

bool Call::has_complex() const {
  for (const std::string& output : outputs_) {
    const auto it = source_.tensors.find(output);
    if (it != source_.tensors.end() && find_complex_part(it->second.type)) return true;
  }
  return std::ranges::any_of(node_.inputs,
                             [&](const NamedArgument& input) { return is_complex(input.name); });
}

void Call::finish() const {
  for (const NamedArgument& argument : node_.inputs) {
    if (!read_.contains(argument.name))
      fail(ErrorKind::kUnsupported, "the argument '{}'", argument.name);
  }
}

}  // namespace tranship::pt2

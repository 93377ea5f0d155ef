#include "formats/pt2/emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tranship::pt2 {
namespace {

// Python's words and functions that a value is not called: PyTorch would rename it.
constexpr std::array<std::string_view, 20> kTaken = {
    "abs",  "all", "any", "bool", "dict", "float", "input", "int", "is",  "lambda",
    "list", "max", "min", "not",  "pow",  "range", "round", "set", "sum", "slice"};

std::string operands_text(const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& o : operands) {
    text += fmt::format(R"({}{{"name":"{}","arg":{},"kind":{}}})", text.empty() ? "" : ",", o.name,
                        o.json, o.keyword ? 2 : 1);
  }
  return text;
}

void append(std::string& list, std::string_view separator, const std::string& item) {
  if (!list.empty()) list += separator;
  list += item;
}

std::string full_target(std::string_view target) {
  const bool is_op = target.starts_with("aten.") || target.starts_with("higher_order.");
  return is_op ? fmt::format("torch.ops.{}", target) : std::string(target);
}

std::string named_sym_int(const std::string& name) {
  return fmt::format(R"({{"as_sym_int":{{"as_name":"{}"}}}})", name);
}

}  // namespace

std::string Emitter::unique(std::string wanted) {
  for (char& c : wanted) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  if (wanted.empty() || (wanted[0] >= '0' && wanted[0] <= '9')) wanted.insert(0, "_");
  const bool is_taken = std::ranges::find(kTaken, wanted) != kTaken.end();
  if (!is_taken && names_.insert(wanted).second) return wanted;
  size_t& number = last_number_[wanted];
  std::string name;
  do {
    name = fmt::format("{}_{}", wanted, ++number);
  } while (!names_.insert(name).second);
  return name;
}

/// "aten.add.Tensor" -> "add", or "add_1" ...
std::string Emitter::fresh_name(std::string_view target) {
  const size_t begin = target.find('.') + 1;
  return unique(std::string(target.substr(begin, target.find('.', begin) - begin)));
}

const ir::Type& Emitter::type(const std::string& name) const {
  const auto it = types_.find(name);
  check(it != types_.end(), "pt2: there is no tensor " + name);
  return it->second;
}

void Emitter::add_value(const std::string& name, const ir::Type& type) {
  types_.emplace(name, type);
  append(tensor_values_, ",\n",
         fmt::format(R"("{}":{})", name, tensor_meta(type, symbols_, false)));
}

std::string Emitter::placeholder(const std::string& wanted, const ir::Type& type) {
  std::string name = unique(wanted);
  add_value(name, type);
  return name;
}

std::string Emitter::size_placeholder(const ir::Dim& size) {
  const std::string name = unique("size");
  append(sym_int_values_, ",\n", fmt::format(R"("{}":{})", name, symbols_.size(size)));
  sizes_.emplace(size.text(), name);
  return named_sym_int(name);
}

void Emitter::set_origin(const ir::Dim& size, const std::string& tensor, int64_t axis) {
  if (!size.is_static()) origins_.emplace(size.text(), Origin{tensor, axis});
}

void Emitter::set_origins(const ir::Shape& shape, const std::string& tensor) {
  for (int64_t axis = 0; axis < shape.rank(); ++axis) set_origin(shape[axis], tensor, axis);
}

void Emitter::add_node(std::string_view target, std::string_view operands,
                       const std::string& outputs, const std::string& name, bool is_higher_order) {
  append(nodes_, ",\n",
         fmt::format(R"({{"target":"{}","inputs":[{}],"outputs":[{}],"metadata":{{}},)"
                     R"("is_hop_single_tensor_return":{},"name":{}}})",
                     full_target(target), operands, outputs, is_higher_order ? "false" : "null",
                     json_text(name)));
  ++num_nodes_;
}

std::string Emitter::node(std::string_view target, const std::vector<Operand>& operands,
                          const ir::Type& type) {
  return node(target, operands, std::span(&type, 1)).front();
}

std::vector<std::string> Emitter::node(std::string_view target,
                                       const std::vector<Operand>& operands,
                                       std::span<const ir::Type> types) {
  const std::string text = operands_text(operands);
  const auto [made, is_new] = made_.try_emplace(fmt::format("{}({})", target, text));
  if (!is_new) return made->second;
  std::string outputs;
  const std::string name = fresh_name(target);
  for (const ir::Type& type : types) {
    std::string result = types.size() == 1 ? name : unique("getitem");
    append(outputs, ",", as_tensor(result));
    add_value(result, type);
    made->second.push_back(std::move(result));
  }
  add_node(target, text, outputs, name);
  return made->second;
}

std::string Emitter::effect(std::string_view target, const std::vector<Operand>& operands,
                            const ir::Type* type) {
  const std::string name = fresh_name(target);
  add_node(target, operands_text(operands), type != nullptr ? as_tensor(name) : "", name);
  if (type == nullptr) return {};
  add_value(name, *type);
  return name;
}

std::vector<std::string> Emitter::higher_order(std::string_view target,
                                               const std::vector<Operand>& operands,
                                               std::span<const ir::Type> types) {
  std::vector<std::string> results;
  std::string outputs;
  for (const ir::Type& type : types) {
    results.push_back(unique("getitem"));
    append(outputs, ",", as_tensor(results.back()));
    add_value(results.back(), type);
  }
  add_node(target, operands_text(operands), outputs, fresh_name(target), true);
  return results;
}

// ---- sizes

bool Emitter::is_known(const ir::Dim& dim) const {
  const auto is_there = [&](const std::string& text) {
    return origins_.contains(text) || sizes_.contains(text);
  };
  const std::set<std::string> symbols = dim.symbols();
  return is_there(dim.text()) || std::ranges::all_of(symbols, is_there);
}

void Emitter::give_birth(const ir::Dim& size, const std::string& tensor) {
  const std::string name = sym_int("aten.item.default", {{"self", as_tensor(tensor)}}, size);
  effect("aten.sym_constrain_range_for_size.default", {{"size", named_sym_int(name)}}, nullptr);
  sizes_.emplace(size.text(), name);
}

namespace {

using Factor = ir::Dim::Factor;

ir::Dim value_of(const Factor& factor) {
  switch (factor.kind) {
    case Factor::Kind::kSymbol:
      return ir::Dim::symbol(factor.symbol);
    case Factor::Kind::kFloorDiv:
      return floor_div(factor.arguments[0], factor.arguments[1]);
    case Factor::Kind::kMod:
      return mod(factor.arguments[0], factor.arguments[1]);
    case Factor::Kind::kMin:
      return min(factor.arguments[0], factor.arguments[1]);
    case Factor::Kind::kMax:
      return max(factor.arguments[0], factor.arguments[1]);
  }
  return 0;
}

ir::Dim product_of(std::span<const Factor> factors) {
  ir::Dim product = 1;
  for (const Factor& factor : factors) product = product * value_of(factor);
  return product;
}

std::string_view function_of(Factor::Kind kind) {
  switch (kind) {
    case Factor::Kind::kFloorDiv:
      return "_operator.floordiv";
    case Factor::Kind::kMod:
      return "_operator.mod";
    case Factor::Kind::kMin:
      return "torch.sym_min";
    case Factor::Kind::kMax:
      return "torch.sym_max";
    case Factor::Kind::kSymbol:
      break;
  }
  return {};
}

}  // namespace

std::string Emitter::sym_int(std::string_view target, const std::vector<Operand>& operands,
                             const ir::Dim& value) {
  const std::string name =
      target == "aten.sym_size.int" ? unique("sym_size_int") : fresh_name(target);
  append(sym_int_values_, ",\n", fmt::format(R"("{}":{})", name, symbols_.size(value)));
  add_node(target, operands_text(operands), named_sym_int(name), name);
  return name;
}

std::string Emitter::factor_size(const Factor& factor) {
  if (factor.kind == Factor::Kind::kSymbol) {
    fail(ErrorKind::kUnsupported,
         "[pt2] the size '{}' is not an axis of any input: a graph cannot know it", factor.symbol);
  }
  const std::string a = size(factor.arguments[0]), b = size(factor.arguments[1]);
  return sym_int(function_of(factor.kind), {{"a", a}, {"b", b}}, value_of(factor));
}

/// The sum without its last term and that term; or a product without a factor and that factor.
std::string Emitter::compute_size(const ir::Dim& dim) {
  if (const auto it = origins_.find(dim.text()); it != origins_.end()) {
    return sym_int("aten.sym_size.int",
                   {{"self", as_tensor(it->second.tensor)}, {"dim", as_int(it->second.axis)}}, dim);
  }
  const std::vector<ir::Dim::Term> terms = dim.terms();
  const ir::Dim::Term& last = terms.back();
  if (terms.size() > 1) {
    const ir::Dim part = product_of(last.factors) * last.coefficient;
    return sym_int("_operator.add", {{"a", size(dim - part)}, {"b", size(part)}}, dim);
  }
  if (last.coefficient != 1) {
    return sym_int("_operator.mul",
                   {{"a", size(product_of(last.factors))}, {"b", as_int(last.coefficient)}}, dim);
  }
  if (last.factors.size() == 1) return factor_size(last.factors.front());
  const std::span<const Factor> all(last.factors);
  return sym_int(
      "_operator.mul",
      {{"a", size(product_of(all.first(all.size() - 1)))}, {"b", size(value_of(all.back()))}}, dim);
}

std::string Emitter::size_name(const ir::Dim& dim) {
  const std::string key = dim.text();
  if (const auto it = sizes_.find(key); it != sizes_.end()) return it->second;
  std::string name = compute_size(dim);
  return sizes_.emplace(key, std::move(name)).first->second;
}

std::string Emitter::size(const ir::Dim& dim) {
  return dim.is_static() ? as_int(dim.value()) : named_sym_int(size_name(dim));
}

std::string Emitter::sizes(const std::vector<ir::Dim>& dims) {
  if (ir::Shape(dims).is_static()) return as_ints(ir::Shape(dims).sizes());
  std::string items;
  for (const ir::Dim& dim : dims) {
    append(items, ",",
           dim.is_static() ? as_int(dim.value())
                           : fmt::format(R"({{"as_name":"{}"}})", size_name(dim)));
  }
  return fmt::format(R"({{"as_sym_ints":[{}]}})", items);
}

void Emitter::check_equal(const ir::Dim& a, const ir::Dim& b) {
  const std::string name = fresh_name("_operator.eq");
  append(sym_bool_values_, ",\n",
         fmt::format(R"("{}":{{"as_expr":{{"expr_str":{},"hint":null}}}})", name,
                     json_text(fmt::format("Equality({}, {})", symbols_.expression(a),
                                           symbols_.expression(b)))));
  const std::string named = fmt::format(R"({{"as_sym_bool":{{"as_name":"{}"}}}})", name);
  add_node("_operator.eq", operands_text({{"a", size(a)}, {"b", size(b)}}), named, name);
  effect("aten._assert_scalar.default",
         {{"self", named}, {"assert_msg", as_string(fmt::format("{} is {}", a.text(), b.text()))}},
         nullptr);
}

std::string Emitter::json(const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, bool gives_tensor) const {
  return fmt::format(
      R"({{"inputs":[{}],"outputs":[{}],
"nodes":[
{}
],
"tensor_values":{{
{}
}},
"sym_int_values":{{{}}},"sym_bool_values":{{{}}},"is_single_tensor_return":{},)"
      R"("custom_obj_values":{{}},"sym_float_values":{{}}}})",
      fmt::join(inputs, ","), fmt::join(outputs, ","), nodes_, tensor_values_, sym_int_values_,
      sym_bool_values_, gives_tensor);
}

}  // namespace tranship::pt2

#include "formats/pt2/schema.h"

#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace tranship::pt2 {
namespace {

struct ScalarTypeRow {
  int64_t number;
  std::string_view name;
  std::optional<DType> dtype;
};

constexpr std::array<ScalarTypeRow, 22> kScalarTypes = {{{1, "uint8", DType::kU8},
                                                         {2, "int8", DType::kI8},
                                                         {3, "int16", DType::kI16},
                                                         {4, "int32", DType::kI32},
                                                         {5, "int64", DType::kI64},
                                                         {6, "float16", DType::kF16},
                                                         {7, "float32", DType::kF32},
                                                         {8, "float64", DType::kF64},
                                                         {9, "complex32", std::nullopt},
                                                         {10, "complex64", std::nullopt},
                                                         {11, "complex128", std::nullopt},
                                                         {12, "bool", DType::kBool},
                                                         {13, "bfloat16", DType::kBF16},
                                                         {28, "uint16", DType::kU16},
                                                         {29, "float8_e4m3fn", DType::kF8E4M3},
                                                         {30, "float8_e5m2", DType::kF8E5M2},
                                                         {31, "float8_e4m3fnuz", std::nullopt},
                                                         {32, "float8_e5m2fnuz", std::nullopt},
                                                         {33, "float8_e8m0fnu", std::nullopt},
                                                         {34, "uint32", DType::kU32},
                                                         {35, "uint64", DType::kU64},
                                                         {0, "unknown", std::nullopt}}};
constexpr int64_t kStrided = 7;
constexpr size_t kMaxRank = 64;

/// A place in a document. How it is called is looked up when a message needs it.
class At {
 public:
  At(std::string_view where, const Json& root) : where_(where), root_(&root), value_(&root) {}

  template <class... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, const Args&... args) const {
    std::string path = "the document";
    find_path(*root_, "", path);
    fail(ErrorKind::kCorrupt, "[pt2] '{}': {}: {}", where_, path,
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }

  At operator[](const char* key) const {
    const std::optional<At> found = find(key);
    if (!found) corrupt("the key '{}' is missing", key);
    return *found;
  }
  /// Nothing for a key that is not there, or null.
  std::optional<At> find(const char* key) const {
    need(value_->is_object(), "an object");
    const auto it = value_->find(key);
    if (it == value_->end() || it->is_null()) return std::nullopt;
    return At(*this, *it);
  }
  /// The only entry of a union.
  std::pair<std::string, At> alternative() const {
    need(value_->is_object(), "an object");
    if (value_->size() != 1) corrupt("a union has one key, found {}", value_->size());
    return {value_->begin().key(), At(*this, value_->begin().value())};
  }
  template <class F>
  void each_element(F&& f) const {
    need(value_->is_array(), "a list");
    for (const Json& element : *value_) f(At(*this, element));
  }
  template <class F>
  void each_entry(F&& f) const {
    need(value_->is_object(), "an object");
    for (auto it = value_->begin(); it != value_->end(); ++it) f(it.key(), At(*this, it.value()));
  }
  /// f of each element, as a list.
  template <class F>
  auto list(F&& f) const {
    std::vector<decltype(f(*this))> out;
    each_element([&](const At& element) { out.push_back(f(element)); });
    return out;
  }

  int64_t integer() const {
    need(value_->is_number_integer(), "an integer");
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (value_->is_number_unsigned() && value_->get<uint64_t>() > kMax)
      corrupt("an integer of more than 63 bits");
    return value_->get<int64_t>();
  }
  double real() const {
    if (value_->is_string()) {
      const std::string& text = value_->get_ref<const std::string&>();
      if (text == "Infinity") return std::numeric_limits<double>::infinity();
      if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
      if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    }
    need(value_->is_number(), "a number, \"Infinity\", \"-Infinity\" or \"NaN\"");
    return value_->get<double>();
  }
  bool boolean() const {
    need(value_->is_boolean(), "true or false");
    return value_->get<bool>();
  }
  const std::string& text() const {
    need(value_->is_string(), "a string");
    return value_->get_ref<const std::string&>();
  }

 private:
  At(const At& parent, const Json& value)
      : where_(parent.where_), root_(parent.root_), value_(&value) {}

  void need(bool holds, std::string_view expected) const {
    if (!holds) corrupt("expected {}, found {}", expected, value_->type_name());
  }
  /// Whether the value is below `from`, which is at `path`.
  bool find_path(const Json& from, const std::string& path, std::string& found) const {
    if (&from == value_) {
      if (!path.empty()) found = path;
      return true;
    }
    size_t index = 0;
    for (auto it = from.begin(); from.is_structured() && it != from.end(); ++it, ++index) {
      const std::string step =
          from.is_object() ? (path.empty() ? "" : ".") + it.key() : fmt::format("[{}]", index);
      if (find_path(*it, path + step, found)) return true;
    }
    return false;
  }

  std::string_view where_;
  const Json* root_;
  const Json* value_;
};

Expression expression(const At& at) {
  Expression out{at["expr_str"].text()};
  const auto hint = at.find("hint");
  if (!hint) return out;
  const auto [tag, value] = hint->alternative();
  if (tag == "as_int") out.hint = value.integer();
  return out;
}

Size size(const At& at) {
  const auto [tag, value] = at.alternative();
  if (tag == "as_int") return value.integer();
  if (tag == "as_expr") return expression(value);
  at.corrupt("expected as_int or as_expr, found '{}'", tag);
}

TensorMeta tensor_meta(const At& at) {
  TensorMeta meta;
  meta.type = {at["dtype"].integer()};
  meta.sizes = at["sizes"].list(size);
  meta.strides = at["strides"].list(size);
  meta.storage_offset = size(at["storage_offset"]);
  meta.is_strided = at["layout"].integer() == kStrided;
  if (meta.sizes.size() != meta.strides.size())
    at.corrupt("{} sizes and {} strides", meta.sizes.size(), meta.strides.size());
  if (meta.sizes.size() > kMaxRank) at.corrupt("{} axes", meta.sizes.size());
  for (const Size& s : meta.sizes) {
    if (const auto* n = std::get_if<int64_t>(&s); n != nullptr && *n < 0)
      at.corrupt("a size of {}", *n);
  }
  return meta;
}

Graph graph(const At& at);

/// {"as_name": "n"} or {"as_int": 3}.
template <class T, class F>
std::variant<T, Name> item(const At& at, const char* constant, F&& read) {
  const auto [tag, value] = at.alternative();
  if (tag == "as_name") return Name{value.text()};
  if (tag == constant) return T{read(value)};
  at.corrupt("expected as_name or {}, found '{}'", constant, tag);
}
IntItem int_item(const At& at) {
  return item<int64_t>(at, "as_int", [](const At& v) { return v.integer(); });
}
FloatItem float_item(const At& at) {
  return item<double>(at, "as_float", [](const At& v) { return v.real(); });
}
BoolItem bool_item(const At& at) {
  return item<bool>(at, "as_bool", [](const At& v) { return v.boolean(); });
}

std::string tensor_name(const At& at) { return at["name"].text(); }

std::optional<std::string> optional_tensor_name(const At& at) {
  const auto [tag, value] = at.alternative();
  if (tag == "as_none") return std::nullopt;
  if (tag == "as_tensor") return tensor_name(value);
  at.corrupt("expected as_tensor or as_none, found '{}'", tag);
}

using ArgumentReader = Argument (*)(const At&);

const std::map<std::string, ArgumentReader, std::less<>>& argument_readers() {
  static const std::map<std::string, ArgumentReader, std::less<>> readers = {
      {"as_none", [](const At&) -> Argument { return NoneArgument{}; }},
      {"as_tensor", [](const At& v) -> Argument { return TensorArgument{tensor_name(v)}; }},
      {"as_tensors",
       [](const At& v) -> Argument {
         return TensorsArgument{
             v.list([](const At& e) { return std::optional<std::string>(tensor_name(e)); })};
       }},
      {"as_optional_tensors",
       [](const At& v) -> Argument { return TensorsArgument{v.list(optional_tensor_name)}; }},
      {"as_int", [](const At& v) -> Argument { return IntArgument{v.integer()}; }},
      {"as_ints",
       [](const At& v) -> Argument {
         return IntsArgument{v.list([](const At& e) { return IntItem(e.integer()); })};
       }},
      {"as_sym_int", [](const At& v) -> Argument { return IntArgument{int_item(v)}; }},
      {"as_sym_ints", [](const At& v) -> Argument { return IntsArgument{v.list(int_item)}; }},
      {"as_float", [](const At& v) -> Argument { return FloatArgument{v.real()}; }},
      {"as_floats",
       [](const At& v) -> Argument {
         return FloatsArgument{v.list([](const At& e) { return FloatItem(e.real()); })};
       }},
      {"as_sym_float", [](const At& v) -> Argument { return FloatArgument{float_item(v)}; }},
      {"as_sym_floats", [](const At& v) -> Argument { return FloatsArgument{v.list(float_item)}; }},
      {"as_bool", [](const At& v) -> Argument { return BoolArgument{v.boolean()}; }},
      {"as_bools",
       [](const At& v) -> Argument {
         return BoolsArgument{v.list([](const At& e) { return BoolItem(e.boolean()); })};
       }},
      {"as_sym_bool", [](const At& v) -> Argument { return BoolArgument{bool_item(v)}; }},
      {"as_sym_bools", [](const At& v) -> Argument { return BoolsArgument{v.list(bool_item)}; }},
      {"as_string", [](const At& v) -> Argument { return StringArgument{v.text()}; }},
      {"as_scalar_type", [](const At& v) -> Argument { return ScalarType{v.integer()}; }},
      {"as_memory_format",
       [](const At& v) -> Argument { return MemoryFormatArgument{v.integer()}; }},
      {"as_layout", [](const At& v) -> Argument { return LayoutArgument{v.integer()}; }},
      {"as_device", [](const At& v) -> Argument { return DeviceArgument{v["type"].text()}; }},
      {"as_graph", [](const At& v) -> Argument {
         return GraphArgument{v["name"].text(), std::make_shared<const Graph>(graph(v["graph"]))};
       }}};
  return readers;
}

Argument argument(const At& at) {
  const auto [tag, value] = at.alternative();
  const auto it = argument_readers().find(tag);
  if (it == argument_readers().end()) return OtherArgument{tag};
  return it->second(value);
}

/// nn_module_stack is "key,path,type;..." from the outside in; a path is "L['self'].model.norm".
std::string innermost_module(std::string_view stack) {
  const std::string_view last = stack.substr(stack.rfind(';') + 1);
  const size_t comma = last.find(',');
  if (comma == last.npos) return {};
  std::string_view path = last.substr(comma + 1);
  path = path.substr(0, path.find(','));
  constexpr std::string_view kSelf = "L['self']";
  if (path.starts_with(kSelf)) path.remove_prefix(std::min(path.size(), kSelf.size() + 1));
  return std::string(path);
}

/// The class of the first entry, whose path is empty: "key,,package.module.Class".
std::string outermost_class(std::string_view stack) {
  const std::string_view first = stack.substr(0, stack.find(';'));
  const size_t comma = first.find(',');
  if (comma == first.npos) return {};
  const size_t second = first.find(',', comma + 1);
  if (second == first.npos) return {};
  const std::string_view type = first.substr(second + 1);
  return std::string(type.substr(type.rfind('.') + 1));
}

/// The line of a stack trace that says where its innermost call stands.
std::string last_place(std::string_view trace) {
  const size_t at = trace.rfind("File \"");
  if (at == trace.npos) return {};
  return std::string(trace.substr(at, trace.find('\n', at) - at));
}

NamedArgument named_argument(const At& at) {
  NamedArgument out{at["name"].text(), argument(at["arg"]), false};
  if (const auto kind = at.find("kind")) out.positional = kind->integer() == 1;
  return out;
}

Node node(const At& at) {
  Node out;
  out.target = at["target"].text();
  out.inputs = at["inputs"].list(named_argument);
  out.outputs = at["outputs"].list(argument);
  if (const auto name = at.find("name")) out.name = name->text();
  const At metadata = at["metadata"];
  if (const auto stack = metadata.find("nn_module_stack")) {
    out.module_path = innermost_module(stack->text());
    out.root_class = outermost_class(stack->text());
  }
  if (const auto trace = metadata.find("stack_trace")) out.source_line = last_place(trace->text());
  return out;
}

template <class T, class F>
std::variant<T, Expression> symbolic(const At& at, const char* constant, F&& read) {
  const auto [tag, value] = at.alternative();
  if (tag == "as_expr") return expression(value);
  if (tag == constant) return T{read(value)};
  at.corrupt("expected as_expr or {}, found '{}'", constant, tag);
}

Graph graph(const At& at) {
  Graph out;
  out.inputs = at["inputs"].list(argument);
  out.outputs = at["outputs"].list(argument);
  out.nodes = at["nodes"].list(node);
  at["tensor_values"].each_entry(
      [&](const std::string& name, const At& v) { out.tensors.emplace(name, tensor_meta(v)); });
  at["sym_int_values"].each_entry(
      [&](const std::string& name, const At& v) { out.ints.emplace(name, size(v)); });
  at["sym_bool_values"].each_entry([&](const std::string& name, const At& v) {
    out.bools.emplace(name, symbolic<bool>(v, "as_bool", [](const At& e) { return e.boolean(); }));
  });
  if (const auto floats = at.find("sym_float_values")) {
    floats->each_entry([&](const std::string& name, const At& v) {
      out.floats.emplace(name,
                         symbolic<double>(v, "as_float", [](const At& e) { return e.real(); }));
    });
  }
  return out;
}

InputSpec input_spec(const At& at) {
  const auto [tag, value] = at.alternative();
  using Kind = InputSpec::Kind;
  if (tag == "user_input") return {Kind::kUser, argument(value["arg"]), {}};
  if (tag == "constant_input")
    return {Kind::kConstant, argument(value["value"]), value["name"].text()};
  if (tag == "parameter") {
    return {Kind::kParameter, TensorArgument{tensor_name(value["arg"])},
            value["parameter_name"].text()};
  }
  if (tag == "buffer") {
    return {Kind::kBuffer, TensorArgument{tensor_name(value["arg"])}, value["buffer_name"].text(),
            value["persistent"].boolean()};
  }
  if (tag == "tensor_constant") {
    return {Kind::kTensorConstant, TensorArgument{tensor_name(value["arg"])},
            value["tensor_constant_name"].text()};
  }
  return {Kind::kOther, OtherArgument{tag}, tag};
}

OutputSpec output_spec(const At& at) {
  const auto [tag, value] = at.alternative();
  using Kind = OutputSpec::Kind;
  const auto mutation = [&, &v = value](Kind kind, const char* key) {
    return OutputSpec{kind, TensorArgument{tensor_name(v["arg"])}, v[key].text()};
  };
  if (tag == "user_output") return {Kind::kUser, argument(value["arg"]), {}};
  if (tag == "buffer_mutation") return mutation(Kind::kBufferMutation, "buffer_name");
  if (tag == "user_input_mutation") return mutation(Kind::kInputMutation, "user_input_name");
  if (tag == "parameter_mutation") return mutation(Kind::kParameterMutation, "parameter_name");
  return {Kind::kOther, OtherArgument{tag}, tag};
}

void read_call_signature(const At& module_calls, ExportedProgram& out) {
  module_calls.each_element([&](const At& entry) {
    if (!entry["fqn"].text().empty()) return;
    const auto signature = entry.find("signature");
    if (!signature) return;
    out.in_spec = (*signature)["in_spec"].text();
    out.out_spec = (*signature)["out_spec"].text();
    if (const auto names = signature->find("forward_arg_names"))
      out.argument_names = names->list([](const At& e) { return e.text(); });
  });
}

Range range(const At& at) {
  Range out;
  if (const auto min = at.find("min_val")) out.min = min->integer();
  if (const auto max = at.find("max_val")) out.max = max->integer();
  return out;
}

void check_schema_version(std::string_view where, const At& version) {
  const int64_t major = version["major"].integer();
  if (major == 8) return;
  fail(ErrorKind::kUnsupported,
       "[pt2] '{}': schema version {}, expected 8 (torch 2.8 and newer): save the program again "
       "with a newer torch",
       where, major);
}

}  // namespace

std::optional<DType> find_dtype(ScalarType type) {
  for (const ScalarTypeRow& row : kScalarTypes) {
    if (row.number == type.number) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> find_complex_part(ScalarType type) {
  const std::string name = torch_name(type);
  if (name == "complex32") return DType::kF16;
  if (name == "complex64") return DType::kF32;
  if (name == "complex128") return DType::kF64;
  return std::nullopt;
}

std::string torch_name(ScalarType type) {
  for (const ScalarTypeRow& row : kScalarTypes) {
    if (row.number == type.number) return std::string(row.name);
  }
  return "ScalarType " + std::to_string(type.number);
}

std::string tag_of(const Argument& argument) {
  static constexpr std::array<std::string_view, std::variant_size_v<Argument>> kTags = {
      "as_none",   "as_tensor", "as_tensors", "as_int",      "as_ints",        "as_float",
      "as_floats", "as_bool",   "as_bools",   "as_string",   "as_scalar_type", "as_memory_format",
      "as_layout", "as_device", "as_graph",   "another kind"};
  if (const auto* other = std::get_if<OtherArgument>(&argument)) return other->tag;
  return std::string(kTags[argument.index()]);
}

ExportedProgram read_program(std::string_view where, std::string_view json) {
  const Json document = parse_json("pt2", where, json);
  const At at(where, document);
  check_schema_version(where, at["schema_version"]);
  ExportedProgram out;
  const At module = at["graph_module"];
  out.graph = graph(module["graph"]);
  out.inputs = module["signature"]["input_specs"].list(input_spec);
  out.outputs = module["signature"]["output_specs"].list(output_spec);
  read_call_signature(module["module_call_graph"], out);
  at["range_constraints"].each_entry(
      [&](const std::string& symbol, const At& v) { out.ranges.emplace(symbol, range(v)); });
  if (const auto version = at.find("torch_version")) out.torch_version = version->text();
  for (const Node& n : out.graph.nodes) {
    if (out.module_class.empty()) out.module_class = n.root_class;
  }
  return out;
}

std::map<std::string, Payload> read_payloads(std::string_view where, std::string_view json) {
  const Json document = parse_json("pt2", where, json);
  std::map<std::string, Payload> out;
  At(where, document)["config"].each_entry([&](const std::string& name, const At& entry) {
    Payload payload;
    payload.record = entry["path_name"].text();
    payload.pickled = entry["use_pickle"].boolean();
    if (!payload.pickled) payload.meta = tensor_meta(entry["tensor_meta"]);
    out.emplace(name, std::move(payload));
  });
  return out;
}

}  // namespace tranship::pt2

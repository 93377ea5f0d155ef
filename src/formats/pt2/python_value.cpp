#include "formats/pt2/python_value.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace tranship::pt2 {
namespace {

using Kind = PythonValue::Kind;

PythonValue named(Kind kind, std::string type, PythonValue::Fields fields) {
  PythonValue value;
  value.kind = kind;
  value.text = std::move(type);
  for (auto& [name, item] : fields) {
    value.names.push_back(std::move(name));
    value.items.push_back(std::move(item));
  }
  return value;
}

PythonValue sequence(Kind kind, std::vector<PythonValue> items) {
  PythonValue value;
  value.kind = kind;
  value.items = std::move(items);
  return value;
}

// ---- tree specs: {type, context, children_spec}; a leaf has none of them. A context is JSON
// within JSON.

Json leaf() { return {{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}}; }

Json node(std::string_view type, const Json& context, Json children) {
  return {{"type", type},
          {"context", to_python_json_line(context)},
          {"children_spec", std::move(children)}};
}

/// The attributes of an object, with a mark in the place of each tensor.
Json state_of(const PythonValue& value, int64_t& num_tensors) {
  switch (value.kind) {
    case Kind::kNone:
      return nullptr;
    case Kind::kBool:
      return value.flag;
    case Kind::kInt:
      return value.number;
    case Kind::kDType:
      return {{"_t", "dtype"}, {"n", torch_name(value.dtype)}};
    case Kind::kDevice:
      return {{"_t", "device"}, {"s", "cpu"}};
    case Kind::kTensor:
      return {{"_t", "tensor"}, {"i", num_tensors++}};
    case Kind::kList: {
      Json list = Json::array();
      for (const PythonValue& item : value.items) list.push_back(state_of(item, num_tensors));
      return list;
    }
    case Kind::kNumbered: {
      Json pairs = Json::array();
      for (size_t i = 0; i < value.items.size(); ++i)
        pairs.push_back(Json::array({i, state_of(value.items[i], num_tensors)}));
      return {{"_t", "items"}, {"v", std::move(pairs)}};
    }
    case Kind::kObject: {
      Json state = Json::object();
      for (size_t i = 0; i < value.items.size(); ++i)
        state[value.names[i]] = state_of(value.items[i], num_tensors);
      return {{"_t", "obj"}, {"p", value.text}, {"s", std::move(state)}};
    }
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kOutput:
      break;
  }
  fail(ErrorKind::kInternal, "[pt2] an object holds a value that it cannot: a bug in tranship");
}

Json object_spec(const PythonValue& value) {
  int64_t num_tensors = 0;
  const Json context = state_of(value, num_tensors);
  Json children = Json::array();
  for (int64_t i = 0; i < num_tensors; ++i) children.push_back(leaf());
  return node(value.text, context, std::move(children));
}

Json spec(const PythonValue& value) {
  if (value.kind == Kind::kObject) return object_spec(value);
  Json children = Json::array();
  for (const PythonValue& item : value.items) children.push_back(spec(item));
  switch (value.kind) {
    case Kind::kTuple:
      return node("builtins.tuple", nullptr, std::move(children));
    case Kind::kList:
      return node("builtins.list", nullptr, std::move(children));
    case Kind::kDict:
      return node("builtins.dict", value.names, std::move(children));
    case Kind::kOutput: {
      std::string type = value.text;
      std::ranges::replace(type, ':', '.');
      return node(type, value.names, std::move(children));
    }
    default:
      return leaf();
  }
}

/// path: the name so far, or empty.
void add_leaves(const PythonValue& value, const std::string& path, std::vector<Leaf>& out) {
  if (value.kind == Kind::kTensor) {
    out.push_back({value.text, path});
    return;
  }
  const std::string prefix = path.empty() ? "" : path + "_";
  if (value.kind == Kind::kObject) {  // its tensors are numbered through
    std::vector<Leaf> inside;
    for (const PythonValue& item : value.items) add_leaves(item, "", inside);
    for (size_t i = 0; i < inside.size(); ++i)
      out.push_back({std::move(inside[i].port), prefix + std::to_string(i)});
    return;
  }
  for (size_t i = 0; i < value.items.size(); ++i)
    add_leaves(value.items[i], prefix + (value.names.empty() ? std::to_string(i) : value.names[i]),
               out);
}

}  // namespace

PythonValue PythonValue::of(bool value) {
  PythonValue out;
  out.kind = Kind::kBool;
  out.flag = value;
  return out;
}

PythonValue PythonValue::of(int64_t value) {
  PythonValue out;
  out.kind = Kind::kInt;
  out.number = value;
  return out;
}

PythonValue PythonValue::of(DType value) {
  PythonValue out;
  out.kind = Kind::kDType;
  out.dtype = value;
  return out;
}

PythonValue PythonValue::cpu() {
  PythonValue out;
  out.kind = Kind::kDevice;
  return out;
}

PythonValue PythonValue::tensor(std::string port) {
  PythonValue out;
  out.kind = Kind::kTensor;
  out.text = std::move(port);
  return out;
}

PythonValue PythonValue::tuple(std::vector<PythonValue> items) {
  return sequence(Kind::kTuple, std::move(items));
}

PythonValue PythonValue::list(std::vector<PythonValue> items) {
  return sequence(Kind::kList, std::move(items));
}

PythonValue PythonValue::dict(Fields fields) { return named(Kind::kDict, "", std::move(fields)); }

PythonValue PythonValue::numbered(std::vector<PythonValue> items) {
  return sequence(Kind::kNumbered, std::move(items));
}

PythonValue PythonValue::object(std::string type, Fields attributes) {
  return named(Kind::kObject, std::move(type), std::move(attributes));
}

PythonValue PythonValue::output(std::string type, Fields fields) {
  return named(Kind::kOutput, std::move(type), std::move(fields));
}

std::vector<Leaf> leaves(const PythonValue& value) {
  std::vector<Leaf> out;
  add_leaves(value, "", out);
  return out;
}

std::string tree_spec(const PythonValue& value) {
  Json document = Json::array();
  document.push_back(1);  // the protocol
  document.push_back(spec(value));
  return to_python_json_line(document);
}

}  // namespace tranship::pt2

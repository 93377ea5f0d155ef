#include "formats/onnx/emitter.h"

#include "base/bytes.h"
#include "base/error.h"
#include "onnx-ml.pb.h"

namespace tranship::onnx {

int32_t onnx_dtype(DType dtype) {
  using T = ::onnx::TensorProto;
  switch (dtype) {
    case DType::kF64:
      return T::DOUBLE;
    case DType::kF32:
      return T::FLOAT;
    case DType::kF16:
      return T::FLOAT16;
    case DType::kBF16:
      return T::BFLOAT16;
    case DType::kF8E4M3:
      return T::FLOAT8E4M3FN;
    case DType::kF8E5M2:
      return T::FLOAT8E5M2;
    case DType::kI64:
      return T::INT64;
    case DType::kI32:
      return T::INT32;
    case DType::kI16:
      return T::INT16;
    case DType::kI8:
      return T::INT8;
    case DType::kU64:
      return T::UINT64;
    case DType::kU32:
      return T::UINT32;
    case DType::kU16:
      return T::UINT16;
    case DType::kU8:
      return T::UINT8;
    case DType::kBool:
      return T::BOOL;
  }
  return T::UNDEFINED;
}

std::string Emitter::unique(const std::string& wanted) {
  std::set<std::string>& names = root().names_;
  std::string name = wanted;
  for (int i = 2; !names.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

::onnx::NodeProto* Emitter::raw_node(std::string_view op_type, std::string_view scope) {
  ::onnx::NodeProto* node = graph_.add_node();
  node->set_op_type(std::string(op_type));
  node->set_name(unique(scope.empty() ? std::string(op_type)
                                      : std::string(scope) + "/" + std::string(op_type)));
  return node;
}

namespace {

/// What makes two nodes equal.
std::string key_of(std::string_view op_type, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes) {
  std::string key(op_type);
  for (const std::string& input : inputs) key += "|" + input;
  for (const Attribute& a : attributes) {
    key += "|" + a.name + "=" + a.text;
    for (const int64_t i : a.ints) key += "," + std::to_string(i);
    for (const float f : a.floats) key += fmt::format(",{}", f);
  }
  return key;
}

void fill(const Attribute& from, ::onnx::AttributeProto* to) {
  to->set_name(from.name);
  if (!from.text.empty()) {
    to->set_type(::onnx::AttributeProto::STRING);
    to->set_s(from.text);
  } else if (!from.floats.empty()) {
    to->set_type(::onnx::AttributeProto::FLOAT);
    to->set_f(from.floats[0]);
  } else if (from.is_list) {
    to->set_type(::onnx::AttributeProto::INTS);
    for (const int64_t i : from.ints) to->add_ints(i);
  } else {
    to->set_type(::onnx::AttributeProto::INT);
    to->set_i(from.ints[0]);
  }
}

}  // namespace

std::string Emitter::node(std::string_view op_type, std::vector<std::string> inputs,
                          const std::vector<Attribute>& attributes, std::string_view scope,
                          const std::string& wanted) {
  // Absent at the end is left out: ONNX Runtime 1.31 crashes on a LayerNormalization with an empty
  // bias.
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  std::string key = key_of(op_type, inputs, attributes);
  if (const auto it = made_.find(key); it != made_.end()) {
    if (!wanted.empty()) identity(it->second, wanted);
    return wanted.empty() ? it->second : wanted;
  }
  ::onnx::NodeProto* node = raw_node(op_type, scope);
  for (const std::string& input : inputs) node->add_input(input);
  for (const Attribute& a : attributes) fill(a, node->add_attribute());
  const std::string name = wanted.empty() ? unique(node->name() + "_output") : wanted;
  node->add_output(name);
  made_.emplace(std::move(key), name);
  return name;
}

std::vector<std::string> Emitter::nodes(std::string_view op_type, std::vector<std::string> inputs,
                                        const std::vector<Attribute>& attributes,
                                        std::string_view scope,
                                        const std::vector<std::optional<std::string>>& wanted,
                                        std::string_view domain) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  ::onnx::NodeProto* node = raw_node(op_type, scope);
  node->set_domain(std::string(domain));
  for (const std::string& input : inputs) node->add_input(input);
  for (const Attribute& a : attributes) fill(a, node->add_attribute());
  std::vector<std::string> names;
  for (const std::optional<std::string>& name : wanted) {
    names.push_back(!name ? "" : name->empty() ? unique(node->name() + "_output") : *name);
    node->add_output(names.back());
  }
  return names;
}

std::vector<std::string> Emitter::contrib(std::string_view op_type, std::vector<std::string> inputs,
                                          const std::vector<Attribute>& attributes,
                                          std::string_view scope,
                                          const std::vector<std::optional<std::string>>& wanted) {
  return nodes(op_type, std::move(inputs), attributes, scope, wanted, kContribDomain);
}

void Emitter::identity(const std::string& from, const std::string& to) {
  ::onnx::NodeProto* node = raw_node("Identity", to);
  node->add_input(from);
  node->add_output(to);
}

std::string Emitter::constant(const Tensor& value) {
  if (outer_ != nullptr) return root().constant(value);
  const std::string bytes(as_text(value.bytes()));
  std::string key = std::string(name(value.dtype())) + ir::Shape::of(value.shape()).text() + bytes;
  if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
  const std::string name = unique("constant_" + std::to_string(constants_.size()));
  ::onnx::TensorProto* tensor = graph_.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx_dtype(value.dtype()));
  for (const int64_t size : value.shape()) tensor->add_dims(size);
  tensor->set_raw_data(bytes);
  constants_.emplace(std::move(key), name);
  return name;
}

std::string Emitter::ints(const std::vector<int64_t>& values) {
  return constant(Tensor::of(values, {static_cast<int64_t>(values.size())}));
}

std::string Emitter::scalar(DType dtype, double value) {
  Tensor t(dtype, {});
  t.set(0, value);
  return constant(t);
}

std::string Emitter::factor(const ir::Dim::Factor& f) {
  using Kind = ir::Dim::Factor::Kind;
  if (f.kind == Kind::kSymbol) {
    const auto it = origins_.find(f.symbol);
    if (it == origins_.end() && outer_ != nullptr) return outer_->size(ir::Dim::symbol(f.symbol));
    if (it == origins_.end()) {
      fail(ErrorKind::kUnsupported,
           "[onnx] the size '{}' is not an axis of any input: a graph cannot know it", f.symbol);
    }
    if (it->second.axis == SymbolOrigin::kValue)
      return node("Unsqueeze", {it->second.value, ints({0})}, {}, f.symbol);
    return node(
        "Shape", {it->second.value},
        {Attribute::of("start", it->second.axis), Attribute::of("end", it->second.axis + 1)},
        f.symbol);
  }
  const std::string a = size(f.arguments[0]), b = size(f.arguments[1]);
  switch (f.kind) {
    case Kind::kFloorDiv:
      return node("Div", {a, b});  // sizes are not negative: rounding down is rounding to zero
    case Kind::kMod:
      return node("Mod", {a, b});
    case Kind::kMin:
      return node("Min", {a, b});
    case Kind::kMax:
      return node("Max", {a, b});
    case Kind::kSymbol:
      break;
  }
  check(false, "factor: a symbol");
  return {};
}

std::string Emitter::product(const ir::Dim::Term& term) {
  std::string result;
  for (const ir::Dim::Factor& f : term.factors) {
    const std::string next = factor(f);
    result = result.empty() ? next : node("Mul", {result, next});
  }
  if (result.empty()) return ints({term.coefficient});
  return term.coefficient == 1 ? result : node("Mul", {result, ints({term.coefficient})});
}

Emitter& Emitter::home(const ir::Dim& dim) {
  if (outer_ == nullptr) return *this;
  for (const std::string& symbol : dim.symbols()) {
    if (origins_.contains(symbol)) return *this;
  }
  return outer_->home(dim);
}

std::string Emitter::size(const ir::Dim& dim) {
  if (dim.is_static()) return ints({dim.value()});
  if (Emitter& maker = home(dim); &maker != this) return maker.size(dim);
  std::string sum;
  for (const ir::Dim::Term& t : dim.terms())
    sum = sum.empty() ? product(t) : node("Add", {sum, product(t)});
  return sum;
}

std::string Emitter::scalar_size(const ir::Dim& dim) {
  if (dim.is_static()) return constant(Tensor::of(std::vector<int64_t>{dim.value()}, {}));
  if (Emitter& maker = home(dim); &maker != this) return maker.scalar_size(dim);
  return node("Squeeze", {size(dim), ints({0})});
}

std::string Emitter::shape(const std::vector<ir::Dim>& dims) {
  std::vector<std::string> parts;
  std::vector<int64_t> run;  // static sizes in a row
  const auto close_run = [&] {
    if (!run.empty()) parts.push_back(ints(run));
    run.clear();
  };
  for (const ir::Dim& d : dims) {
    if (d.is_static()) {
      run.push_back(d.value());
    } else {
      close_run();
      parts.push_back(size(d));
    }
  }
  close_run();
  if (parts.empty()) return ints({});
  if (parts.size() == 1) return parts[0];
  // The innermost graph that a part is made in.
  Emitter* maker = &root();
  for (const ir::Dim& d : dims) {
    Emitter& other = home(d);
    if (other.depth() > maker->depth()) maker = &other;
  }
  return maker->node("Concat", parts, {Attribute::of("axis", 0)});
}

}  // namespace tranship::onnx

#include "formats/pt2/tensor_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace tranship::pt2 {

using ir::Dim;

int scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return 1;
    case DType::kI8:
      return 2;
    case DType::kI16:
      return 3;
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 5;
    case DType::kF16:
      return 6;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    case DType::kBool:
      return 12;
    case DType::kBF16:
      return 13;
    case DType::kU16:
      return 28;
    case DType::kF8E4M3:
      return 29;
    case DType::kF8E5M2:
      return 30;
    case DType::kU32:
      return 34;
    case DType::kU64:
      return 35;
  }
  return 0;
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  return strides;
}

std::vector<Dim> dense_strides(const ir::Shape& shape) {
  std::vector<Dim> strides(shape.dims.size(), 1);
  for (size_t i = shape.dims.size(); i-- > 1;) {
    const Dim& size = shape.dims[i];
    strides[i - 1] = size == Dim(0) ? strides[i] : strides[i] * size;
  }
  return strides;
}

std::string json_text(std::string_view text) { return Json(text).dump(); }

SymbolTable::SymbolTable(const ir::Graph& graph, std::map<std::string, int64_t> examples)
    : examples_(std::move(examples)) {
  for (const ir::Node* node : graph.inputs()) {
    for (const Dim& dim : ir::as<ir::Input>(*node->op).shape.dims) {
      for (const std::string& symbol : dim.symbols()) {
        const auto range = graph.symbols().find(symbol);
        add(symbol, 's', range == graph.symbols().end() ? ir::Range() : range->second);
      }
    }
  }
  add_born(graph);
}

void SymbolTable::add_born(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    const auto symbol = ir::born_symbol(*node.op);
    if (symbol) {
      examples_.erase(*symbol);
      add(*symbol, 'u', {.min = 0, .max = {}});
    }
    for (const auto& sub : node.graphs) add_born(*sub);
  }
}

/// PyTorch tells sizes born from data ('u') by their names.
void SymbolTable::add(const std::string& symbol, char prefix, const ir::Range& range) {
  if (!ranges_.emplace(symbol, range).second) return;
  const auto number =
      std::ranges::count_if(names_, [&](const auto& entry) { return entry.second[0] == prefix; });
  names_.emplace_back(symbol, fmt::format("{}{}", prefix, number));
}

const std::string& SymbolTable::name(const std::string& symbol) const {
  const auto it = std::ranges::find(names_, symbol, &std::pair<std::string, std::string>::first);
  check(it != names_.end(), "pt2: a size of no input: " + symbol);
  return it->second;
}

std::string SymbolTable::factor(const Dim::Factor& factor) const {
  using Kind = Dim::Factor::Kind;
  const auto call = [&](std::string_view function) {
    return fmt::format("{}({}, {})", function, expression(factor.arguments[0]),
                       expression(factor.arguments[1]));
  };
  switch (factor.kind) {
    case Kind::kSymbol:
      return fmt::format("Symbol('{}', {}integer=True)", name(factor.symbol),
                         is_born(factor.symbol) ? "" : "positive=True, ");
    case Kind::kFloorDiv:
      return call("FloorDiv");
    case Kind::kMod:
      return call("Mod");
    case Kind::kMin:
      return call("Min");
    case Kind::kMax:
      return call("Max");
  }
  return {};
}

std::string SymbolTable::expression(const Dim& dim) const {
  std::vector<std::string> sum;
  for (const Dim::Term& term : dim.terms()) {
    std::vector<std::string> product;
    if (term.coefficient != 1 || term.factors.empty())
      product.push_back(fmt::format("Integer({})", term.coefficient));
    for (const Dim::Factor& f : term.factors) product.push_back(factor(f));
    sum.push_back(product.size() == 1 ? product[0]
                                      : fmt::format("Mul({})", fmt::join(product, ", ")));
  }
  if (sum.empty()) return "Integer(0)";
  return sum.size() == 1 ? sum[0] : fmt::format("Add({})", fmt::join(sum, ", "));
}

std::string SymbolTable::size(const Dim& dim) const {
  if (dim.is_static()) return fmt::format(R"({{"as_int":{}}})", dim.value());
  const std::set<std::string> symbols = dim.symbols();
  const bool known =
      std::ranges::none_of(symbols, [&](const std::string& symbol) { return is_born(symbol); });
  const std::string hint = known ? fmt::format(R"({{"as_int":{}}})", example(dim)) : "null";
  return fmt::format(R"({{"as_expr":{{"expr_str":{},"hint":{}}}}})", json_text(expression(dim)),
                     hint);
}

std::string SymbolTable::range_constraints() const {
  std::string text;
  for (const auto& [symbol, name] : names_) {
    const ir::Range& range = ranges_.at(symbol);
    text += fmt::format(R"({}"{}":{{"min_val":{},"max_val":{}}})", text.empty() ? "" : ",", name,
                        range.min, range.max ? std::to_string(*range.max) : "null");
  }
  return "{" + text + "}";
}

namespace {

std::string meta(DType dtype, const std::string& sizes, const std::string& strides,
                 bool requires_grad) {
  return fmt::format(
      R"({{"dtype":{},"sizes":[{}],"requires_grad":{},"device":{{"type":"cpu","index":null}},)"
      R"("strides":[{}],"storage_offset":{{"as_int":0}},"layout":7}})",
      scalar_type(dtype), sizes, requires_grad, strides);
}

std::string sizes_text(const std::vector<Dim>& dims, const SymbolTable& symbols) {
  std::string text;
  for (const Dim& dim : dims) text += (text.empty() ? "" : ",") + symbols.size(dim);
  return text;
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes)
    text += fmt::format(R"({}{{"as_int":{}}})", text.empty() ? "" : ",", size);
  return text;
}

}  // namespace

std::string tensor_meta(const ir::Type& type, const SymbolTable& symbols, bool requires_grad) {
  return meta(type.dtype, sizes_text(type.shape.dims, symbols),
              sizes_text(dense_strides(type.shape), symbols), requires_grad);
}

std::string tensor_meta(DType dtype, const std::vector<int64_t>& sizes, bool requires_grad) {
  return meta(dtype, sizes_text(sizes), sizes_text(dense_strides(sizes)), requires_grad);
}

}  // namespace tranship::pt2

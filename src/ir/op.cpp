#include "ir/op.h"

#include "base/error.h"
#include "ir/attributes.h"

namespace tranship::ir {
namespace {

constexpr std::array<std::string_view, kNumOpKinds> kNames = {"Input",        "Param",
                                                              "Constant",     "Full",
                                                              "Iota",         "DimToTensor",
                                                              "Cast",         "Unary",
                                                              "Binary",       "Compare",
                                                              "Where",        "Reduce",
                                                              "ArgMax",       "ArgMin",
                                                              "TopK",         "CumSum",
                                                              "Softmax",      "MatMul",
                                                              "Conv",         "ConvTranspose",
                                                              "Pool",         "Resize",
                                                              "Reshape",      "Transpose",
                                                              "Expand",       "Unsqueeze",
                                                              "Squeeze",      "Concat",
                                                              "Slice",        "Pad",
                                                              "Gather",       "GatherElements",
                                                              "GatherNd",     "ScatterElements",
                                                              "ScatterNd",    "NonZero",
                                                              "Item",         "If",
                                                              "Loop",         "Scan",
                                                              "Opaque",       "Linear",
                                                              "Embedding",    "RmsNorm",
                                                              "LayerNorm",    "Activation",
                                                              "Rope",         "Attention",
                                                              "CacheAppend",  "Moe",
                                                              "SelectiveScan"};

}  // namespace

std::string_view name(OpKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<OpKind> find_op_kind(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

bool is_composite(OpKind kind) { return kind >= OpKind::kLinear; }

void fail_kind(OpKind expected, OpKind found) {
  fail(ErrorKind::kInternal, "[ir] a node is read as {} but is {}: this is a bug in tranship",
       name(expected), name(found));
}

std::string text(const Op& op) {
  std::string attributes;
  visit(op, [&]<class T>(const T& typed) {
    std::apply(
        [&](const auto&... f) {
          ((attributes += (attributes.empty() ? "" : ", ") + std::string(f.name) + "=" +
                          format_attribute(typed.*f.member)),
           ...);
        },
        T::fields());
  });
  return std::string(name(op.kind)) + (attributes.empty() ? "" : " {" + attributes + "}");
}

namespace {

template <class T>
void substitute_attribute(T&, const std::map<std::string, Dim>&) {}
void substitute_attribute(Dim& value, const std::map<std::string, Dim>& symbols) {
  value = value.substitute(symbols);
}
void substitute_attribute(Shape& value, const std::map<std::string, Dim>& symbols) {
  for (Dim& d : value.dims) d = d.substitute(symbols);
}

template <class T>
void collect_symbols(const T&, std::set<std::string>&) {}
void collect_symbols(const Dim& value, std::set<std::string>& all) { all.merge(value.symbols()); }
void collect_symbols(const Shape& value, std::set<std::string>& all) {
  for (const Dim& d : value.dims) all.merge(d.symbols());
}

}  // namespace

OpPtr substitute(const Op& op, const std::map<std::string, Dim>& symbols) {
  return visit(op, [&]<class T>(const T& typed) -> OpPtr {
    auto changed = std::make_shared<T>(typed);
    std::apply(
        [&](const auto&... f) { (substitute_attribute((*changed).*f.member, symbols), ...); },
        T::fields());
    return changed;
  });
}

std::set<std::string> symbols(const Op& op) {
  return visit(op, [&]<class T>(const T& typed) {
    std::set<std::string> all;
    std::apply([&](const auto&... f) { (collect_symbols(typed.*f.member, all), ...); },
               T::fields());
    return all;
  });
}

std::optional<std::string> born_symbol(const Op& op) {
  if (op.kind == OpKind::kNonZero) return as<NonZero>(op).count.as_symbol();
  if (op.kind == OpKind::kItem) return as<Item>(op).value.as_symbol();
  return std::nullopt;
}

bool same(const Op& a, const Op& b) { return a.kind == b.kind && text(a) == text(b); }

}  // namespace tranship::ir

#include "ir/op.h"

#include "base/error.h"
#include "ir/attributes.h"

namespace tranship::ir {
namespace {

constexpr std::array<std::string_view, kNumOpKinds> kNames = {
    "Input",     "Param",      "Constant",  "Full",           "Iota",      "DimToTensor", "Cast",
    "Unary",     "Binary",     "Compare",   "Where",          "Reduce",    "ArgMax",      "CumSum",
    "Softmax",   "MatMul",     "Reshape",   "Transpose",      "Expand",    "Unsqueeze",   "Squeeze",
    "Concat",    "Slice",      "Gather",    "GatherElements", "If",        "Loop",        "Scan",
    "Opaque",    "Linear",     "Embedding", "RmsNorm",        "LayerNorm", "Activation",  "Rope",
    "Attention", "CacheAppend"};

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

bool same(const Op& a, const Op& b) { return a.kind == b.kind && text(a) == text(b); }

}  // namespace tranship::ir

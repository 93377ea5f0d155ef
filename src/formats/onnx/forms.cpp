// The forms that a value may live in.
#include "base/error.h"
#include "formats/onnx/lowering.h"

namespace tranship::onnx {

using ir::as;
using ir::Dim;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

std::string Lowering::wanted(ValueId id) const {
  const auto it = wanted_.find(id);
  return it == wanted_.end() ? std::string() : it->second;
}

bool Lowering::can_be_flat(ValueId id) const {
  return shape(id).rank() >= 2 && shape(id).back().is_static();
}

void Lowering::make_pending(ValueId id) {
  const Node* node = std::exchange(form(id).pending, nullptr);
  if (node == nullptr) return;
  if (node->kind() == OpKind::kBinary) return say_rows(*node, "Add");
  say(*node, "Transpose", {full(node->inputs[0])}, {Attribute::of("perm", kHeadsAndTokens)});
}

std::string Lowering::full(ValueId id) {
  if (id == ir::kAbsent) return {};
  if (!form(id).is_made()) make_pending(id);
  if (!form(id).full.empty()) return form(id).full;
  if (form(id).reshaped != ir::kAbsent && !form(id).is_made()) {
    const ValueId heads = wanted(id).empty() ? heads_of(id) : ir::kAbsent;
    const ValueId from = form(id).reshaped;
    return form(id).full =
               heads != ir::kAbsent ? merged(heads) : reshape(from, shape(id), wanted(id));
  }
  if (!form(id).flat.empty())
    return form(id).full = reshape_from(form(id).flat, {}, shape(id), wanted(id));
  check(!form(id).merged.empty(), "onnx: a value is used before it is made");
  const std::string tokens = by_tokens(id);
  return form(id).full = emit_.node("Transpose", {tokens}, {Attribute::of("perm", kHeadsAndTokens)},
                                    "", wanted(id));
}

std::string Lowering::flat(ValueId id) {
  if (!form(id).is_made()) make_pending(id);
  if (!form(id).flat.empty()) return form(id).flat;
  if (shape(id).rank() == 2) return form(id).flat = full(id);
  const Form& f = form(id);
  const bool is_pending =
      f.full.empty() && f.reshaped != ir::kAbsent && heads_of(id) == ir::kAbsent;
  const std::string from = is_pending ? any(f.reshaped) : full(id);
  return form(id).flat = emit_.node("Reshape", {from, emit_.ints({-1, shape(id).back().value()})});
}

std::string Lowering::any(ValueId id) {
  if (!form(id).is_made()) make_pending(id);
  const Form& f = form(id);
  return f.full.empty() && !f.flat.empty() ? f.flat : full(id);
}

std::string Lowering::by_tokens(ValueId id) {
  const Node* node = form(id).pending;
  if (node != nullptr && node->kind() == OpKind::kTranspose) return full(node->inputs[0]);
  const Shape& heads = shape(id);
  if (form(id).merged.empty())
    return emit_.node("Transpose", {full(id)}, {Attribute::of("perm", kHeadsAndTokens)});
  return emit_.node("Reshape", {form(id).merged, emit_.shape({0, 0, heads[1], heads[3]})});
}

std::string Lowering::merged(ValueId id) {
  if (!form(id).merged.empty()) return form(id).merged;
  const Dim width = shape(id)[1] * shape(id)[3];
  const Node* node = form(id).pending;
  if (node != nullptr && node->kind() == OpKind::kTranspose) {
    const ValueId from = form(node->inputs[0]).reshaped;
    if (from != ir::kAbsent && shape(from).rank() == 3 && shape(from)[2] == width)
      return form(id).merged = full(from);
  }
  const std::string tokens = by_tokens(id);
  return form(id).merged = emit_.node("Reshape", {tokens, emit_.shape({0, 0, width})});
}

ValueId Lowering::heads_of(ValueId id) {
  const ValueId tokens = form(id).reshaped;
  if (tokens == ir::kAbsent || !form(tokens).full.empty()) return ir::kAbsent;
  const Node* node = form(tokens).pending;
  if (node == nullptr || node->kind() != OpKind::kTranspose) return ir::kAbsent;
  const ValueId heads = node->inputs[0];
  const Shape &of = shape(heads), &to = shape(id);
  const bool merges = to.rank() == 3 && to[0] == of[0] && to[1] == of[2] && to[2] == of[1] * of[3];
  return merges && !form(heads).merged.empty() ? heads : ir::kAbsent;
}

std::string Lowering::reshape(ValueId from, const Shape& to, const std::string& name) {
  const std::string value = any(from);
  const bool is_flat = form(from).full.empty() && !form(from).flat.empty();
  return reshape_from(value, is_flat ? Shape() : shape(from), to, name);
}

/// from: the shape of `value`, as far as it is known to be the same axis by axis.
std::string Lowering::reshape_from(const std::string& value, const Shape& from, const Shape& to,
                                   const std::string& name) {
  std::vector<Dim> entries = to.dims;
  size_t open = 0, last_open = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].is_static()) continue;
    if (i < from.dims.size() && from.dims[i] == entries[i]) {
      entries[i] = 0;  // "as it was"
    } else {
      ++open;
      last_open = i;
    }
  }
  if (open > 0) entries[last_open] = -1;  // what is left
  return emit_.node("Reshape", {value, emit_.shape(entries)}, {}, "", name);
}

std::string Lowering::flat_name(const Node& n) const {
  return shape(n.outputs[0]).rank() == 2 ? wanted(n.outputs[0]) : std::string();
}

void Lowering::set_flat(ValueId id, const std::string& name) {
  form(id).flat = name;
  if (shape(id).rank() == 2) form(id).full = name;
}

void Lowering::set_rows(ValueId id, const std::string& name, bool is_flat) {
  is_flat ? set_flat(id, name) : void(form(id).full = name);
}

bool Lowering::goes_flat(const Node& n) {
  const Shape& out = shape(n.outputs[0]);
  if (!can_be_flat(n.outputs[0])) return false;
  bool any_flat = false;
  for (const ValueId id : n.inputs) {
    if (id == ir::kAbsent || shape(id).rank() <= 1) continue;
    if (!can_be_flat(id) || shape(id).rank() != out.rank()) return false;
    for (int64_t axis = 0; axis + 1 < out.rank(); ++axis) {
      if (!(shape(id)[axis] == out[axis])) return false;
    }
    if (!form(id).is_made()) make_pending(id);
    any_flat |= form(id).full.empty() && !form(id).flat.empty();
  }
  return any_flat;
}

}  // namespace tranship::onnx

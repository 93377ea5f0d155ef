// Attention, rotary positions and norms in the standard's own operators, which it has from opset 23
// on, and writes into slots, from 24 on.
#include "base/error.h"
#include "formats/onnx/attention_form.h"
#include "formats/onnx/cache_update.h"
#include "formats/onnx/lowering.h"

namespace tranship::onnx {

using ir::as;
using ir::Node;
using ir::Shape;
using ir::ValueId;

void Lowering::lower_attention(const Node& n) {
  switch (attention_form(graph_, n, target_)) {
    case AttentionForm::kGrouped:
      return lower_grouped_attention(n);
    case AttentionForm::kMultiHead:
      return lower_multi_head_attention(n);
    case AttentionForm::kStandard:
      return lower_standard_attention(n);
    case AttentionForm::kPrimitives:
      break;
  }
  check(false, "onnx: an attention was kept that no operator computes");
}

/// Broadcast over all queries and keys: ONNX Runtime wants these two axes whole.
std::string Lowering::whole_mask(const Node& n) {
  const ValueId mask = n.inputs.size() > 4 ? n.inputs[4] : ir::kAbsent;
  if (mask == ir::kAbsent) return {};
  const Shape& of = shape(mask);
  const ir::Dim queries = shape(n.inputs[0])[2], keys = shape(n.inputs[1])[2];
  if (of[-2] == queries && of[-1] == keys) return full(mask);
  return emit_.node("Expand", {full(mask), emit_.shape({1, 1, queries, keys})});
}

/// With queries, keys and values of tokens, as projections make them, where no value of heads is
/// there yet; keys that come from a cache with their heads first.
void Lowering::lower_standard_attention(const Node& n) {
  const auto& op = as<ir::Attention>(*n.op);
  const ValueId q = n.inputs[0], k = n.inputs[1], v = n.inputs[2];
  const std::string mask = whole_mask(n);
  std::vector<Attribute> attributes = {Attribute::of_float("scale", static_cast<float>(op.scale))};
  if (op.causal) attributes.push_back(Attribute::of("is_causal", 1));
  const bool of_tokens = shape(q)[1].is_static() && shape(k)[1].is_static() &&
                         form(k).full.empty() && form(v).full.empty();
  if (!of_tokens) {
    return say(n, "Attention", {full(q), full(k), full(v), mask}, attributes);
  }
  attributes.push_back(Attribute::of("q_num_heads", shape(q)[1].value()));
  attributes.push_back(Attribute::of("kv_num_heads", shape(k)[1].value()));
  const CacheUpdate keys =
      absorbed_.contains(k) ? cache_update(graph_, k) : CacheUpdate{.added = k};
  const CacheUpdate values =
      absorbed_.contains(v) ? cache_update(graph_, v) : CacheUpdate{.added = v};
  const bool grows = keys.past != ir::kAbsent;
  std::vector<std::optional<std::string>> wanted_names = {std::string()};
  if (grows) wanted_names.insert(wanted_names.end(), {wanted(k), wanted(v)});
  const std::vector<std::string> made =
      emit_.nodes("Attention",
                  {merged(q), merged(keys.added), merged(values.added), mask, full(keys.past),
                   full(values.past)},
                  attributes, n.name, wanted_names);
  form(n.outputs[0]).merged = made[0];
  if (!grows) return;
  form(k).full = made[1];
  form(v).full = made[2];
}

/// Tables of a row a token stand for positions; a table that all sequences share is spread.
void Lowering::lower_standard_rope(const Node& n) {
  const Shape &x = shape(n.inputs[0]), &table = shape(n.inputs[1]);
  const auto spread = [&](ValueId id) {
    if (table[0] == x[0]) return full(id);
    return emit_.node("Expand", {full(id), emit_.shape({x[0], 1, 1})});
  };
  std::vector<Attribute> attributes = {Attribute::of("num_heads", x[1].value())};
  const ir::Dim width = table[2] + table[2];
  if (!(width == x[3])) attributes.push_back(Attribute::of("rotary_embedding_dim", width.value()));
  form(n.outputs[0]).merged =
      emit_.node("RotaryEmbedding", {merged(n.inputs[0]), spread(n.inputs[1]), spread(n.inputs[2])},
                 attributes, n.name);
}

/// New tokens written into their slots: TensorScatter, which ONNX Runtime does in place if the
/// buffer that comes in is the one that goes out.
void Lowering::lower_slots(const Node& n, ValueId counter) {
  const std::string first = emit_.node("Reshape", {full(counter), emit_.ints({1})});
  const std::string firsts = emit_.node("Expand", {first, emit_.shape({shape(n.inputs[0])[0]})});
  say(n, "TensorScatter", {full(n.inputs[0]), full(n.inputs[2]), firsts},
      {Attribute::of("axis", 2)});
}

/// What hides rows that see nothing keeps heads as attention makes them.
void Lowering::lower_where(const Node& n) {
  const ValueId condition = n.inputs[0], x = n.inputs[1], other = n.inputs[2];
  const Shape& c = shape(condition);
  const bool of_rows = c.rank() == 4 && c[1] == ir::Dim(1) && c[3] == ir::Dim(1);
  const bool is_merged = form(x).full.empty() && !form(x).merged.empty();
  if (!of_rows || !is_merged || shape(other).rank() != 0 || !(shape(x) == shape(n.outputs[0])))
    return say(n, "Where", {full(condition), full(x), full(other)});
  const std::string rows = emit_.node("Squeeze", {full(condition), emit_.ints({1})});  // [B, S, 1]
  form(n.outputs[0]).merged = emit_.node("Where", {rows, merged(x), full(other)}, {}, n.name);
}

}  // namespace tranship::onnx

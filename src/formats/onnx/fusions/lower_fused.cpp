// Composites in ONNX Runtime's own operators (domain com.microsoft).
#include <limits>

#include "base/error.h"
#include "formats/onnx/fusions/grouped_attention.h"
#include "formats/onnx/lowering.h"
#include "ir/decompose.h"

namespace tranship::onnx {

using ir::as;
using ir::Dim;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

namespace {

Attribute to_dtype(DType dtype) { return Attribute::of("to", onnx_dtype(dtype)); }

std::vector<Attribute> norm_attributes(double eps) {
  return {Attribute::of_float("epsilon", static_cast<float>(eps))};
}

}  // namespace

bool Lowering::lower_skip_norm(const Node& n, std::string_view op_type, double eps) {
  const ValueId x = n.inputs[0], y = n.outputs[0];
  const Node* pending = form(x).is_made() ? nullptr : form(x).pending;
  if (pending == nullptr || pending->kind() != OpKind::kBinary || dtype(x) == DType::kF64)
    return false;
  const int64_t rank = shape(x).rank();
  const bool is_flat = rank > 3 || goes_flat(*pending);
  std::vector<std::string> inputs;
  for (const ValueId id : pending->inputs) inputs.push_back(is_flat ? flat(id) : full(id));
  for (size_t i = 1; i < n.inputs.size(); ++i) inputs.push_back(full(n.inputs[i]));
  const auto name_of = [&](ValueId id) { return is_flat && rank > 2 ? std::string() : wanted(id); };
  std::vector<std::optional<std::string>> results = {name_of(y)};
  const bool is_used = only_user(x) == nullptr;  // the sum itself
  if (is_used) results.insert(results.end(), {std::nullopt, std::nullopt, name_of(x)});
  const std::vector<std::string> made =
      emit_.contrib(op_type, inputs, norm_attributes(eps), n.name, results);
  set_rows(y, made[0], is_flat);
  if (is_used) {
    set_rows(x, made[3], is_flat);
    form(x).pending = nullptr;
  }
  return true;
}

void Lowering::lower_layer_norm(const Node& n) {
  const double eps = as<ir::LayerNorm>(*n.op).eps;
  if (lower_skip_norm(n, "SkipLayerNormalization", eps)) return;
  say_rows(n, "LayerNormalization",
           {Attribute::of("axis", -1), Attribute::of_float("epsilon", static_cast<float>(eps))});
}

void Lowering::lower_rms_norm(const Node& n) {
  const ValueId x = n.inputs[0], y = n.outputs[0];
  const double eps = as<ir::RmsNorm>(*n.op).eps;
  if (lower_skip_norm(n, "SkipSimplifiedLayerNormalization", eps)) return;
  const std::string weight = full(n.inputs[1]);
  const Node* pending = form(x).is_made() ? nullptr : form(x).pending;
  std::vector<Attribute> attributes = norm_attributes(eps);
  attributes.push_back(Attribute::of("axis", -1));
  attributes.push_back(Attribute::of("stash_type", 1));
  const std::string_view op_type =
      target_.fusions ? "SimplifiedLayerNormalization" : "RMSNormalization";
  const bool turns = pending != nullptr && pending->kind() == OpKind::kTranspose;
  const bool is_of_heads =
      shape(x).rank() == 4 && form(x).full.empty() && (turns || !form(x).merged.empty());
  if (!is_of_heads) return say_rows(n, op_type, attributes);
  const std::string normed = emit_.node(op_type, {by_tokens(x), weight}, attributes, n.name);
  form(y).merged = emit_.node("Reshape", {normed, emit_.shape({0, 0, shape(x)[1] * shape(x)[3]})});
}

/// Not where an operand is a matrix already, unless an output is made: a Gemm gives a matrix, which
/// ONNX Runtime copies to give it an output's shape (of logits that is as much memory again).
bool Lowering::stays_full(const Node& linear) {
  const ValueId x = linear.inputs[0], y = linear.outputs[0];
  if (target_.fusions != Provider::kCpu || dtype(y) != DType::kF32 || shape(y).rank() < 3)
    return false;
  if (!form(x).is_made()) make_pending(x);
  return !wanted(y).empty() || !form(x).full.empty() || form(x).flat.empty();
}

std::string Lowering::lower_product(const Node& linear) {
  return emit_.contrib("FusedMatMul", {full(linear.inputs[0]), full(linear.inputs[1])},
                       {Attribute::of("transB", 1)}, linear.name, {wanted(linear.outputs[0])})[0];
}

/// The tables have a row a token: that is what the positions count.
void Lowering::lower_rope(const Node& n) {
  const Shape &x = shape(n.inputs[0]), &table = shape(n.inputs[1]);
  const Dim half = table[2];
  const auto rows = [&](ValueId id) {
    return emit_.node("Reshape", {full(id), emit_.shape({-1, half})});
  };
  const bool is_shared = table[0] == Dim(1) && !(x[0] == Dim(1));  // by all sequences
  const Dim count = is_shared ? x[2] : x[0] * x[2];
  std::string positions = emit_.node(
      "Range",
      {emit_.scalar(DType::kI64, 0), emit_.scalar_size(count), emit_.scalar(DType::kI64, 1)});
  positions = is_shared ? emit_.node("Expand", {positions, emit_.shape({x[0], x[2]})})
                        : emit_.node("Reshape", {positions, emit_.shape({x[0], x[2]})});
  std::vector<Attribute> attributes;
  if (!(half + half == x[3])) {
    attributes = {Attribute::of("num_heads", x[1].value()),
                  Attribute::of("rotary_embedding_dim", (half + half).value())};
  }
  form(n.outputs[0]).merged = emit_.contrib(
      "RotaryEmbedding", {merged(n.inputs[0]), positions, rows(n.inputs[1]), rows(n.inputs[2])},
      attributes, n.name, {std::string()})[0];
}

/// Not from a cache's shape, if anything else says it: a runtime may give it more room.
Lowering::Lengths Lowering::lengths(const Node& n, const GroupedAttention& found) {
  const Dim added = shape(n.inputs[0])[2], slots = shape(n.inputs[1])[2];
  Lengths lengths;
  if (found.keys.counter != ir::kAbsent) {
    const std::string first = emit_.node("Reshape", {full(found.keys.counter), emit_.ints({1})});
    lengths.taken = emit_.node("Add", {first, emit_.size(added)});
    lengths.gives_all_slots =
        slots.is_static() && capabilities(*target_.fusions).grouped_has_all_slots;
  } else if (n.inputs[3] == ir::kAbsent) {
    lengths.taken = emit_.size(slots);
  } else {
    lengths.taken = emit_.node("Shape", {full(n.inputs[3])}, {Attribute::of("start", 1)});
  }
  return lengths;
}

/// The slots that each query sees, of those that are given to the operator: bool [B, 1, S, T].
std::string Lowering::seen_slots(const Node& n, const Lengths& lengths) {
  const ValueId bias = n.inputs[4];
  const bool is_whole = shape(bias)[3] == shape(n.inputs[0])[2];
  if (is_whole || lengths.gives_all_slots) return full(bias);
  return emit_.node("Slice", {full(bias), emit_.ints({0}), lengths.taken, emit_.ints({3})});
}

/// bool [B, S, 1]: the queries of a causal attention that see a key at all. Keys are counted up to
/// each query's own place, from the end, so that nothing hangs on how much room a cache has.
std::string Lowering::rows_that_see(const Node& n) {
  const Dim queries = shape(n.inputs[0])[2];
  const std::string mask =
      emit_.node("Cast", {full(n.inputs[3])}, {to_dtype(DType::kI32)});  // [B, T]
  const std::string counts = emit_.node("CumSum", {mask, emit_.scalar(DType::kI64, 1)});
  const auto from_end = [&](const std::string& value, int64_t window, const std::string& end) {
    const std::string begin =
        emit_.node("Sub", {emit_.ints({-window}), emit_.size(queries)});  // of the first query
    return emit_.node("Slice", {value, begin, end, emit_.ints({1})});
  };
  std::string seen =
      from_end(counts, 0, emit_.ints({std::numeric_limits<int64_t>::max()}));  // [B, S]
  if (const auto window = as<ir::Attention>(*n.op).window) {
    const std::string zeros = emit_.node(
        "Expand", {emit_.scalar(DType::kI32, 0), emit_.shape({shape(n.inputs[0])[0], *window})});
    const std::string all = emit_.node("Concat", {zeros, counts}, {Attribute::of("axis", 1)});
    seen = emit_.node("Sub", {seen, from_end(all, *window, emit_.ints({-*window}))});
  }
  const std::string any = emit_.node("Greater", {seen, emit_.scalar(DType::kI32, 0)});
  return emit_.node("Unsqueeze", {any, emit_.ints({2})});
}

/// Zeros for queries that see nothing, as Attention gives: the kernel gives a mean there, unless
/// itself is causal.
std::string Lowering::zeros_where_nothing_is_seen(const Node& n, const std::string& seen,
                                                  const std::string& value) {
  const auto cast = [&](const std::string& x, DType to) {
    return emit_.node("Cast", {x}, {to_dtype(to)});
  };
  const std::string most = emit_.node("ReduceMax", {cast(seen, DType::kI32), emit_.ints({-1})});
  const std::string any =
      emit_.node("Squeeze", {cast(most, DType::kBool), emit_.ints({1})});  // [B, S, 1]
  return emit_.node("Where", {any, value, emit_.scalar(dtype(n.inputs[0]), 0)}, {}, n.name);
}

/// [B or 1, H or 1, S, T], or empty if all that came before is seen.
std::string Lowering::attention_bias(const Node& n, const Lengths& lengths) {
  const ValueId mask = n.inputs[3], bias = n.inputs.size() > 4 ? n.inputs[4] : ir::kAbsent;
  const DType dtype = this->dtype(n.inputs[0]);
  const auto as_numbers = [&](const std::string& seen) {
    return emit_.node("Where",
                      {seen, emit_.scalar(dtype, 0), emit_.scalar(dtype, ir::lowest(dtype))});
  };
  if (bias != ir::kAbsent && this->dtype(bias) == DType::kBool)
    return as_numbers(seen_slots(n, lengths));
  std::string sum;
  if (mask != ir::kAbsent) {
    const std::string seen = emit_.node("Unsqueeze", {full(mask), emit_.ints({1, 2})});
    sum = as_numbers(seen);
    const Dim queries = shape(n.inputs[0])[2];
    if (!(queries == Dim(1))) sum = emit_.node("Expand", {sum, emit_.shape({1, 1, queries, 1})});
  }
  if (bias == ir::kAbsent) return sum;
  return sum.empty() ? full(bias) : emit_.node("Add", {full(bias), sum});
}

void Lowering::lower_grouped_attention(const Node& n) {
  const auto& op = as<ir::Attention>(*n.op);
  const Capabilities& provider = capabilities(*target_.fusions);
  const std::optional<GroupedAttention> found = grouped_attention(graph_, n, provider);
  check(found.has_value(), "onnx: an attention was kept that no operator computes");
  const Shape& q = shape(n.inputs[0]);
  const Lengths lengths = this->lengths(n, *found);
  const std::string last = emit_.node("Sub", {lengths.taken, emit_.ints({1})});
  const auto as_i32 = [&](const std::string& value) {
    return emit_.node("Cast", {value}, {to_dtype(DType::kI32)});
  };
  const std::string lasts = emit_.node("Expand", {as_i32(last), emit_.shape({q[0]})});
  const std::string given =
      lengths.gives_all_slots
          ? emit_.scalar(DType::kI32, static_cast<double>(shape(n.inputs[1])[2].value()))
          : as_i32(lengths.taken);
  std::vector<Attribute> attributes = {Attribute::of("num_heads", q[1].value()),
                                       Attribute::of("kv_num_heads", shape(n.inputs[1])[1].value()),
                                       Attribute::of_float("scale", static_cast<float>(op.scale))};
  if (!op.causal && provider.grouped_not_causal) attributes.push_back(Attribute::of("causal", 0));
  if (op.window) attributes.push_back(Attribute::of("local_window_size", *op.window));
  const ValueId keys = n.inputs[1], values = n.inputs[2];
  const std::vector<std::string> made =
      emit_.contrib("GroupQueryAttention",
                    {merged(n.inputs[0]), merged(found->keys.added), merged(found->values.added),
                     full(found->keys.past), full(found->values.past), lasts, given, "", "", "",
                     attention_bias(n, lengths)},
                    attributes, n.name, {std::string(), wanted(keys), wanted(values)});
  std::string& y = form(n.outputs[0]).merged = made[0];
  if (!op.causal) {
    y = zeros_where_nothing_is_seen(n, seen_slots(n, lengths), y);
  } else if (n.inputs[3] != ir::kAbsent && !provider.grouped_hides_rows) {
    y = emit_.node("Where", {rows_that_see(n), y, emit_.scalar(dtype(n.inputs[0]), 0)}, {}, n.name);
  }
  for (const auto& [id, name] : {std::pair(keys, made[1]), std::pair(values, made[2])}) {
    if (form(id).full.empty()) form(id).full = name;
  }
}

}  // namespace tranship::onnx

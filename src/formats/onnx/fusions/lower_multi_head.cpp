// Attention that is not grouped, activations and experts in ONNX Runtime's own operators (domain
// com.microsoft).
#include "base/error.h"
#include "formats/onnx/cache_update.h"
#include "formats/onnx/fusions/experts.h"
#include "formats/onnx/lowering.h"
#include "ir/decompose.h"

namespace tranship::onnx {

using ir::as;
using ir::Node;
using ir::Shape;
using ir::ValueId;

std::string Lowering::repeated_heads(ValueId id, int64_t times) {
  if (times == 1) return full(id);
  const Shape& of = shape(id);
  const std::string one = emit_.node("Unsqueeze", {full(id), emit_.ints({2})});
  const std::string all = emit_.node("Expand", {one, emit_.ints({1, 1, times, 1, 1})});
  return emit_.node("Reshape", {all, emit_.shape({0, of[1] * ir::Dim(times), -1, of[3]})});
}

std::string Lowering::repeated_merged(ValueId id, int64_t times) {
  if (times == 1) return merged(id);
  const Shape& of = shape(id);
  const std::string one = emit_.node("Unsqueeze", {by_tokens(id), emit_.ints({3})});
  const std::string all = emit_.node("Expand", {one, emit_.ints({1, 1, 1, times, 1})});
  return emit_.node("Reshape", {all, emit_.shape({0, 0, of[1] * of[3] * ir::Dim(times)})});
}

/// Masks are written out (attention_form.h). Its kernels have a key head for each query head.
void Lowering::lower_multi_head_attention(const Node& n) {
  const auto& op = as<ir::Attention>(*n.op);
  const ValueId q = n.inputs[0], k = n.inputs[1], v = n.inputs[2];
  std::string bias = whole_mask(n);
  if (!bias.empty() && dtype(n.inputs[4]) == DType::kBool) {
    const DType to = dtype(q);
    bias = emit_.node("Where", {bias, emit_.scalar(to, 0), emit_.scalar(to, ir::lowest(to))});
  }
  std::vector<Attribute> attributes = {Attribute::of("num_heads", shape(q)[1].value()),
                                       Attribute::of_float("scale", static_cast<float>(op.scale))};
  if (op.causal) attributes.push_back(Attribute::of("unidirectional", 1));
  const int64_t times = shape(q)[1].value() / shape(k)[1].value();
  const bool grows = absorbed_.contains(k);
  const CacheUpdate keys = cache_update(graph_, k), values = cache_update(graph_, v);
  std::vector<std::string> inputs = {merged(q)};
  if (grows) {
    inputs.insert(inputs.end(), {merged(keys.added), merged(values.added), "", "", bias,
                                 full(keys.past), full(values.past)});
  } else if (!form(k).full.empty() || !form(v).full.empty()) {
    inputs.insert(inputs.end(), {repeated_heads(k, times), repeated_heads(v, times), "", "", bias});
  } else {
    inputs.insert(inputs.end(),
                  {repeated_merged(k, times), repeated_merged(v, times), "", "", bias});
  }
  std::vector<std::optional<std::string>> results = {std::string()};
  if (grows) results.insert(results.end(), {wanted(k), wanted(v)});
  const std::vector<std::string> made =
      emit_.contrib("MultiHeadAttention", inputs, attributes, n.name, results);
  form(n.outputs[0]).merged = made[0];
  if (!grows) return;
  form(k).full = made[1];
  form(v).full = made[2];
}

void Lowering::lower_fused_activation(const Node& n, std::string_view op_type) {
  const ValueId x = n.inputs[0], y = n.outputs[0];
  std::vector<std::string> inputs;
  std::vector<Attribute> attributes;
  if (op_type == "QuickGelu") {
    const bool is_silu = as<ir::Activation>(*n.op).fn == ir::ActivationKind::kSilu;
    attributes.push_back(Attribute::of_float("alpha", is_silu ? 1.0f : 1.702f));
  }
  const bool is_flat = can_be_flat(x) && (!form(x).flat.empty() || goes_flat(n));
  inputs.push_back(is_flat ? flat(x) : full(x));
  if (const auto it = biases_.find(x); it != biases_.end()) {
    op_type = "BiasGelu";
    inputs.push_back(full(it->second));
  }
  const std::string name = is_flat ? flat_name(n) : wanted(y);
  const std::string made = emit_.contrib(op_type, inputs, attributes, n.name, {name})[0];
  set_rows(y, made, is_flat);
}

/// Softmax and choice of experts are the operator's own.
void Lowering::lower_moe(const Node& n) {
  const std::optional<Routing> found = routing(graph_, n, capabilities(*target_.fusions));
  check(found.has_value(), "onnx: experts were kept that no operator computes");
  const std::string gate_up = interleaved_name(graph_, n);
  weights_.push_back(gate_up);
  const std::vector<std::string> made = emit_.contrib(
      "MoE", {flat(n.inputs[0]), flat(found->logits), gate_up, "", full(n.inputs[4])},
      {Attribute::of("k", found->num_chosen), Attribute::of_text("activation_type", "swiglu"),
       Attribute::of("swiglu_fusion", 1), Attribute::of_float("activation_alpha", 1),
       Attribute::of_float("activation_beta", 0),
       Attribute::of("normalize_routing_weights", found->normalizes ? 1 : 0)},
      n.name, {flat_name(n)});
  set_flat(n.outputs[0], made[0]);
}

}  // namespace tranship::onnx

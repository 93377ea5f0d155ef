#include "nn/moe.h"

#include "base/error.h"

namespace tranship::nn {
namespace {

struct Routing {
  Tensor experts;  // i64 [B, S, k]
  Tensor weights;  // [B, S, k]
};

/// The softmax is in f32 whatever the weights are.
Routing route(Scope m, Tensor x, const MoeOptions& options) {
  const Tensor logits = linear(m / "gate", x, options.num_experts);
  const Tensor probabilities = ir::softmax(ir::cast(logits, DType::kF32), -1);
  ir::Sorted chosen = ir::top_k(probabilities, -1, options.num_experts_per_tok);
  if (options.norm_topk_prob)
    chosen.values = chosen.values / ir::reduce(ir::ReduceKind::kSum, chosen.values, {-1}, true);
  return {chosen.indices, ir::cast(chosen.values, x.dtype())};
}

/// The weights `names` of all experts, one below the other: [E, rows, columns].
Tensor stacked(Scope experts, std::string_view name, const MoeOptions& options,
               const std::vector<std::string>& names, Shape shape) {
  const Shape all = {options.num_experts, shape[0], shape[1]};
  if (experts.has(name, false)) return experts.param(name, all);
  shape[0] = shape[0].value() / static_cast<int64_t>(names.size());
  std::vector<Part> parts;
  for (int64_t i = 0; i < options.num_experts; ++i) {
    for (const std::string& part : names)
      parts.push_back({std::to_string(i) + "." + part + ".weight", shape});
  }
  return experts.joined(name, all, parts);
}

}  // namespace

Tensor moe(Scope m, Tensor x, const MoeOptions& options) {
  const std::optional<ir::ActivationKind> fn = find_activation(options.hidden_act);
  if (!fn) {
    fail(ErrorKind::kUnsupported, "[model] config.json: hidden_act of experts is '{}'",
         options.hidden_act);
  }
  const Dim hidden = x.shape().back();
  const int64_t inner = options.intermediate_size;
  const Routing routing = route(m, x, options);
  ir::Moe op;
  op.fn = *fn;
  const Scope experts = m / "experts";
  const Tensor gate_up =
      stacked(experts, "gate_up_proj", options, {"gate_proj", "up_proj"}, {2 * inner, hidden});
  const Tensor down = stacked(experts, "down_proj", options, {"down_proj"}, {hidden, inner});
  return m.graph().add_one(ir::make(op), {x, routing.experts, routing.weights, gate_up, down},
                           experts.path());
}

}  // namespace tranship::nn

#include "nn/layers.h"

#include "base/error.h"

namespace tranship::nn {

Tensor linear(Scope m, Tensor x, int64_t out, bool bias) {
  const Tensor weight = m.param("weight", {out, x.shape().back()});
  const Tensor b = m.has("bias", bias) ? m.param("bias", {out}) : Tensor();
  return m.graph().add_one(ir::make(ir::Linear{}), {x, weight, b}, m.path());
}

Tensor embedding(Scope m, Tensor ids, int64_t count, int64_t size) {
  return m.graph().add_one(ir::make(ir::Embedding{}), {m.param("weight", {count, size}), ids},
                           m.path());
}

Tensor rms_norm(Scope m, Tensor x, double eps) {
  ir::RmsNorm op;
  op.eps = eps;
  return m.graph().add_one(ir::make(op), {x, m.param("weight", {x.shape().back()})}, m.path());
}

Tensor layer_norm(Scope m, Tensor x, double eps) {
  ir::LayerNorm op;
  op.eps = eps;
  const Shape size = {x.shape().back()};
  return m.graph().add_one(ir::make(op), {x, m.param("weight", size), m.param("bias", size)},
                           m.path());
}

Tensor activate(std::string_view hidden_act, Tensor x) {
  using Kind = ir::ActivationKind;
  if (hidden_act == "silu" || hidden_act == "swish") return ir::activation(Kind::kSilu, x);
  if (hidden_act == "gelu") return ir::activation(Kind::kGelu, x);
  if (hidden_act == "gelu_new" || hidden_act == "gelu_pytorch_tanh" || hidden_act == "gelu_fast")
    return ir::activation(Kind::kGeluTanh, x);
  if (hidden_act == "quick_gelu") return ir::activation(Kind::kQuickGelu, x);
  if (hidden_act == "relu") return ir::activation(Kind::kRelu, x);
  if (hidden_act == "tanh") return ir::unary(ir::UnaryKind::kTanh, x);
  if (hidden_act == "sigmoid") return ir::unary(ir::UnaryKind::kSigmoid, x);
  fail(ErrorKind::kUnsupported,
       "[model] config.json: hidden_act is '{}'; known are silu, swish, gelu, gelu_new, "
       "gelu_pytorch_tanh, gelu_fast, quick_gelu, relu, tanh, sigmoid",
       hidden_act);
}

Tensor gated_mlp(Scope m, Tensor x, int64_t intermediate_size, std::string_view hidden_act,
                 bool bias) {
  const int64_t hidden_size = x.shape().back().value();
  const Tensor gate = linear(m / "gate_proj", x, intermediate_size, bias);
  const Tensor up = linear(m / "up_proj", x, intermediate_size, bias);
  return linear(m / "down_proj", activate(hidden_act, gate) * up, hidden_size, bias);
}

}  // namespace tranship::nn

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

std::optional<ir::ActivationKind> find_activation(std::string_view hidden_act) {
  using Kind = ir::ActivationKind;
  constexpr std::pair<std::string_view, Kind> kKnown[] = {{"silu", Kind::kSilu},
                                                          {"swish", Kind::kSilu},
                                                          {"gelu", Kind::kGelu},
                                                          {"gelu_python", Kind::kGelu},
                                                          {"gelu_new", Kind::kGeluTanh},
                                                          {"gelu_pytorch_tanh", Kind::kGeluTanh},
                                                          {"gelu_fast", Kind::kGeluTanh},
                                                          {"gelu_python_tanh", Kind::kGeluTanh},
                                                          {"gelu_accurate", Kind::kGeluTanh},
                                                          {"quick_gelu", Kind::kQuickGelu},
                                                          {"relu", Kind::kRelu},
                                                          {"relu2", Kind::kRelu2},
                                                          {"relu6", Kind::kRelu6},
                                                          {"mish", Kind::kMish},
                                                          {"hardswish", Kind::kHardSwish}};
  for (const auto& [name, kind] : kKnown) {
    if (name == hidden_act) return kind;
  }
  return std::nullopt;
}

Tensor activate(std::string_view hidden_act, Tensor x) {
  if (const auto kind = find_activation(hidden_act)) return ir::activation(*kind, x);
  if (hidden_act == "tanh") return ir::unary(ir::UnaryKind::kTanh, x);
  if (hidden_act == "sigmoid") return ir::unary(ir::UnaryKind::kSigmoid, x);
  if (hidden_act == "linear") return x;
  fail(ErrorKind::kUnsupported,
       "[model] config.json: hidden_act is '{}'; known are silu, swish, gelu, gelu_new, "
       "gelu_pytorch_tanh, gelu_fast, gelu_accurate, gelu_python, gelu_python_tanh, quick_gelu, "
       "relu, relu2, relu6, mish, hardswish, tanh, sigmoid, linear",
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

#include "nn/ssm.h"

namespace tranship::nn {
namespace {

/// `count` zeros before axis 2.
Tensor padded(Tensor x, int64_t count) {
  ir::Pad op;
  op.begin = {0, 0, count};
  op.end = {0, 0, 0};
  return x.graph().add_one(ir::make(std::move(op)), {x});
}

}  // namespace

Tensor causal_conv(Scope m, Tensor x, int64_t kernel, bool bias, const LayerState& s) {
  constexpr const char* kState = "conv_states.0";
  const Tensor tokens = ir::transpose(x, {0, 2, 1});  // [B, D, L]
  const Dim channels = tokens.shape()[1], length = tokens.shape()[2];
  const Tensor past = s.cache.state(s.layer, kState, {x.dtype(), {x.shape()[0], channels, kernel}});
  const Tensor all = past ? ir::concat({past, tokens}, 2) : padded(tokens, kernel);
  s.cache.keep(s.layer, kState, ir::slice(all, 2, length, length + kernel));
  ir::Conv op;
  op.strides = op.dilations = {1};
  op.pads_begin = {past ? 0 : kernel - 1};  // zeros that need not be there
  op.pads_end = {0};
  op.groups = channels.value();
  const Tensor seen = past ? ir::slice(all, 2, 1, length + kernel) : tokens;
  const Tensor weight = m.param("weight", {channels, 1, kernel});
  const Tensor b = m.has("bias", bias) ? m.param("bias", {channels}) : Tensor();
  return ir::transpose(m.graph().add_one(ir::make(std::move(op)), {seen, weight, b}, m.path()),
                       {0, 2, 1});
}

Tensor selective_scan(Scope m, const ScanInputs& in, const LayerState& s) {
  constexpr const char* kState = "recurrent_states.0";
  const Shape shape = {in.x.shape()[0], in.x.shape()[2], in.a.shape()[1]};
  Tensor state = s.cache.state(s.layer, kState, {DType::kF32, shape});
  if (!state) state = ir::full(m.graph(), DType::kF32, 0, shape);
  const std::vector<Tensor> results =
      m.graph().add(ir::make(ir::SelectiveScan{}),
                    std::vector<Tensor>{in.x, in.step, in.a, in.b, in.c, state}, m.path());
  s.cache.keep(s.layer, kState, results[1]);
  return results[0];
}

}  // namespace tranship::nn

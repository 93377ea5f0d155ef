#include "nn/attention.h"

namespace tranship::nn {

Tensor split_heads(Tensor x, int64_t count, int64_t size) {
  return ir::transpose(ir::reshape(x, {x.shape()[0], x.shape()[1], count, size}), {0, 2, 1, 3});
}

Tensor merge_heads(Tensor x) {
  const Shape& s = x.shape();
  return ir::reshape(ir::transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

Tensor heads(Scope m, Tensor x, int64_t count, int64_t size, bool bias) {
  return split_heads(linear(m, x, count * size, bias), count, size);
}

Tensor attention(Scope m, Tensor q, Tensor k, Tensor v, const AttentionOptions& options) {
  ir::Attention op;
  op.scale = options.scale;
  op.causal = options.causal;
  op.window = options.window;
  return m.graph().add_one(ir::make(op), {q, k, v, options.key_mask, Tensor()}, m.path());
}

}  // namespace tranship::nn

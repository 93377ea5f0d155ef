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

Tensor key_mask_of(Tensor attention_mask) {
  if (!attention_mask) return {};
  return ir::compare(ir::CompareKind::kNotEqual, attention_mask,
                     ir::scalar(attention_mask.graph(), DType::kI64, 0));
}

Tensor attention(Scope m, Tensor q, Tensor k, Tensor v, const AttentionOptions& options) {
  ir::Attention op;
  op.scale = options.scale;
  op.causal = options.causal;
  op.window = options.window;
  return m.graph().add_one(ir::make(op), {q, k, v, options.key_mask, options.bias}, m.path());
}

}  // namespace tranship::nn

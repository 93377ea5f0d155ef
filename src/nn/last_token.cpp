#include "nn/last_token.h"

namespace tranship::nn {
namespace {

/// bool [B, S]: which of the new places are tokens; absent: all.
Tensor new_tokens(ir::Graph& g, const ModelInputs& in, const Dim& length) {
  Tensor mask = in.decoder_input_ids ? in.decoder_attention_mask : in.attention_mask;
  if (!mask) return {};
  if (mask.rank() == 4) {  // of slots: a token sees its own
    const Tensor own = ir::iota(g, length) + in.cache->first_slot();
    const Tensor slots = ir::expand(ir::unsqueeze(own, {0, 1, 3}), {mask.shape()[0], 1, length, 1});
    return ir::squeeze(ir::gather_elements(mask, slots, 3), {1, 3});
  }
  if (!(mask.shape()[1] == length)) {  // counted from the end: a cache may have more room
    const Tensor ends = ir::iota(g, length) - ir::dim_to_tensor(g, length);
    mask = ir::gather(mask, ends, 1);
  }
  return key_mask_of(mask);
}

}  // namespace

Tensor last_tokens(Tensor hidden, const ModelInputs& in) {
  const Dim length = hidden.shape()[1];
  if (!in.last_token_logits || length == Dim(1)) return hidden;
  ir::Graph& g = hidden.graph();
  const Tensor is_token = new_tokens(g, in, length);
  if (!is_token) return ir::slice(hidden, 1, length - 1, length);
  const Tensor last = ir::argmax(ir::iota(g, length) * ir::cast(is_token, DType::kI64), -1);
  const Tensor places =
      ir::expand(ir::unsqueeze(last, {1, 2}), {hidden.shape()[0], 1, hidden.shape()[2]});
  return ir::gather_elements(hidden, places, 1);
}

}  // namespace tranship::nn

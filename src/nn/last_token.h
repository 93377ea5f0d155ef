// The head of a language model needs the last token of a row only, when nobody wants the others'
// logits.
#pragma once

#include "nn/model.h"

namespace tranship::nn {

/// hidden [B, S, H] -> as it is, or, where in.last_token_logits, of each row the last token that is
/// not padding: [B, 1, H]. The mask says which that is; without one it is the last.
/// Source: logits_to_keep = 1 of Transformers' models, which takes the last place whatever the
/// mask says: the same where padding stands on the left.
Tensor last_tokens(Tensor hidden, const ModelInputs& in);

}  // namespace tranship::nn

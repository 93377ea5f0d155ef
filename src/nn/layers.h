// The layers of PyTorch's nn that models are made of: each declares its weights and applies them.
// B batch, S sequence, D head_dim; "..." any axes in front.
#pragma once

#include <optional>

#include "nn/scope.h"

namespace tranship::nn {

/// x [..., in] -> [..., out]: x weight^T + bias.  Weights: weight [out, in], bias [out].
/// The bias exists if the checkpoint has one; without a checkpoint, if `bias`.
Tensor linear(Scope m, Tensor x, int64_t out, bool bias = false);
/// ids [...] -> [..., size].  Weight: weight [count, size].
Tensor embedding(Scope m, Tensor ids, int64_t count, int64_t size);
/// x [..., d] -> as x.  Weight: weight [d].
Tensor rms_norm(Scope m, Tensor x, double eps);
/// x [..., d] -> as x.  Weights: weight [d], bias [d].
Tensor layer_norm(Scope m, Tensor x, double eps);
/// What a name of Transformers' ACT2FN means, if it is one of ir's activations.
std::optional<ir::ActivationKind> find_activation(std::string_view hidden_act);
/// The function of that name in Transformers' ACT2FN. Errors: unsupported for an unknown one.
Tensor activate(std::string_view hidden_act, Tensor x);

/// down(act(gate(x)) * up(x)), the MLP of Llama and its kin.  Weights: gate_proj, up_proj,
/// down_proj.
Tensor gated_mlp(Scope m, Tensor x, int64_t intermediate_size, std::string_view hidden_act,
                 bool bias = false);

}  // namespace tranship::nn

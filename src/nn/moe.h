// Mixtures of experts: each token goes through the few MLPs that a router chooses for it.
#pragma once

#include "nn/layers.h"

namespace tranship::nn {

struct MoeOptions {
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t intermediate_size = 0;  // of an expert
  std::string_view hidden_act = "silu";
  bool norm_topk_prob = false;  // whether the chosen experts' weights sum to 1
};

/// x [B, S, H] -> as x.  Weights: gate.weight [E, H], and of each expert N either
/// experts.N.gate_proj.weight, experts.N.up_proj.weight [I, H] and experts.N.down_proj.weight
/// [H, I], or all in experts.gate_up_proj [E, 2 I, H] and experts.down_proj [E, H, I].
/// Errors: unsupported for an activation that experts cannot have.
/// Source: modeling_qwen3_moe.py Qwen3MoeSparseMoeBlock (5.23).
Tensor moe(Scope m, Tensor x, const MoeOptions& options);

}  // namespace tranship::nn

// Rotary position embeddings: from a configuration to cos and sin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "nn/scope.h"

namespace tranship::nn {

/// What `rope_parameters` says (or the older `rope_scaling` and `rope_theta`), with Transformers'
/// names.
struct RopeParameters {
  std::string rope_type = "default";  // default, linear, dynamic, yarn, longrope, llama3
  double rope_theta = 10000;
  double factor = 1;
  int64_t original_max_position_embeddings = 0;
  // yarn, longrope
  std::optional<double> attention_factor;
  // yarn
  std::optional<double> mscale, mscale_all_dim;
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  // longrope
  std::vector<double> long_factor, short_factor;
  // llama3
  double low_freq_factor = 1, high_freq_factor = 4;
};

/// Reads the parameters for a layer type ("full_attention"; matters only where the config has one
/// set a type). Errors: unsupported for another rope_type, corrupt for missing or wrong parameters,
/// each with its path. Source: modeling_rope_utils.py (5.23).
RopeParameters read_rope_parameters(const Config& config, std::string_view layer_type,
                                    int64_t max_position_embeddings);

/// Tables for rope(): [B or 1, S, R/2] each, in the weights' dtype.
struct Rotary {
  Tensor cos;
  Tensor sin;
};

/// position_ids i64 [B or 1, S]; R = head_dim rotated elements.  Computed in f32.
/// max_position_embeddings: what `dynamic` grows from.
Rotary rotary(const RopeParameters& rope, Tensor position_ids, int64_t head_dim,
              int64_t max_position_embeddings, DType dtype);

/// Rotates x [B, H, S, D] by position.
Tensor rope(Tensor x, const Rotary& tables);

}  // namespace tranship::nn

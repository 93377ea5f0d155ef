// State-space layers: what they keep of the past has a fixed size. B batch, L sequence, D channels,
// N state.
#pragma once

#include "nn/attention.h"

namespace tranship::nn {

/// Where a layer's states go.
struct LayerState {
  Cache& cache;
  int64_t layer;
};

/// Each channel over its last `kernel` tokens; before the first there are zeros.
/// x [B, L, D] -> as x.  Weights: weight [D, 1, kernel], bias [D].  Keeps "conv_states.0", the last
/// `kernel` tokens, [B, D, kernel].
/// Source: modeling_mamba.py causal_conv1d_fn, causal_conv1d_update (5.23).
Tensor causal_conv(Scope m, Tensor x, int64_t kernel, bool bias, const LayerState& s);

struct ScanInputs {
  Tensor x;     // [B, L, D]
  Tensor step;  // [B, L, D], positive
  Tensor a;     // f32 [D, N], negative
  Tensor b;     // [B, L, N]
  Tensor c;     // [B, L, N]
};
/// -> f32 [B, L, D].  Keeps "recurrent_states.0", f32 [B, D, N].
/// Source: modeling_mamba.py mamba_selective_scan, mamba_selective_state_update (5.23).
Tensor selective_scan(Scope m, const ScanInputs& in, const LayerState& s);

}  // namespace tranship::nn

// Convolutions over the axes behind [batch, channels].
#pragma once

#include <vector>

#include "nn/scope.h"

namespace tranship::nn {

/// An entry an axis.
struct ConvOptions {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  bool bias = true;  // without a checkpoint
};

/// x [B, C, axes...] -> [B, out, axes...], without padding.  Weights: weight [out, C, kernel...],
/// bias [out].
Tensor conv(Scope m, Tensor x, int64_t out, const ConvOptions& options);

}  // namespace tranship::nn

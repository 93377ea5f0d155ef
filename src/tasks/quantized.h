// Checkpoints whose tensors are codes: read as weights they would give garbage.
#pragma once

#include "checkpoint/checkpoint_data.h"

namespace tranship::tasks {

/// Errors: unsupported, with the method's name, for a checkpoint that is quantized: because its
/// config says so (quantization_config, compression_config), or because it has tensors that only
/// quantized checkpoints have.
void refuse_quantized(const CheckpointData& checkpoint);

/// Whether an element of a weight is its value: false for integers and for fp8, which are codes
/// without a scale.
bool holds_numbers(DType dtype);

}  // namespace tranship::tasks

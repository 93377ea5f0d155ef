// GGUF's block types as f32, bit for bit as the public gguf package's dequantize (0.19) gives them.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/ggml_type.h"
#include "ir/tensor_source.h"

namespace tranship {

/// F32 F16 BF16 F64 I8 I16 I32 I64, and Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K.
bool can_read(GgmlType type);

/// The elements of a GGUF tensor: plain types as they lie, with their dtype; block types as f32,
/// decoded when read. `range` holds whole blocks; `shape` has the slowest axis first, its last axis
/// a multiple of the block. Errors: internal if the type is not one of can_read(), or the range is
/// not what the shape needs.
TensorSourcePtr ggml_source(std::string name, GgmlType type, std::vector<int64_t> shape,
                            FileRange range);

}  // namespace tranship

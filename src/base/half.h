// 16-bit and 8-bit floats, as numbers: conversions to and from f32, one by one and in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tranship/dtype.h"

namespace tranship {

float f16_to_f32(uint16_t bits);
/// Rounds to nearest even; what is too large becomes infinity.
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
/// Rounds to nearest even; NaN stays NaN.
uint16_t f32_to_bf16(float value);
/// OCP FP8: E4M3 without infinities ("fn"), E5M2 with them.
float f8_e4m3_to_f32(uint8_t bits);
float f8_e5m2_to_f32(uint8_t bits);

/// Converts `count` elements between dtypes; the two arrays do not overlap.
/// -> how many finite inputs became infinite or, for integers, do not fit: 0 when nothing was lost
/// that way. Errors: unsupported for a pair without a conversion (to f8).
size_t convert(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out,
               size_t count);

}  // namespace tranship

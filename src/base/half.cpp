#include "base/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace tranship {

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal or zero, exact
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past 65504
  if (magnitude < 0x38800000u) {                                               // subnormal in f16
    const float shifted =
        std::bit_cast<float>(magnitude) + 0.5f;  // 0.5 has an ulp of 2^-24: the add rounds
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f8_e4m3_to_f32(uint8_t bits) {
  const float sign = (bits & 0x80u) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 3) & 0xf;
  const int mantissa = bits & 0x7;
  if (exponent == 0xf && mantissa == 0x7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

float f8_e5m2_to_f32(uint8_t bits) { return f16_to_f32(static_cast<uint16_t>(bits << 8)); }

namespace {

// Stored elements and what they mean. `Stored` is what lies in memory, load() gives a float, double
// or int64_t.
struct F64 {
  using Stored = double;
  static double load(double v) { return v; }
};
struct F32 {
  using Stored = float;
  static float load(float v) { return v; }
  static float store(float v) { return v; }
};
struct F16 {
  using Stored = uint16_t;
  static float load(uint16_t v) { return f16_to_f32(v); }
  static uint16_t store(float v) { return f32_to_f16(v); }
};
struct BF16 {
  using Stored = uint16_t;
  static float load(uint16_t v) { return bf16_to_f32(v); }
  static uint16_t store(float v) { return f32_to_bf16(v); }
};
struct E4M3 {
  using Stored = uint8_t;
  static float load(uint8_t v) { return f8_e4m3_to_f32(v); }
};
struct E5M2 {
  using Stored = uint8_t;
  static float load(uint8_t v) { return f8_e5m2_to_f32(v); }
};

template <class From, class To>
size_t convert_floats(const std::byte* in, std::byte* out, size_t count) {
  using S = typename From::Stored;
  using D = typename To::Stored;
  size_t overflowed = 0;
  for (size_t i = 0; i < count; ++i) {
    S stored;
    std::memcpy(&stored, in + i * sizeof(S), sizeof(S));
    const auto wide = From::load(stored);
    const D narrow = To::store(static_cast<float>(wide));
    overflowed += static_cast<size_t>(!std::isfinite(To::load(narrow)) && std::isfinite(wide));
    std::memcpy(out + i * sizeof(D), &narrow, sizeof(D));
  }
  return overflowed;
}

template <class From>
size_t from_float(const std::byte* in, DType to, std::byte* out, size_t count) {
  switch (to) {
    case DType::kF32:
      return convert_floats<From, F32>(in, out, count);
    case DType::kF16:
      return convert_floats<From, F16>(in, out, count);
    case DType::kBF16:
      return convert_floats<From, BF16>(in, out, count);
    default:
      fail(ErrorKind::kUnsupported, "[convert] a floating tensor cannot become {}", name(to));
  }
}

template <class S, class D>
size_t convert_integers(const std::byte* in, std::byte* out, size_t count) {
  size_t lost = 0;
  for (size_t i = 0; i < count; ++i) {
    S value;
    std::memcpy(&value, in + i * sizeof(S), sizeof(S));
    const auto narrow = static_cast<D>(value);
    if constexpr (std::is_integral_v<D>) lost += static_cast<size_t>(!std::in_range<D>(value));
    std::memcpy(out + i * sizeof(D), &narrow, sizeof(D));
  }
  return lost;
}

template <class S>
size_t from_integer(const std::byte* in, DType to, std::byte* out, size_t count) {
  switch (to) {
    case DType::kI64:
      return convert_integers<S, int64_t>(in, out, count);
    case DType::kI32:
      return convert_integers<S, int32_t>(in, out, count);
    case DType::kF32:
      return convert_integers<S, float>(in, out, count);
    default:
      fail(ErrorKind::kUnsupported, "[convert] an integer tensor cannot become {}", name(to));
  }
}

}  // namespace

size_t convert(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out,
               size_t count) {
  check(in.size() >= count * size_bytes(from) && out.size() >= count * size_bytes(to),
        "convert: a block is too short");
  if (from == to) {
    if (count > 0) std::memcpy(out.data(), in.data(), count * size_bytes(from));
    return 0;
  }
  switch (from) {
    case DType::kF64:
      return from_float<F64>(in.data(), to, out.data(), count);
    case DType::kF32:
      return from_float<F32>(in.data(), to, out.data(), count);
    case DType::kF16:
      return from_float<F16>(in.data(), to, out.data(), count);
    case DType::kBF16:
      return from_float<BF16>(in.data(), to, out.data(), count);
    case DType::kF8E4M3:
      return from_float<E4M3>(in.data(), to, out.data(), count);
    case DType::kF8E5M2:
      return from_float<E5M2>(in.data(), to, out.data(), count);
    case DType::kI64:
      return from_integer<int64_t>(in.data(), to, out.data(), count);
    case DType::kI32:
      return from_integer<int32_t>(in.data(), to, out.data(), count);
    case DType::kI16:
      return from_integer<int16_t>(in.data(), to, out.data(), count);
    case DType::kI8:
      return from_integer<int8_t>(in.data(), to, out.data(), count);
    case DType::kU64:
      return from_integer<uint64_t>(in.data(), to, out.data(), count);
    case DType::kU32:
      return from_integer<uint32_t>(in.data(), to, out.data(), count);
    case DType::kU16:
      return from_integer<uint16_t>(in.data(), to, out.data(), count);
    case DType::kU8:
    case DType::kBool:
      return from_integer<uint8_t>(in.data(), to, out.data(), count);
  }
  return 0;
}

}  // namespace tranship

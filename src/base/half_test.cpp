#include "base/half.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/testing.h"

namespace tranship {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

/// The definition of IEEE binary16, apart from the code under test.
double half_by_definition(uint32_t half) {
  const double sign = (half & 0x8000u) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((half >> 10) & 31u);
  const auto mantissa = static_cast<double>(half & 1023u);
  if (exponent == 31)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(HalfTest, every_f16_has_the_value_of_its_definition_and_comes_back) {
  for (uint32_t half = 0; half <= 0xffff; ++half) {
    const float value = f16_to_f32(static_cast<uint16_t>(half));
    const double expected = half_by_definition(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << half;
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << half;
    } else {
      ASSERT_EQ(value, expected) << half;
      ASSERT_EQ(std::signbit(value), (half & 0x8000u) != 0) << half;
      ASSERT_EQ(f32_to_f16(value), half);
    }
  }
}

// Rounding is monotonic, so the two sides of each border between neighbours say everything.
TEST(HalfTest, f16_rounds_to_the_nearest_and_ties_to_even) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const auto next = static_cast<uint16_t>(half + 1);
    const float middle = (f16_to_f32(half) + f16_to_f32(next)) / 2;  // exact in f32
    ASSERT_EQ(f32_to_f16(middle), half % 2 == 0 ? half : next) << half;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, kInfinity)), next);
    ASSERT_EQ(f32_to_f16(-middle), f32_to_f16(middle) | 0x8000u);
  }
}

TEST(HalfTest, f16_becomes_infinite_from_65520_on) {
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(kInfinity), 0x7c00);
}

TEST(HalfTest, every_bf16_comes_back) {
  for (uint32_t value = 0; value <= 0xffff; ++value) {
    const float wide = bf16_to_f32(static_cast<uint16_t>(value));
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(wide)))) << value;
    } else {
      ASSERT_EQ(bits(wide), value << 16);
      ASSERT_EQ(f32_to_bf16(wide), value);
    }
  }
}

TEST(HalfTest, bf16_rounds_to_the_nearest_and_ties_to_even) {
  for (uint32_t value = 0; value < 0x7f7f; ++value) {
    const uint32_t middle = (value << 16) | 0x8000u;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), value + value % 2) << value;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), value);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), value + 1);
  }
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(HalfTest, nan_whose_payload_is_in_the_low_bits_stays_nan) {
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(nan))));
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(nan))));
}

// Values from the OCP 8-bit floating point specification, tables 1 and 2.
TEST(HalfTest, f8_e4m3_has_the_values_of_the_specification) {
  EXPECT_EQ(f8_e4m3_to_f32(0x7e), 448.0f);
  EXPECT_EQ(f8_e4m3_to_f32(0xfe), -448.0f);
  EXPECT_EQ(f8_e4m3_to_f32(0x08), 0x1p-6f);
  EXPECT_EQ(f8_e4m3_to_f32(0x07), 0.875f * 0x1p-6f);
  EXPECT_EQ(f8_e4m3_to_f32(0x01), 0x1p-9f);
  EXPECT_EQ(f8_e4m3_to_f32(0x38), 1.0f);
  EXPECT_EQ(bits(f8_e4m3_to_f32(0x80)), bits(-0.0f));
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0x7f)));
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0xff)));
  for (uint8_t i = 0; i < 0x7e; ++i)
    ASSERT_LT(f8_e4m3_to_f32(i), f8_e4m3_to_f32(static_cast<uint8_t>(i + 1)));
}

TEST(HalfTest, f8_e5m2_has_the_values_of_the_specification) {
  EXPECT_EQ(f8_e5m2_to_f32(0x7b), 57344.0f);
  EXPECT_EQ(f8_e5m2_to_f32(0x7c), kInfinity);
  EXPECT_EQ(f8_e5m2_to_f32(0xfc), -kInfinity);
  EXPECT_EQ(f8_e5m2_to_f32(0x04), 0x1p-14f);
  EXPECT_EQ(f8_e5m2_to_f32(0x03), 0.75f * 0x1p-14f);
  EXPECT_EQ(f8_e5m2_to_f32(0x01), 0x1p-16f);
  EXPECT_EQ(f8_e5m2_to_f32(0x3c), 1.0f);
  EXPECT_TRUE(std::isnan(f8_e5m2_to_f32(0x7d)));
  for (uint8_t i = 0; i < 0x7c; ++i)
    ASSERT_LT(f8_e5m2_to_f32(i), f8_e5m2_to_f32(static_cast<uint8_t>(i + 1)));
}

template <class To, class From>
std::pair<std::vector<To>, size_t> converted(DType from, const std::vector<From>& in, DType to) {
  std::vector<To> out(in.size());
  const size_t lost = convert(from, std::as_bytes(std::span(in)), to,
                              std::as_writable_bytes(std::span(out)), in.size());
  return {out, lost};
}

TEST(ConvertTest, counts_finite_numbers_that_become_infinite_and_no_others) {
  const std::vector<float> in = {1.0f, 70000.0f, -70000.0f, kInfinity, std::nanf(""), 65504.0f};
  EXPECT_EQ((converted<uint16_t>(DType::kF32, in, DType::kF16).second), 2u);
  EXPECT_EQ((converted<uint16_t>(DType::kF32, in, DType::kBF16).second), 0u);
  EXPECT_EQ((converted<float>(DType::kF64, std::vector<double>{1e39, 1e38, HUGE_VAL}, DType::kF32)
                 .second),
            1u);
}

TEST(ConvertTest, floats_of_every_width_become_f32) {
  using testing::ElementsAre;
  EXPECT_THAT((converted<float>(DType::kF64, std::vector<double>{0.5, -2}, DType::kF32).first),
              ElementsAre(0.5f, -2));
  EXPECT_THAT((converted<float>(DType::kF16, std::vector<uint16_t>{0x3c00}, DType::kF32).first),
              ElementsAre(1));
  EXPECT_THAT((converted<float>(DType::kBF16, std::vector<uint16_t>{0x3f80}, DType::kF32).first),
              ElementsAre(1));
  EXPECT_THAT((converted<float>(DType::kF8E4M3, std::vector<uint8_t>{0x38}, DType::kF32).first),
              ElementsAre(1));
  EXPECT_THAT((converted<float>(DType::kF8E5M2, std::vector<uint8_t>{0x3c}, DType::kF32).first),
              ElementsAre(1));
}

TEST(ConvertTest, counts_integers_that_do_not_fit) {
  const std::vector<int64_t> in = {-1, int64_t{1} << 31, -(int64_t{1} << 31),
                                   -(int64_t{1} << 31) - 1};
  const auto [out, lost] = converted<int32_t>(DType::kI64, in, DType::kI32);
  EXPECT_EQ(lost, 2u);
  EXPECT_EQ(out[0], -1);
  EXPECT_EQ(out[2], std::numeric_limits<int32_t>::min());
  EXPECT_EQ(
      (converted<int64_t>(DType::kU64, std::vector<uint64_t>{~uint64_t{0}, 5}, DType::kI64).second),
      1u);
}

TEST(ConvertTest, small_integers_keep_their_value_and_sign) {
  using testing::ElementsAre;
  EXPECT_THAT((converted<int64_t>(DType::kI8, std::vector<int8_t>{-128}, DType::kI64).first),
              ElementsAre(-128));
  EXPECT_THAT((converted<int32_t>(DType::kU8, std::vector<uint8_t>{200}, DType::kI32).first),
              ElementsAre(200));
  EXPECT_THAT((converted<int64_t>(DType::kI16, std::vector<int16_t>{-300}, DType::kI64).first),
              ElementsAre(-300));
  EXPECT_THAT((converted<int64_t>(DType::kU16, std::vector<uint16_t>{65535}, DType::kI64).first),
              ElementsAre(65535));
  EXPECT_THAT(
      (converted<int64_t>(DType::kU32, std::vector<uint32_t>{4294967295u}, DType::kI64).first),
      ElementsAre(4294967295));
  EXPECT_THAT((converted<float>(DType::kBool, std::vector<uint8_t>{0, 1}, DType::kF32).first),
              ElementsAre(0, 1));
}

TEST(ConvertTest, same_dtype_is_a_copy) {
  const std::vector<uint8_t> in = {1, 2, 255};
  EXPECT_EQ((converted<uint8_t>(DType::kF8E5M2, in, DType::kF8E5M2).first), in);
}

TEST(ConvertTest, pair_without_a_conversion_is_unsupported) {
  for (const auto& [from, to] :
       {std::pair(DType::kF32, DType::kF8E4M3), std::pair(DType::kF32, DType::kI32),
        std::pair(DType::kI64, DType::kBF16), std::pair(DType::kI64, DType::kU8)}) {
    EXPECT_EQ(error_of([from = from, to = to] { convert(from, {}, to, {}, 0); }).kind(),
              ErrorKind::kUnsupported);
  }
}

TEST(ConvertTest, block_that_is_too_short_is_an_internal_error) {
  std::vector<std::byte> four(4);
  EXPECT_EQ(error_of([&] { convert(DType::kF32, four, DType::kF16, four, 2); }).kind(),
            ErrorKind::kInternal);
}

}  // namespace
}  // namespace tranship

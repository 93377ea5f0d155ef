#include "checkpoint/checkpoint_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/testing.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::vector<T> bits_of(const TensorSource& source, int64_t first, int64_t count) {
  std::vector<T> bits(static_cast<size_t>(count));
  source.read(first, count, std::as_writable_bytes(std::span(bits)));
  return bits;
}

// The numbers are those of tools/hash_weights.py, which is written apart (numpy, torch).

TEST(HashSourceTest, matrices_and_above_equal_the_python_function_bit_for_bit) {
  const auto matrix = hash_source("model.embed_tokens.weight", DType::kF32, {8, 4});
  EXPECT_THAT(bits_of<uint32_t>(*matrix, 0, 4),
              ElementsAre(0xbe644824, 0xbe9f9c13, 0x3cbc80f8, 0xbedf158a));
  EXPECT_THAT(bits_of<uint32_t>(*matrix, 31, 1), ElementsAre(0xbf1a1725));
  const auto kernel = hash_source("conv.weight", DType::kF32, {2, 3, 4});
  EXPECT_THAT(bits_of<uint32_t>(*kernel, 0, 4),
              ElementsAre(0xbe9f4c9e, 0x3e23ebfe, 0x3eba6ddb, 0x3dd81d77));
  EXPECT_THAT(bits_of<uint32_t>(*kernel, 23, 1), ElementsAre(0xbeb89ce2));
}

TEST(HashSourceTest, vectors_equal_the_python_function_bit_for_bit) {
  const auto weight = hash_source("model.norm.weight", DType::kF32, {5});
  EXPECT_THAT(bits_of<uint32_t>(*weight, 0, 5),
              ElementsAre(0x3f68e490, 0x3f6d74d6, 0x3f7afc3e, 0x3f83997c, 0x3f7d3a09));
  const auto bias = hash_source("score.bias", DType::kF32, {5});
  EXPECT_THAT(bits_of<uint32_t>(*bias, 0, 5),
              ElementsAre(0x3dc6db46, 0xbba87200, 0x3db87d12, 0x3d810958, 0x3d246a0e));
}

TEST(HashSourceTest, name_is_hashed_as_utf8) {
  const auto source = hash_source("caf\xc3\xa9.weight", DType::kF32, {3, 1});
  EXPECT_THAT(bits_of<uint32_t>(*source, 0, 3), ElementsAre(0x3f828911, 0xbf96f7cf, 0x3f59ac0b));
}

TEST(HashSourceTest, half_floats_are_the_rounded_f32) {
  const auto bf16 = hash_source("model.norm.weight", DType::kBF16, {5});
  EXPECT_THAT(bits_of<uint16_t>(*bf16, 0, 4), ElementsAre(0x3f69, 0x3f6d, 0x3f7b, 0x3f84));
  const auto f16 = hash_source("score.bias", DType::kF16, {5});
  EXPECT_THAT(bits_of<uint16_t>(*f16, 0, 4), ElementsAre(0x2e37, 0x9d44, 0x2dc4, 0x2c08));
}

TEST(HashSourceTest, blocks_of_a_large_tensor_join_without_a_seam) {
  const auto source = hash_source("big.weight", DType::kF32, {512, 700});
  uint64_t sum = 0;
  for (const uint32_t bits : bits_of<uint32_t>(*source, 0, 512 * 700)) sum += bits;
  EXPECT_EQ(sum, 0x2abd43545adbbu);
  EXPECT_THAT(bits_of<uint32_t>(*source, 300000, 1), ElementsAre(0x3d720e57));
}

TEST(HashSourceTest, deviation_of_a_matrix_is_one_over_root_fan_in) {
  const Tensor tensor = read_all(*hash_source("w", DType::kF32, {300, 64}));
  double squares = 0;
  for (const float value : tensor.f32()) squares += double{value} * double{value};
  // 19200 draws of a uniform variable: the mean square is within 4 % of 1/64 (six of its own
  // deviations).
  EXPECT_NEAR(squares / static_cast<double>(tensor.num_elements()) * 64, 1.0, 0.04);
}

TEST(HashSourceTest, scalar_is_a_small_number) {
  EXPECT_LT(std::abs(read_all(*hash_source("scale.weight", DType::kF32, {})).at(0)), 0.1);
}

TEST(HashSourceTest, dtypes_other_than_floats_are_unsupported) {
  for (const DType dtype : {DType::kI64, DType::kBool, DType::kF8E4M3, DType::kF64}) {
    const Error error = error_of([&] { hash_source("ids", dtype, {2}); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("tensor 'ids'"));
  }
}

TEST(HashSourceTest, reading_past_the_end_is_an_internal_error) {
  const auto source = hash_source("w", DType::kF32, {4});
  EXPECT_EQ(error_of([&] { bits_of<uint32_t>(*source, 3, 2); }).kind(), ErrorKind::kInternal);
}

TEST(CheckpointDataTest, tensor_that_is_not_there_is_null) {
  CheckpointData data;
  data.kind = CheckpointKind::kSafetensors;
  data.tensors.emplace("a", memory_source("a", Tensor(DType::kF32, {2})));
  EXPECT_EQ(data.find_tensor("a", {2}), data.tensors.at("a"));
  EXPECT_EQ(data.find_tensor("b", {2}), nullptr);
}

}  // namespace
}  // namespace tranship

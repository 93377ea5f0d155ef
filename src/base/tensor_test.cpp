#include "tranship/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/testing.h"

namespace tranship {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array kAll = {DType::kF64,    DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                             DType::kF8E5M2, DType::kI64, DType::kI32, DType::kI16,  DType::kI8,
                             DType::kU64,    DType::kU32, DType::kU16, DType::kU8,   DType::kBool};

TEST(TensorTest, new_one_is_zeros_of_its_shape) {
  const Tensor tensor(DType::kI16, {2, 3});
  EXPECT_EQ(tensor.num_elements(), 6);
  EXPECT_EQ(tensor.bytes().size(), 12u);
  EXPECT_THAT(tensor.bytes(), Each(std::byte{0}));
}

TEST(TensorTest, scalar_has_one_element_and_an_axis_of_zero_none) {
  EXPECT_EQ(Tensor(DType::kF32, {}).num_elements(), 1);
  EXPECT_EQ(Tensor(DType::kF32, {3, 0}).num_elements(), 0);
  EXPECT_EQ(Tensor().num_elements(), 0);
}

TEST(TensorTest, size_that_is_negative_or_overflows_is_an_invalid_argument) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(error_of([&] { Tensor(DType::kF32, {big, big}); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { Tensor(DType::kF64, {int64_t{1} << 62}); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { Tensor(DType::kF32, {2, -1}); }).kind(), ErrorKind::kInvalidArgument);
}

TEST(TensorTest, values_are_copied_and_read_as_their_type) {
  const std::vector<float> floats = {1, 2.5f};
  EXPECT_THAT(Tensor::of(std::span<const float>(floats), {2}).f32(), ElementsAre(1, 2.5f));
  const std::vector<int64_t> integers = {-1, 2};
  EXPECT_THAT(Tensor::of(std::span<const int64_t>(integers), {1, 2}).i64(), ElementsAre(-1, 2));
  const Tensor booleans = Tensor::of_bool({true, false, true}, {3});
  EXPECT_EQ(booleans.dtype(), DType::kBool);
  EXPECT_THAT(booleans.bytes(), ElementsAre(std::byte{1}, std::byte{0}, std::byte{1}));
}

TEST(TensorTest, number_of_values_that_is_not_the_shapes_is_an_invalid_argument) {
  const std::vector<float> floats = {1, 2.5f};
  const Error error = error_of([&] { Tensor::of(std::span<const float>(floats), {3}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("2 values for a shape of 3 elements"));
}

TEST(TensorTest, reading_as_another_type_is_an_invalid_argument) {
  Tensor tensor(DType::kF16, {2});
  EXPECT_THAT(error_of([&] { tensor.f32(); }).what(),
              HasSubstr("read as f32, but its dtype is f16"));
  EXPECT_EQ(error_of([&] { tensor.i64(); }).kind(), ErrorKind::kInvalidArgument);
}

TEST(TensorTest, numbers_that_a_dtype_has_are_stored_exactly) {
  for (const DType dtype : kAll) {
    if (dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2) continue;
    Tensor tensor(dtype, {3});
    const bool has_sign = is_floating(dtype) || name(dtype)[0] == 'i';
    const double value = dtype == DType::kBool ? 1 : has_sign ? -100 : 100;
    tensor.set(1, value);
    EXPECT_EQ(tensor.at(0), 0) << name(dtype);
    EXPECT_EQ(tensor.at(1), value) << name(dtype);
    EXPECT_EQ(tensor.at(2), 0) << name(dtype);
  }
}

TEST(TensorTest, floats_are_rounded_to_the_nearest) {
  Tensor f16(DType::kF16, {1});
  f16.set(0, 2049);  // between 2048 and 2050: to the even mantissa
  EXPECT_EQ(f16.at(0), 2048);
  Tensor bf16(DType::kBF16, {1});
  bf16.set(0, 259);  // between 258 and 260
  EXPECT_EQ(bf16.at(0), 260);
}

TEST(TensorTest, f8_is_read_but_not_made) {
  Tensor tensor(DType::kF8E4M3, {1});
  tensor.bytes()[0] = std::byte{0x38};
  EXPECT_EQ(tensor.at(0), 1);
  EXPECT_EQ(error_of([&] { tensor.set(0, 1); }).kind(), ErrorKind::kUnsupported);
}

TEST(TensorTest, index_out_of_range_is_an_internal_error) {
  Tensor tensor(DType::kF32, {2});
  EXPECT_EQ(error_of([&] { tensor.at(2); }).kind(), ErrorKind::kInternal);
  EXPECT_EQ(error_of([&] { tensor.set(-1, 0); }).kind(), ErrorKind::kInternal);
}

TEST(DTypeTest, each_is_found_by_both_of_its_names_and_by_no_other) {
  for (const DType dtype : kAll) {
    EXPECT_EQ(find_dtype(name(dtype)), dtype);
    EXPECT_EQ(find_dtype(torch_name(dtype)), dtype);
    EXPECT_FALSE(is_floating(dtype) && is_integer(dtype));
  }
  EXPECT_EQ(find_dtype(""), std::nullopt);
  EXPECT_EQ(find_dtype("F32"), std::nullopt);
  EXPECT_FALSE(is_integer(DType::kBool) || is_floating(DType::kBool));
}

TEST(DTypeTest, sizes_are_those_of_the_formats) {
  size_t total = 0;
  for (const DType dtype : kAll) total += size_bytes(dtype);
  EXPECT_EQ(total, 8u + 4 + 2 + 2 + 1 + 1 + 2 * (8 + 4 + 2 + 1) + 1);
  EXPECT_EQ(size_bytes(DType::kBF16), 2u);
}

}  // namespace
}  // namespace tranship

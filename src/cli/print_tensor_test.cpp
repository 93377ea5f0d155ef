#include "cli/print_tensor.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tranship::cli {
namespace {

TEST(PrintTensor, rows_stand_below_each_other) {
  const std::vector<int64_t> values = {1, 2, 3, 4};
  EXPECT_EQ(describe_tensor("ids", Tensor::of(values, {2, 2})),
            "ids i64[2, 2]\n"
            "  [[1, 2],\n"
            "   [3, 4]]\n");
}

TEST(PrintTensor, a_long_axis_is_cut_in_the_middle) {
  std::vector<float> values(100);
  std::iota(values.begin(), values.end(), 0.5F);
  EXPECT_EQ(describe_tensor("x", Tensor::of(values, {100})),
            "x f32[100]\n  [0.5, 1.5, 2.5, ..., 97.5, 98.5, 99.5]\n");
  EXPECT_EQ(describe_tensor("x", Tensor::of(std::span(values).first(7), {7})),
            "x f32[7]\n  [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]\n");
}

TEST(PrintTensor, each_kind_of_element_has_its_form) {
  EXPECT_EQ(describe_tensor("b", Tensor::of_bool({true, false}, {2})),
            "b bool[2]\n  [true, false]\n");
  EXPECT_EQ(describe_tensor("n", Tensor::of(std::vector<int64_t>{9007199254740993}, {})),
            "n i64[]\n  9007199254740993\n");
  EXPECT_EQ(describe_tensor("u", Tensor(DType::kU8, {1})), "u u8[1]\n  [0]\n");
}

TEST(PrintTensor, an_empty_tensor_has_no_elements) {
  EXPECT_EQ(describe_tensor("e", Tensor(DType::kF32, {0})), "e f32[0]\n  []\n");
  EXPECT_EQ(describe_tensor("e", Tensor(DType::kF32, {1, 0})), "e f32[1, 0]\n  [[]]\n");
}

}  // namespace
}  // namespace tranship::cli

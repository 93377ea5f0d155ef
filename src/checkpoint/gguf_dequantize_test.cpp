#include "checkpoint/gguf_dequantize.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "checkpoint/gguf_testing.h"

namespace tranship {
namespace {

using ::testing::ElementsAreArray;

TensorSourcePtr source_of(const GgufTensor& tensor) {
  return ggml_source(tensor.name, tensor.type, tensor.shape, tensor.range);
}

/// Equal bits; of NaN only that both are.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

class GgufDequantizeTest : public ::testing::TestWithParam<std::string> {
 protected:
  GgufFile gguf_ = GgufFile::open(gguf_case("blocks.gguf"));
  TensorSourcePtr blocks_ = source_of(*gguf_.find_tensor(GetParam()));
  Tensor expected_ = read_all(*source_of(*gguf_.find_tensor(GetParam() + ".f32")));
};

TEST_P(GgufDequantizeTest, equals_the_package_bit_for_bit) {
  ASSERT_EQ(blocks_->dtype(), DType::kF32);
  ASSERT_THAT(blocks_->shape(), ElementsAreArray(expected_.shape()));
  ASSERT_EQ(blocks_->file_range(), std::nullopt);
  const Tensor decoded = read_all(*blocks_);
  for (size_t i = 0; i < decoded.f32().size(); ++i) {
    ASSERT_TRUE(same(decoded.f32()[i], expected_.f32()[i]))
        << i << ": " << decoded.f32()[i] << " " << expected_.f32()[i];
  }
}

TEST_P(GgufDequantizeTest, any_range_is_the_same_elements) {
  const int64_t total = blocks_->num_elements();
  for (const int64_t first :
       {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{33}, int64_t{255}, int64_t{257}, total - 3}) {
    for (const int64_t count :
         {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{63}, int64_t{256}, int64_t{500}}) {
      if (count > total - first) continue;
      std::vector<std::byte> bytes(static_cast<size_t>(count) * sizeof(float));
      blocks_->read(first, count, bytes);
      for (int64_t i = 0; i < count; ++i) {
        float value;
        std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(float), sizeof(float));
        ASSERT_TRUE(same(value, expected_.f32()[static_cast<size_t>(first + i)]))
            << first << " " << count << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufDequantizeTest,
                         ::testing::Values("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k",
                                           "q6_k"),
                         [](const auto& parameter) { return parameter.param; });

TEST(GgufPlainTypes, lie_in_the_file_with_their_dtype) {
  const GgufFile gguf = GgufFile::open(gguf_case("blocks.gguf"));
  for (const std::string_view name : {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8"}) {
    const GgufTensor* tensor = gguf.find_tensor(name);
    ASSERT_NE(tensor, nullptr);
    const TensorSourcePtr source = source_of(*tensor);
    EXPECT_EQ(source->dtype(), *find_dtype(name));
    ASSERT_TRUE(source->file_range().has_value());
    EXPECT_EQ(source->file_range()->offset, tensor->range.offset);
  }
  const Tensor integers = read_all(*source_of(*gguf.find_tensor("i16")));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(integers.at(i), static_cast<double>(i - 3));
}

TEST(GgufTypes, only_those_with_a_decoder_can_be_read) {
  int readable = 0;
  for (uint32_t number = 0; number < 64; ++number) {
    if (const auto type = find_ggml_layout(number))
      readable += static_cast<int>(can_read(type->type));
  }
  EXPECT_EQ(readable, 16);
  EXPECT_FALSE(can_read(GgmlType::kQ2_K));
  EXPECT_FALSE(can_read(GgmlType::kMXFP4));
  EXPECT_EQ(find_ggml_layout(4), std::nullopt);
}

}  // namespace
}  // namespace tranship

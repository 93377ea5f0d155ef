#include "ir/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/half.h"
#include "base/testing.h"
#include "tranship/error.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor counting(std::vector<int64_t> shape) {
  Tensor tensor(DType::kF32, std::move(shape));
  std::iota(tensor.f32().begin(), tensor.f32().end(), 0.0f);
  return tensor;
}

/// A source without a file that remembers the longest piece it was asked for.
class Recording final : public TensorSource {
 public:
  explicit Recording(std::vector<int64_t> shape)
      : TensorSource("w", DType::kF32, std::move(shape)) {}
  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    longest = std::max(longest, count);
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(first + i);
      std::memcpy(out.data() + 4 * i, &value, sizeof value);
    }
  }
  mutable int64_t longest = 0;
};

std::vector<float> piece(const TensorSource& source, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  source.read(first, count, std::as_writable_bytes(std::span(values)));
  return values;
}

/// Each way to cut the tensor in two gives the same elements as reading it at once.
void expect_readable_in_pieces(const TensorSource& source) {
  const Tensor whole = read_all(source);
  for (int64_t cut = 0; cut <= source.num_elements(); ++cut) {
    std::vector<float> joined = piece(source, 0, cut);
    const std::vector<float> rest = piece(source, cut, source.num_elements() - cut);
    joined.insert(joined.end(), rest.begin(), rest.end());
    ASSERT_TRUE(std::ranges::equal(joined, whole.f32())) << "cut at " << cut;
  }
}

class TensorSourceFile : public testing::Test {
 protected:
  TensorSourceFile() {
    const std::vector<float> values = {-1, 0, 1, 2, 3, 4, 5};
    file_ =
        MappedFile::open(folder_.write("numbers.bin", as_text(std::as_bytes(std::span(values)))));
  }

  TestFolder folder_;
  std::shared_ptr<const MappedFile> file_;
};

TEST_F(TensorSourceFile, range_source_reads_the_bytes_where_they_lie) {
  const auto source = range_source("w", DType::kF32, {2, 3}, {file_, 4, 24});
  EXPECT_EQ(source->name(), "w");
  EXPECT_EQ(source->size_bytes(), 24u);
  EXPECT_THAT(piece(*source, 0, 6), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(piece(*source, 4, 2), ElementsAre(4, 5));
  expect_readable_in_pieces(*source);
  ASSERT_TRUE(source->file_range().has_value());
  EXPECT_EQ(source->file_range()->offset, 4u);
}

TEST_F(TensorSourceFile, range_of_another_size_than_the_tensor_is_an_internal_error) {
  EXPECT_EQ(error_of([&] { range_source("w", DType::kF32, {2, 3}, {file_, 4, 20}); }).kind(),
            ErrorKind::kInternal);
}

TEST_F(TensorSourceFile, range_past_the_end_of_the_file_is_an_internal_error) {
  EXPECT_EQ(error_of([&] { range_source("w", DType::kF32, {2, 3}, {file_, 8, 24}); }).kind(),
            ErrorKind::kInternal);
  const auto wrap = std::numeric_limits<size_t>::max() - 3;
  EXPECT_EQ(error_of([&] { range_source("w", DType::kF32, {2, 3}, {file_, wrap, 24}); }).kind(),
            ErrorKind::kInternal);
}

TEST_F(TensorSourceFile, reading_past_the_end_is_an_internal_error) {
  const auto source = range_source("w", DType::kF32, {2, 3}, {file_, 4, 24});
  EXPECT_EQ(error_of([&] { piece(*source, 5, 2); }).kind(), ErrorKind::kInternal);
  EXPECT_EQ(error_of([&] { piece(*source, -1, 1); }).kind(), ErrorKind::kInternal);
  std::vector<std::byte> small(4);
  EXPECT_EQ(error_of([&] { source->read(0, 2, small); }).kind(), ErrorKind::kInternal);
}

TEST_F(TensorSourceFile, reshape_keeps_the_range_of_the_file) {
  const auto source =
      reshape_source(range_source("w", DType::kF32, {2, 3}, {file_, 4, 24}), {3, 2, 1});
  EXPECT_THAT(source->shape(), ElementsAre(3, 2, 1));
  ASSERT_TRUE(source->file_range().has_value());
  EXPECT_THAT(piece(*source, 1, 3), ElementsAre(1, 2, 3));
}

TEST_F(TensorSourceFile, transpose_of_a_range_reads_it_in_place) {
  const auto source = transpose_source(range_source("w", DType::kF32, {2, 3}, {file_, 4, 24}));
  EXPECT_THAT(source->shape(), ElementsAre(3, 2));
  EXPECT_THAT(piece(*source, 0, 6), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_FALSE(source->file_range().has_value());
  expect_readable_in_pieces(*source);
}

TEST(TensorSourceTest, memory_source_reads_its_tensor) {
  const auto source = memory_source("m", counting({2, 2}));
  EXPECT_THAT(piece(*source, 1, 2), ElementsAre(1, 2));
  EXPECT_FALSE(source->file_range().has_value());
  expect_readable_in_pieces(*source);
}

TEST(TensorSourceTest, scalar_has_one_element_and_an_empty_axis_none) {
  EXPECT_EQ(memory_source("s", Tensor(DType::kI64, {}))->num_elements(), 1);
  const auto empty = memory_source("e", Tensor(DType::kF32, {3, 0}));
  EXPECT_EQ(empty->num_elements(), 0);
  EXPECT_EQ(read_all(*transpose_source(empty)).shape(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(read_all(*permute_rows_source(empty, [](int64_t r) { return r; })).num_elements(), 0);
}

TEST(TensorSourceTest, shape_whose_size_overflows_is_refused) {
  const int64_t big = int64_t{1} << 32;
  EXPECT_EQ(error_of([&] { Recording({big, big}); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { Recording({int64_t{1} << 61}); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { Recording({2, -1}); }).kind(), ErrorKind::kInvalidArgument);
}

TEST(TensorSourceTest, cast_to_the_same_dtype_is_the_source_itself) {
  const auto source = memory_source("m", counting({4}));
  EXPECT_EQ(cast_source(source, DType::kF32), source);
}

TEST(TensorSourceTest, cast_over_several_blocks_equals_element_by_element) {
  const int64_t count = 3 * 65536 + 17;
  const auto source =
      cast_source(std::make_shared<Recording>(std::vector<int64_t>{count}), DType::kBF16);
  EXPECT_EQ(source->dtype(), DType::kBF16);
  std::vector<uint16_t> bits(static_cast<size_t>(count - 5));
  source->read(5, count - 5, std::as_writable_bytes(std::span(bits)));
  for (size_t i = 0; i < bits.size(); ++i)
    ASSERT_EQ(bits[i], f32_to_bf16(static_cast<float>(i + 5))) << i;
}

TEST(TensorSourceTest, cast_that_overflows_names_the_tensor_and_counts_over_all_of_it) {
  Tensor tensor = counting({70000});
  tensor.set(0, 1e9);
  const auto source =
      cast_source(memory_source("model.norm.weight", std::move(tensor)), DType::kF16);
  const Error error = error_of([&] { piece(*cast_source(source, DType::kF32), 69000, 1000); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  // 65520 and above round to infinity: 70000 - 65520 of the counting values, and the one set above.
  EXPECT_THAT(
      error.what(),
      HasSubstr("tensor 'model.norm.weight': 4481 of its 70000 f32 values do not fit in f16"));
  EXPECT_THAT(error.what(), HasSubstr("--dtype f32 or bf16"));
}

TEST(TensorSourceTest, cast_keeps_infinity_that_was_there_before) {
  Tensor tensor(DType::kF32, {1});
  tensor.set(0, -INFINITY);
  EXPECT_EQ(read_all(*cast_source(memory_source("m", std::move(tensor)), DType::kF16)).at(0),
            -INFINITY);
}

TEST(TensorSourceTest, cast_of_integers_that_do_not_fit_is_refused) {
  Tensor tensor(DType::kI64, {2});
  tensor.i64()[1] = int64_t{1} << 31;
  const auto source = cast_source(memory_source("ids", std::move(tensor)), DType::kI32);
  const Error error = error_of([&] { read_all(*source); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("tensor 'ids': 1 of its 2 i64 values do not fit in i32"));
}

TEST(TensorSourceTest, cast_without_a_conversion_is_refused_before_reading) {
  const Error error =
      error_of([&] { cast_source(memory_source("w", counting({2})), DType::kF8E4M3); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("tensor 'w' is f32 and there is no conversion to f8_e4m3"));
}

TEST(TensorSourceTest, reshape_to_another_number_of_elements_is_an_internal_error) {
  EXPECT_EQ(error_of([&] { reshape_source(memory_source("m", counting({4})), {5}); }).kind(),
            ErrorKind::kInternal);
}

TEST(TensorSourceTest, concat_reads_its_parts_one_after_another) {
  const TensorSourcePtr source =
      concat_source("w",
                    {memory_source("a", counting({2, 2})), memory_source("b", counting({0})),
                     std::make_shared<Recording>(std::vector<int64_t>{3})},
                    {7, 1});
  EXPECT_EQ(source->name(), "w");
  EXPECT_THAT(piece(*source, 0, 7), ElementsAre(0, 1, 2, 3, 0, 1, 2));
  EXPECT_THAT(piece(*source, 3, 2), ElementsAre(3, 0));
  expect_readable_in_pieces(*source);
}

TEST(TensorSourceTest, concat_of_what_does_not_fit_is_an_internal_error) {
  const TensorSourcePtr part = memory_source("a", counting({2, 2}));
  EXPECT_THROW(concat_source("w", {}, {0}), Error);
  EXPECT_THROW(concat_source("w", {part, part}, {7}), Error);
  EXPECT_THROW(concat_source("w", {part, memory_source("b", Tensor(DType::kI64, {2}))}, {6}),
               Error);
}

TEST(TensorSourceTest, permuted_rows_come_from_where_the_function_says) {
  const auto source = permute_rows_source(memory_source("m", counting({3, 2, 2})),
                                          [](int64_t r) { return (r + 1) % 3; });
  EXPECT_THAT(source->shape(), ElementsAre(3, 2, 2));
  EXPECT_THAT(piece(*source, 0, 12), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3));
  expect_readable_in_pieces(*source);
}

TEST(TensorSourceTest, permutation_that_leaves_the_tensor_is_an_internal_error) {
  const auto source =
      permute_rows_source(memory_source("m", counting({2, 2})), [](int64_t r) { return r + 1; });
  EXPECT_EQ(error_of([&] { read_all(*source); }).kind(), ErrorKind::kInternal);
}

TEST(TensorSourceTest, transpose_equals_the_definition_for_each_element_size) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64}) {
    Tensor tensor(dtype, {37, 70});
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, static_cast<double>(i % 251));
    const Tensor result = read_all(*transpose_source(memory_source("m", tensor)));
    for (int64_t r = 0; r < 37; ++r) {
      for (int64_t c = 0; c < 70; ++c)
        ASSERT_EQ(result.at(c * 37 + r), tensor.at(r * 70 + c)) << name(dtype);
    }
  }
}

TEST(TensorSourceTest, transpose_can_be_read_from_any_element) {
  expect_readable_in_pieces(*transpose_source(memory_source("m", counting({7, 11}))));
}

TEST(TensorSourceTest, transpose_twice_is_the_source) {
  const auto source = transpose_source(transpose_source(memory_source("m", counting({5, 9}))));
  EXPECT_TRUE(std::ranges::equal(read_all(*source).f32(), counting({5, 9}).f32()));
}

TEST(TensorSourceTest, transpose_asks_for_at_most_a_megabyte_at_a_time) {
  const auto inner = std::make_shared<Recording>(std::vector<int64_t>{3, 400000});
  const Tensor result = read_all(*transpose_source(inner));
  EXPECT_LE(inner->longest * 4, 1 << 20);
  EXPECT_EQ(result.f32()[3 * 399999 + 1], 799999.0f);
  EXPECT_EQ(result.f32()[3 * 262144 + 2], 2 * 400000.0f + 262144.0f);
  const auto tall = std::make_shared<Recording>(std::vector<int64_t>{400000, 3});
  EXPECT_EQ(read_all(*transpose_source(tall)).f32()[400000 * 2 + 399999], 3.0f * 399999 + 2);
  EXPECT_LE(tall->longest * 4, 1 << 20);
}

}  // namespace
}  // namespace tranship

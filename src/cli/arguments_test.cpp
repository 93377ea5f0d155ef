#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage.h"

namespace tranship::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

template <class Action>
std::string usage_error_of(Action&& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "a UsageError was expected";
  return "";
}

TEST(Arguments, sizes_are_read_by_name) {
  EXPECT_THAT(parse_sizes({"batch=1", "sequence=128"}),
              ElementsAre(Pair("batch", 1), Pair("sequence", 128)));
  EXPECT_TRUE(parse_sizes({}).empty());
}

TEST(Arguments, a_size_that_is_not_one_is_named) {
  for (const char* text : {"batch", "batch=", "=1", "batch=0", "batch=-1", "batch=x", "batch=1.5",
                           "batch=1 ", "batch=1000000000000", "batch=99999999999999999999"}) {
    EXPECT_THAT(usage_error_of([&] { parse_sizes({text}); }), HasSubstr(text)) << text;
  }
}

TEST(Arguments, a_name_has_one_size) {
  EXPECT_THAT(usage_error_of([] { parse_sizes({"batch=1", "batch=2"}); }),
              HasSubstr("'batch' has two sizes"));
}

TEST(Arguments, a_range_has_a_name_and_two_ends) {
  const DynamicDim dim = parse_range("sequence=1:2048");
  EXPECT_EQ(dim.name, "sequence");
  EXPECT_EQ(dim.min, 1);
  EXPECT_EQ(dim.max, 2048);
}

TEST(Arguments, either_end_of_a_range_may_be_left_out) {
  EXPECT_EQ(parse_range("s=16:").min, 16);
  EXPECT_EQ(parse_range("s=16:").max, std::nullopt);
  EXPECT_EQ(parse_range("s=:16").min, 1);
  EXPECT_EQ(parse_range("s=:16").max, 16);
  EXPECT_EQ(parse_range("past=0:16").min, 0);
}

TEST(Arguments, a_range_that_is_not_one_is_named) {
  for (const char* text : {"s", "s=", "s=:", "s=5", "s=-1:5", "s=0:0x", "s=5:4", "s=1:2:3", "=1:2",
                           "s=a:b", "s=1:1000000000000"}) {
    EXPECT_THAT(usage_error_of([&] { parse_range(text); }), HasSubstr(text)) << text;
  }
  EXPECT_THAT(usage_error_of([] { parse_ranges({"s=1:2", "s=1:3"}); }), HasSubstr("two ranges"));
}

TEST(Arguments, an_assignment_is_cut_at_the_first_equals_sign) {
  const Assignment assignment = parse_assignment("--input", "x=a=b");
  EXPECT_EQ(assignment.name, "x");
  EXPECT_EQ(assignment.value, "a=b");
}

TEST(Arguments, whole_numbers_make_an_i64_tensor) {
  const Tensor tensor = parse_tensor("x", "[[1, 2, 3], [-4, 5, 9007199254740993]]");
  EXPECT_EQ(tensor.dtype(), DType::kI64);
  EXPECT_THAT(tensor.shape(), ElementsAre(2, 3));
  EXPECT_THAT(tensor.i64(), ElementsAre(1, 2, 3, -4, 5, 9007199254740993))
      << "more digits than a double has";
}

TEST(Arguments, a_point_or_an_exponent_makes_an_f32_tensor) {
  const Tensor tensor = parse_tensor("x", "[1, 2.5, 1e-1]");
  EXPECT_EQ(tensor.dtype(), DType::kF32);
  EXPECT_THAT(tensor.f32(), ElementsAre(1.0F, 2.5F, 0.1F));
}

TEST(Arguments, true_and_false_make_a_bool_tensor) {
  const Tensor tensor = parse_tensor("x", "[true, false]");
  EXPECT_EQ(tensor.dtype(), DType::kBool);
  EXPECT_EQ(tensor.at(0), 1);
  EXPECT_EQ(tensor.at(1), 0);
}

TEST(Arguments, a_single_value_is_a_scalar) {
  EXPECT_TRUE(parse_tensor("x", "7").shape().empty());
  EXPECT_EQ(parse_tensor("x", "7").at(0), 7);
}

TEST(Arguments, a_literal_that_is_no_tensor_is_refused) {
  for (const char* text :
       {"[[1, 2], [3]]", "[1, [2]]", "[[1], 2]", "[1, true]", "[]", "[[]]", "\"text\"", "[null]",
        "{}", "[1,", "1 2", "", "[18446744073709551615]", "True"}) {
    EXPECT_THAT(usage_error_of([&] { parse_tensor("x", text); }), HasSubstr("--input x=")) << text;
  }
}

TEST(Arguments, a_long_literal_is_not_repeated_in_its_error_and_that_of_a_file_not_at_all) {
  std::string numbers = "[1";
  for (int i = 0; i < 100000; ++i) numbers += ", 1";
  for (const std::string& text : {numbers + ", \"x\"]", numbers + ", [2]]", numbers}) {
    EXPECT_LT(usage_error_of([&] { parse_tensor("x", text); }).size(), 300U);
    const std::string of_file = usage_error_of([&] { parse_tensor("x", text, "@x.json"); });
    EXPECT_THAT(of_file, HasSubstr("--input x=@x.json: "));
    EXPECT_LT(of_file.size(), 300U);
  }
  EXPECT_THAT(usage_error_of([] { parse_tensor("x", "[1,\n2,\n", "@x.json"); }),
              HasSubstr("line 3, column 1 is not JSON"));
}

}  // namespace
}  // namespace tranship::cli

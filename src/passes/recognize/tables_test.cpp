// T5's bias by distance, as its model computes it, and what is none.
#include "passes/recognize/function_of.h"
#include "passes/recognize/testing.h"

namespace tranship::passes {
namespace {

class Tables : public ::testing::TestWithParam<Case> {};
TEST_P(Tables, AreReadByDistance) { expect_recognized(GetParam()); }

/// 8 buckets, half of them for keys behind the query; distances over 20 share the last.
const std::string kBuckets =
    "  %w = Param {name=\"w\", dtype=f32, shape=[8, 4]}\n"
    "  %i = Iota {count=s}\n  %q = Unsqueeze(%i) {axes=[1]}\n  %k = Unsqueeze(%i) {axes=[0]}\n"
    "  %d = Binary(%k, %q) {fn=sub}\n"
    "  %i0 = Constant {value=i64[](0)}\n  %i2 = Constant {value=i64[](2)}\n"
    "  %i3 = Constant {value=i64[](3)}\n  %i4 = Constant {value=i64[](4)}\n"
    "  %f2 = Constant {value=f32[](2)}\n  %octaves = Constant {value=f32[](2.3025851)}\n"
    "  %behind = Compare(%d, %i0) {fn=gt}\n  %b = Cast(%behind) {to=i64}\n"
    "  %first = Binary(%b, %i4) {fn=mul}\n  %a = Unary(%d) {fn=abs}\n"
    "  %near = Compare(%a, %i2) {fn=lt}\n  %wide = Cast(%a) {to=f32}\n"
    "  %r = Binary(%wide, %f2) {fn=div}\n  %l = Unary(%r) {fn=log}\n"
    "  %share = Binary(%l, %octaves) {fn=div}\n  %step = Binary(%share, %f2) {fn=mul}\n"
    "  %whole = Cast(%step) {to=i64}\n  %far = Binary(%whole, %i2) {fn=add}\n"
    "  %last = Expand(%i3) {shape=[s, s]}\n  %most = Binary(%far, %last) {fn=min}\n"
    "  %bucket = Where(%near, %a, %most)\n  %ids = Binary(%first, %bucket) {fn=add}\n"
    "  %rows = Embedding(%w, %ids)\n  %y = Transpose(%rows) {perm=[2, 0, 1]}\n";

INSTANTIATE_TEST_SUITE_P(
    Biases, Tables,
    ::testing::Values(
        Case{"of_t5", kBuckets, "Gather(", "log"},
        Case{"of_t5_with_columns_behind", with(kBuckets, "perm=[2, 0, 1]", "perm=[0, 1, 2]"),
             "{axis=0}", "log"},
        Case{"of_one_query",
             with(with(with(kBuckets, "  %i = Iota",
                            "  %j = Constant {value=i64[1](3)}\n  %i = Iota"),
                       "Unsqueeze(%i) {axes=[1]}", "Unsqueeze(%j) {axes=[1]}"),
                  "shape=[s, s]", "shape=[1, s]"),
             "Gather(", "log"},
        Case{"that_never_end_stay",
             with(kBuckets, "Binary(%far, %last) {fn=min}", "Binary(%far, %last) {fn=max}"), "log"},
        Case{"of_what_is_no_distance_stay",
             with(kBuckets, "%d = Binary(%k, %q) {fn=sub}", "%d = Binary(%k, %q) {fn=mul}"), "log"},
        Case{"of_two_distances_stay",
             with(kBuckets, "%near = Compare(%a, %i2)", "%near = Compare(%k, %i2)"), "log"},
        Case{"of_an_input_stay",
             with(kBuckets, "%k = Unsqueeze(%i) {axes=[0]}",
                  "%k = Input {name=\"k\", dtype=i64, shape=[1, s]}"),
             "log"}),
    name_of);

TEST(TableNumbers, StayTheSame) {
  expect_same_numbers(kBuckets, {{"s", 3}});
  expect_same_numbers(kBuckets, {{"s", 70}});
}

/// n * n - 3 n + 1, cut to [0, 9].
std::string cut_parabola() {
  return "  %x = Iota {count=s}\n  %i3 = Constant {value=i64[](3)}\n"
         "  %i1 = Constant {value=i64[](1)}\n  %i0 = Constant {value=i64[](0)}\n"
         "  %i9 = Constant {value=i64[](9)}\n  %xx = Binary(%x, %x) {fn=mul}\n"
         "  %x3 = Binary(%x, %i3) {fn=mul}\n  %a = Binary(%xx, %x3) {fn=sub}\n"
         "  %c = Binary(%a, %i1) {fn=add}\n  %low = Binary(%c, %i0) {fn=max}\n"
         "  %y = Binary(%low, %i9) {fn=min}\n";
}

class FunctionOf : public ::testing::Test {
 protected:
  std::unique_ptr<ir::Graph> function() {
    const IsVariable is_variable = [](const ir::Value& v, const Place& at) {
      return number_at(v, at) == Linear::coordinate(0, 1);
    };
    return function_of(graph_->value(graph_->outputs()[0].value), {Linear::coordinate(0, 1)},
                       is_variable);
  }
  GraphPtr graph_ = graph_of(cut_parabola());
};

TEST_F(FunctionOf, IsAppliedToEachNumber) {
  const auto f = function();
  ASSERT_NE(f, nullptr);
  const Tensor out = applied(*f, Tensor::of(std::vector<int64_t>{-1, 0, 1, 2, 3, 4, 5}, {7}));
  EXPECT_EQ(std::vector<int64_t>(out.i64().begin(), out.i64().end()),
            (std::vector<int64_t>{5, 1, 0, 0, 1, 5, 9}));
}

TEST_F(FunctionOf, IsConstantOnlyWhereThatIsProved) {
  const auto f = function();
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(constant_on(*f, 1, 2), std::nullopt);    // 0 at both, but not by bounds
  EXPECT_EQ(constant_on(*f, 5, 1e3), std::nullopt);  // 9 throughout, but the parts overlap
  EXPECT_EQ(constant_on(*f, 1e4, 2e4), 9);
  EXPECT_EQ(constant_on(*f, -1e4, -5), 9);
  EXPECT_EQ(constant_on(*f, 1e4, 1e9), std::nullopt);  // over what is exact
}

}  // namespace
}  // namespace tranship::passes

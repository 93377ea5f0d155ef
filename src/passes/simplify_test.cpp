// What simplify drops and what it puts off, as text before and text after.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/passes.h"

namespace tranship::passes {
namespace {

std::string simplified(const std::string& nodes) {
  GraphPtr graph = ir::parse("graph g\n" + nodes + "  output y %y\nend\n");
  while (simplify(graph)) {
  }
  eliminate_dead_code(graph);
  ir::verify(*graph);
  return ir::print(*graph);
}

struct Case {
  const char* name;
  std::string before;
  const char* expected;  // what the text after holds
  const char* gone = nullptr;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Simplify : public ::testing::TestWithParam<Case> {};

TEST_P(Simplify, DropsAndPutsOff) {
  const std::string after = simplified(GetParam().before);
  EXPECT_NE(after.find(GetParam().expected), std::string::npos) << after;
  const char* gone = GetParam().gone;
  EXPECT_TRUE(gone == nullptr || after.find(gone) == std::string::npos) << after;
}

const std::string kX = "  %x = Input {name=\"x\", dtype=f32, shape=[n, 4]}\n";
const std::string kRow = "  %r = Input {name=\"r\", dtype=f32, shape=[1, 4]}\n";
const std::string kFlags = "  %x = Input {name=\"x\", dtype=bool, shape=[n, 4]}\n";

INSTANTIATE_TEST_SUITE_P(
    Neutral, Simplify,
    ::testing::Values(
        Case{"and_with_true",
             kFlags + "  %t = Constant {value=bool[](1)}\n  %y = Binary(%t, %x) {fn=and}\n",
             "output y %0"},
        Case{"and_with_false_stays",
             kFlags + "  %t = Constant {value=bool[](0)}\n  %y = Binary(%t, %x) {fn=and}\n", "and"},
        Case{"less_zero", kX + "  %o = Constant {value=f32[](0)}\n  %y = Binary(%x, %o) {fn=sub}\n",
             "output y %0"},
        Case{"zero_less_x_stays",
             kX + "  %o = Constant {value=f32[](0)}\n  %y = Binary(%o, %x) {fn=sub}\n", "sub"},
        Case{"over_one", kX + "  %o = Constant {value=f32[](1)}\n  %y = Binary(%x, %o) {fn=div}\n",
             "output y %0"},
        Case{"one_over_x_stays",
             kX + "  %o = Constant {value=f32[](1)}\n  %y = Binary(%o, %x) {fn=div}\n", "div"}),
    [](const auto& c) { return c.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Views, Simplify,
    ::testing::Values(
        Case{"axes_added_twice_are_added_once",
             kX + "  %a = Unsqueeze(%x) {axes=[1]}\n  %y = Unsqueeze(%a) {axes=[0, 4]}\n",
             "Unsqueeze(%0) {axes=[0, 2, 4]} : f32[1, n, 1, 4, 1]"},
        Case{"axes_added_and_dropped",
             kX + "  %a = Unsqueeze(%x) {axes=[1]}\n  %y = Squeeze(%a) {axes=[1]}\n",
             "output y %0"},
        Case{"axes_added_and_some_dropped",
             kX + "  %a = Unsqueeze(%x) {axes=[0, 1]}\n  %y = Squeeze(%a) {axes=[1]}\n",
             "Unsqueeze(%0) {axes=[0]}", "Squeeze"},
        Case{"a_reshape_of_added_axes",
             kX + "  %a = Unsqueeze(%x) {axes=[0]}\n  %y = Reshape(%a) {shape=[4*n]}\n",
             "Reshape(%0) {shape=[4*n]}", "Unsqueeze"},
        Case{"there_and_back",
             kX + "  %a = Reshape(%x) {shape=[2, 2*n]}\n  %y = Reshape(%a) {shape=[n, 4]}\n",
             "output y %0"},
        Case{"turned_twice",
             "  %x = Input {name=\"x\", dtype=f32, shape=[n, 4, 5]}\n"
             "  %a = Transpose(%x) {perm=[1, 2, 0]}\n  %y = Transpose(%a) {perm=[0, 2, 1]}\n",
             "Transpose(%0) {perm=[1, 0, 2]} : f32[4, n, 5]"},
        Case{"turned_and_back",
             kX + "  %a = Transpose(%x) {perm=[1, 0]}\n  %y = Transpose(%a) {perm=[1, 0]}\n",
             "output y %0"},
        Case{"slices_joined_again",
             kX + "  %a = Slice(%x) {axis=0, begin=0, end=1, step=1}\n"
                  "  %b = Slice(%x) {axis=0, begin=1, end=n, step=1}\n"
                  "  %y = Concat(%a, %b) {axis=0}\n",
             "output y %0"},
        Case{"slices_joined_the_other_way_stay",
             kX + "  %a = Slice(%x) {axis=0, begin=0, end=1, step=1}\n"
                  "  %b = Slice(%x) {axis=0, begin=1, end=n, step=1}\n"
                  "  %y = Concat(%b, %a) {axis=0}\n",
             "Concat"},
        Case{"slices_with_a_gap_stay",
             kX + "  %a = Slice(%x) {axis=1, begin=0, end=1, step=1}\n"
                  "  %b = Slice(%x) {axis=1, begin=2, end=4, step=1}\n"
                  "  %y = Concat(%a, %b) {axis=1}\n",
             "Concat"},
        Case{"slices_without_the_last_stay",
             kX + "  %a = Slice(%x) {axis=1, begin=0, end=1, step=1}\n"
                  "  %b = Slice(%x) {axis=1, begin=1, end=3, step=1}\n"
                  "  %y = Concat(%a, %b) {axis=1}\n",
             "Concat"}),
    [](const auto& c) { return c.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Repeats, Simplify,
    ::testing::Values(
        Case{"an_operand_that_is_broadcast_anyway",
             kX + kRow + "  %e = Expand(%r) {shape=[n, 4]}\n  %y = Binary(%x, %e) {fn=add}\n",
             "Binary(%0, %1) {fn=add}", "Expand"},
        Case{"an_operand_that_gives_the_shape_stays",
             kRow + "  %e = Expand(%r) {shape=[n, 4]}\n  %y = Binary(%r, %e) {fn=add}\n", "Expand"},
        Case{"a_scalar_in_a_choice",
             kX + "  %c = Compare(%x, %x) {fn=lt}\n  %s = Constant {value=f32[](2)}\n"
                  "  %e = Full(%s) {shape=[n, 4]}\n  %y = Where(%c, %x, %e)\n",
             "Where(%1, %0, %2)", "Full"},
        Case{"a_function_comes_first",
             kRow + "  %e = Expand(%r) {shape=[n, 4]}\n  %y = Unary(%e) {fn=sin}\n",
             "Expand(%1) {shape=[n, 4]}", "Unary(%1)"},
        Case{"repeated_twice",
             kRow + "  %e = Expand(%r) {shape=[n, 4]}\n  %y = Expand(%e) {shape=[2, n, 4]}\n",
             "Expand(%0) {shape=[2, n, 4]}"},
        Case{"rows_of_a_table_read_for_each_row",
             "  %w = Param {name=\"w\", dtype=f32, shape=[9, 4]}\n"
             "  %i = Input {name=\"i\", dtype=i64, shape=[1, s]}\n"
             "  %e = Expand(%i) {shape=[n, s]}\n  %y = Embedding(%w, %e)\n",
             "Embedding(%0, %1) : f32[1, s, 4]"}),
    [](const auto& c) { return c.param.name; });

const std::string kZeros = "  %z = Constant {value=i64[1, 4](0, 0, 0, 0)}\n";
const std::string kOrder =
    "  %o = Constant {value=i64[1, 4](0, 1, 2, 3)}\n"
    "  %i = Slice(%o) {axis=1, begin=0, end=n, step=1}\n";

INSTANTIATE_TEST_SUITE_P(
    Reads, Simplify,
    ::testing::Values(
        Case{"of_one_number", kZeros + kOrder + "  %y = GatherElements(%z, %i) {axis=1}\n",
             "Expand(%0) {shape=[1, n]}", "Gather"},
        Case{"of_several_numbers_stay",
             "  %z = Constant {value=i64[1, 4](0, 0, 0, 1)}\n" + kOrder +
                 "  %y = GatherElements(%z, %i) {axis=1}\n",
             "GatherElements"},
        Case{"that_may_be_outside_stay",
             "  %z = Constant {value=i64[1, 3](0, 0, 0)}\n" + kOrder +
                 "  %y = GatherElements(%z, %i) {axis=1}\n",
             "GatherElements"},
        Case{"in_order", kX + "  %i = Iota {count=n}\n  %y = Gather(%x, %i) {axis=0}\n",
             "output y %0"},
        Case{"of_the_first_stay", kX + "  %i = Iota {count=3}\n  %y = Gather(%x, %i) {axis=1}\n",
             "Gather"}),
    [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace tranship::passes

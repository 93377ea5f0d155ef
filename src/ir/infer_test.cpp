// What does not fit together is refused, with expected and found; what cannot be proved is
// remembered.
#include "ir/infer.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "tranship/error.h"

namespace tranship::ir {
namespace {

/// x f32[batch, sequence, 16], y f32[batch, other, 16], m f32[16, 4], v f32[7], flag bool[batch],
/// ids i64[batch, sequence].
std::string with_inputs(const std::string& line) {
  return "graph g\n"
         "  %x = Input {name=\"x\", dtype=f32, shape=[batch, sequence, 16]}\n"
         "  %y = Input {name=\"y\", dtype=f32, shape=[batch, other, 16]}\n"
         "  %m = Input {name=\"m\", dtype=f32, shape=[16, 4]}\n"
         "  %v = Input {name=\"v\", dtype=f32, shape=[7]}\n"
         "  %flag = Input {name=\"flag\", dtype=bool, shape=[batch]}\n"
         "  %ids = Input {name=\"ids\", dtype=i64, shape=[batch, sequence]}\n"
         "  " +
         line + "\nend\n";
}

struct Refused {
  const char* line;
  const char* message;
};

class Infer : public ::testing::TestWithParam<Refused> {};

TEST_P(Infer, RefusesOperandsThatDoNotFit) {
  try {
    parse(with_inputs(GetParam().line));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Infer,
    ::testing::Values(
        Refused{"%z = Binary(%x, %v) {fn=add}", "sizes do not broadcast: 16 and 7 differ"},
        Refused{"%z = Binary(%x, %ids) {fn=add}", "operands are f32 and i64"},
        Refused{"%z = Binary(%flag, %flag) {fn=add}", "add does not take bool"},
        Refused{"%z = Unary(%x) {fn=not}", "expected bool"},
        Refused{"%z = MatMul(%x, %v)", "expected rank 2 or more"},
        Refused{"%z = MatMul(%m, %m)", "inner sizes: 4 and 16 differ"},
        Refused{"%z = Linear(%x, %m, _)", "features in: 16 and 4 differ"},
        Refused{"%z = RmsNorm(%x, %v) {eps=1}", "16 and 7 differ"},
        Refused{"%z = Reshape(%m) {shape=[3, 21]}", "64 and 63 differ"},
        Refused{"%z = Transpose(%m) {perm=[0, 0]}", "perm does not name each axis"},
        Refused{"%z = Expand(%m) {shape=[16, 5]}", "4 and 5 differ"},
        Refused{"%z = Squeeze(%m) {axes=[0]}", "16 and 1 differ"},
        Refused{"%z = Concat(%m, %v) {axis=0}", "expected rank 2"},
        Refused{"%z = Slice(%m) {axis=0, begin=0, end=17, step=1}", "end 17 is past the size 16"},
        Refused{"%z = Slice(%m) {axis=0, begin=3, end=2, step=1}", "end 2 is before begin 3"},
        Refused{"%z = Gather(%m, %v) {axis=0}", "indices are f32"},
        Refused{"%z = Reduce(%flag) {fn=sum, axes=[0]}", "operand is bool"},
        Refused{"%z = Reduce(%m) {fn=sum, axes=[0, -2]}", "axis -2 is named twice"},
        Refused{"%z = Where(%x, %x, %x)", "expected bool"},
        Refused{"%z = Softmax(%ids) {axis=0}", "expected a floating dtype"},
        Refused{"%z = Softmax(%x, %x) {axis=0}", "found 2"}));

TEST(Infer, RemembersAnEqualityThatItCannotProve) {
  const auto graph = parse(with_inputs("%z = Binary(%x, %y) {fn=add}"));
  ASSERT_EQ(graph->assumptions().size(), 1u);
  EXPECT_EQ(graph->assumptions()[0].a.text(), "sequence");
  EXPECT_EQ(graph->assumptions()[0].b.text(), "other");
}

TEST(Infer, KnowsSizesOfExpressions) {
  const auto graph =
      parse(with_inputs("%z = Concat(%x, %y) {axis=1} : f32[batch, other + sequence, 16]"));
  EXPECT_TRUE(graph->assumptions().empty());
}

}  // namespace
}  // namespace tranship::ir

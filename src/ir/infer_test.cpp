// What does not fit together is refused, with expected and found; what cannot be proved is
// remembered.
#include "ir/infer.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "tranship/error.h"

namespace tranship::ir {
namespace {

/// x f32[batch, sequence, 16], y f32[batch, other, 16], m f32[16, 4], v f32[7], flag bool[batch],
/// ids i64[batch, sequence], one f32[].
std::string with_inputs(const std::string& line) {
  return "graph g\n"
         "  %x = Input {name=\"x\", dtype=f32, shape=[batch, sequence, 16]}\n"
         "  %y = Input {name=\"y\", dtype=f32, shape=[batch, other, 16]}\n"
         "  %m = Input {name=\"m\", dtype=f32, shape=[16, 4]}\n"
         "  %v = Input {name=\"v\", dtype=f32, shape=[7]}\n"
         "  %flag = Input {name=\"flag\", dtype=bool, shape=[batch]}\n"
         "  %ids = Input {name=\"ids\", dtype=i64, shape=[batch, sequence]}\n"
         "  %one = Constant {value=f32[](1)}\n"
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
        Refused{"%z = Softmax(%x, %x) {axis=0}", "found 2"},
        Refused{"%z = Unary(%x) {fn=bit_not}", "expected an integer"},
        Refused{"%z = Unary(%ids) {fn=is_nan}", "expected a floating dtype"},
        Refused{"%z = Binary(%x, %y) {fn=bit_and}", "bit_and does not take f32"},
        Refused{"%z = Binary(%ids, %ids) {fn=xor}", "xor does not take i64"},
        Refused{"%z = Activation(%x) {fn=leaky_relu}", "expected 2 to 2 operands"},
        Refused{"%z = Conv(%m, %m, _) {strides=[], pads_begin=[], pads_end=[], dilations=[]}",
                "one to three axes"},
        Refused{"%z = Conv(%x, %m, _) {strides=[1], pads_begin=[0], pads_end=[0], dilations=[1]}",
                "expected rank 3"},
        Refused{"%z = Conv(%x, %x, _) {strides=[1, 1], pads_begin=[0], pads_end=[0]}",
                "strides has 2 entries, expected 1"},
        Refused{"%w = Full(%one) {shape=[8, 4, 18]}\n%z = Conv(%x, %w, _) {strides=[1], "
                "pads_begin=[0], pads_end=[1], dilations=[1], groups=4}",
                "is shorter than the kernel"},
        Refused{"%w = Full(%one) {shape=[6, 4, 3]}\n%z = Conv(%x, %w, _) {strides=[1], "
                "pads_begin=[0], pads_end=[1], dilations=[1], groups=4}",
                "6 channels out are not a multiple of 4 groups"},
        Refused{"%w = Full(%one) {shape=[6, 4, 3]}\n%z = ConvTranspose(%x, %w, _) {strides=[2], "
                "pads_begin=[0], pads_end=[0], dilations=[1], output_padding=[2], groups=1}",
                "output_padding 2 is not below"},
        Refused{"%z = Pool(%x) {fn=max, kernel=[17], strides=[1], pads_begin=[0], pads_end=[0], "
                "dilations=[1]}",
                "shorter than the kernel 17"},
        Refused{"%z = Pool(%x) {fn=max, kernel=[3], strides=[1], pads_begin=[2], pads_end=[0], "
                "dilations=[1]}",
                "over half of the kernel"},
        Refused{"%z = Pool(%x) {fn=average, kernel=[3], strides=[1], pads_begin=[0], "
                "pads_end=[0], dilations=[2]}",
                "an average has dilation 2"},
        Refused{"%z = Resize(%x) {mode=linear, sizes=[3, 4]}", "2 sizes for 1 axes"},
        Refused{"%z = Resize(%x) {mode=cubic, sizes=[3]}", "need two axes"},
        Refused{"%z = Resize(%x) {mode=linear, sizes=[0]}", "a size is 0"},
        Refused{"%z = Resize(%x) {mode=linear, sizes=[8], scales=[0]}", "a scale is 0"},
        Refused{"%z = Resize(%x) {mode=nearest, coordinates=align_corners, sizes=[8]}",
                "nearest needs half_pixel or asymmetric"},
        Refused{"%z = Pad(%x) {begin=[0, 0, -1], end=[0, 0, 0]}", "an amount is -1"},
        Refused{"%z = Pad(%x) {begin=[0, 0], end=[0, 0, 0]}", "2 and 3 amounts"},
        Refused{"%z = Pad(%x) {mode=reflect, begin=[0, 0, 16], end=[0, 0, 0]}",
                "an amount of 16 for an axis of 16"},
        Refused{"%z = Pad(%x, %one) {mode=edge, begin=[0, 0, 1], end=[0, 0, 0]}",
                "for the constant mode alone"},
        Refused{"%a, %z = TopK(%x) {axis=-1, k=17}", "k is 17 of an axis of 16"},
        Refused{"%a, %z = TopK(%flag) {axis=0, k=1}", "operand is bool"},
        Refused{"%z = ScatterElements(%x, %ids, %x) {axis=0}", "expected rank 3"},
        Refused{"%z = ScatterElements(%flag, %flag, %flag) {axis=0}", "indices are bool"},
        Refused{"%z = ScatterNd(%m, %ids, %m)", "a last axis of known size"},
        Refused{"%z = GatherNd(%m, %ids)", "a last axis of known size"},
        Refused{"%z = NonZero(%m) {count=3}", "expected a symbol"},
        Refused{"%z = NonZero(%m) {count=batch}", "has two origins"},
        Refused{"%a = NonZero(%m) {count=n}\n%z = NonZero(%v) {count=n}", "has two origins"},
        Refused{"%z = Item(%ids) {value=n}", "expected rank 0"},
        Refused{"%z = Moe(%x, %ids, %ids, %x, %x) {fn=silu}", "operand 2 is i64, x is f32"},
        Refused{"%z, %s = SelectiveScan(%x, %x, %m, %x, %x, %x)",
                "operand 3, axis 2: 4 and 16 differ"}));

TEST(Infer, RemembersAnEqualityThatItCannotProve) {
  const auto graph = parse(with_inputs("%z = Binary(%x, %y) {fn=add}"));
  ASSERT_EQ(graph->assumptions().size(), 1u);
  EXPECT_EQ(graph->assumptions()[0].a.text(), "sequence");
  EXPECT_EQ(graph->assumptions()[0].b.text(), "other");
}

TEST(Infer, ASizeThatIsBornFromDataIsNotNegative) {
  const auto graph = parse(with_inputs("%z = NonZero(%m) {count=found} : i64[found, 2]"));
  EXPECT_EQ(graph->symbols().at("found"), (Range{.min = 0, .max = {}}));
}

TEST(Infer, KnowsWhatWindowsLeave) {
  const auto graph = parse(with_inputs(
      "%1 = Full(%one) {shape=[8, 16, 3]}\n"
      "%2 = Transpose(%x) {perm=[0, 2, 1]}\n"
      "%3 = Conv(%2, %1, _) {strides=[2], pads_begin=[1], pads_end=[1], dilations=[1]} : "
      "f32[batch, 8, floor_div(sequence + 1, 2)]\n"
      "%4 = Pad(%2) {begin=[0, 0, sequence], end=[0, 0, 1]} : f32[batch, 16, 2*sequence + 1]"));
  EXPECT_TRUE(graph->assumptions().empty());
}

TEST(Infer, KnowsSizesOfExpressions) {
  const auto graph =
      parse(with_inputs("%z = Concat(%x, %y) {axis=1} : f32[batch, other + sequence, 16]"));
  EXPECT_TRUE(graph->assumptions().empty());
}

}  // namespace
}  // namespace tranship::ir

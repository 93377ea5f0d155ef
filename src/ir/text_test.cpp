#include "ir/text.h"

#include <gtest/gtest.h>

#include "ir/verify.h"
#include "tranship/error.h"

namespace tranship::ir {
namespace {

constexpr std::string_view kEveryKind = R"(graph every_kind
  range sequence 1 2048
  assume past == sequence
  assume 4 == sequence
  %0 = Input {name="ids", dtype=i64, shape=[batch, sequence]} : i64[batch, sequence]
  %1 = Input {name="cache", dtype=f32, shape=[batch, 2, past, 4]} : f32[batch, 2, past, 4]
  %2 = Param {name="table.weight", dtype=f32, shape=[96, 16]} : f32[96, 16]
  %3 = Embedding(%2, %0) : f32[batch, sequence, 16] @model.table
  %4 = Param {name="norm.weight", dtype=f32, shape=[16]} : f32[16]
  %5 = RmsNorm(%3, %4) {eps=1e-06} : f32[batch, sequence, 16] @model.norm
  %6 = LayerNorm(%5, %4, _) {eps=1e-12} : f32[batch, sequence, 16]
  %7 = Activation(%6) {fn=gelu_tanh} : f32[batch, sequence, 16]
  %8 = Param {name="q.weight", dtype=f32, shape=[16, 16]} : f32[16, 16]
  %9 = Linear(%7, %8, _) : f32[batch, sequence, 16]
  %10 = Reshape(%9) {shape=[batch, sequence, 4, 4]} : f32[batch, sequence, 4, 4]
  %11 = Transpose(%10) {perm=[0, 2, 1, 3]} : f32[batch, 4, sequence, 4]
  %12 = Constant {value=f32[1, 1, 2](0.5, -1.25)} : f32[1, 1, 2]
  %13 = Expand(%12) {shape=[batch, sequence, 2]} : f32[batch, sequence, 2]
  %14 = Rope(%11, %13, %13) : f32[batch, 4, sequence, 4]
  %15 = Slice(%14) {axis=1, begin=0, end=2, step=1} : f32[batch, 2, sequence, 4]
  %16 = CacheAppend(%1, %15) : f32[batch, 2, past + sequence, 4]
  %17 = Attention(%14, %16, %16, _, _) {scale=0.5, causal=true, window=8} : f32[batch, 4, sequence, 4]
  %18 = Reduce(%17) {fn=mean, axes=[-1], keepdims=false} : f32[batch, 4, sequence]
  %19 = Softmax(%18) {axis=-1} : f32[batch, 4, sequence]
  %20 = ArgMax(%19) {axis=1} : i64[batch, sequence]
  %21 = CumSum(%20) {axis=1} : i64[batch, sequence]
  %22 = Iota {count=sequence} : i64[sequence]
  %23 = DimToTensor {dim=past + 1} : i64[]
  %24 = Binary(%22, %23) {fn=add} : i64[sequence]
  %25 = Compare(%21, %24) {fn=le} : bool[batch, sequence]
  %26 = Unary(%25) {fn=not} : bool[batch, sequence]
  %27 = Where(%26, %21, %0) : i64[batch, sequence]
  %28 = Cast(%27) {to=f16} : f16[batch, sequence]
  %29 = Constant {value=f16[](inf)} : f16[]
  %30 = Full(%29) {shape=[batch, 1]} : f16[batch, 1]
  %31 = Concat(%28, %30) {axis=1} : f16[batch, sequence + 1]
  %32 = Unsqueeze(%31) {axes=[0]} : f16[1, batch, sequence + 1]
  %33 = Squeeze(%32) {axes=[0]} : f16[batch, sequence + 1]
  %34 = Gather(%33, %22) {axis=1} : f16[batch, sequence]
  %35 = GatherElements(%34, %0) {axis=1} : f16[batch, sequence]
  %36 = MatMul(%17, %11) : f32[batch, 4, sequence, 4]
  %37 = Opaque(%36) {target="aten::mystery \"x\"", dtype=f32, shape=[batch]} : f32[batch]
  output a %35
  output b %37
end
)";

constexpr std::string_view kWindowsAndIndices = R"(graph windows
  range found 0 any
  range length 0 9
  %0 = Input {name="x", dtype=f32, shape=[n, 4, h, w]} : f32[n, 4, h, w]
  %1 = Param {name="conv.weight", dtype=f32, shape=[8, 2, 3, 3]} : f32[8, 2, 3, 3]
  %2 = Conv(%0, %1, _) {strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1], groups=2} : f32[n, 8, h, w]
  %3 = ConvTranspose(%2, %1, _) {strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1], output_padding=[1, 1], groups=1} : f32[n, 2, 2*h, 2*w]
  %4 = Pool(%3) {fn=average, kernel=[2, 2], strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1], ceil_mode=false, count_include_pad=true} : f32[n, 2, h, w]
  %5 = Resize(%4) {mode=cubic, coordinates=align_corners, antialias=false, sizes=[h, 7], scales=[]} : f32[n, 2, h, 7]
  %6 = Pad(%5) {mode=reflect, begin=[0, 0, 1, 0], end=[0, 0, 2, n]} : f32[n, 2, h + 3, n + 7]
  %7 = Resize(%6) {mode=nearest, coordinates=asymmetric, antialias=false, sizes=[5, 7], scales=[1.5, 0.25]} : f32[n, 2, 5, 7]
  %8, %9 = TopK(%7) {axis=3, k=2, largest=false, sorted=true} : f32[n, 2, 5, 2], i64[n, 2, 5, 2]
  %10 = ScatterElements(%7, %9, %8) {axis=3, reduction=add} : f32[n, 2, 5, 7]
  %11 = NonZero(%10) {count=found} : i64[found, 4]
  %12 = GatherNd(%10, %11) {batch_dims=0} : f32[found]
  %13 = ScatterNd(%10, %11, %12) {reduction=none} : f32[n, 2, 5, 7]
  %14 = DimToTensor {dim=2*found} : i64[]
  %15 = Item(%14) {value=length} : i64[]
  %16 = Iota {count=length} : i64[length]
  %17 = ArgMin(%13) {axis=-1} : i64[n, 2, 5]
  output y %16
  output z %17
end
)";

constexpr std::string_view kControlFlow = R"(graph control
  %0 = Input {name="x", dtype=f32, shape=[n, 3]} : f32[n, 3]
  %1 = Input {name="flag", dtype=bool, shape=[]} : bool[]
  %2 = Constant {value=i64[](5)} : i64[]
  %3 = If(%1, %0) : f32[n, 3]
    graph then
      %0 = Input {name="x", dtype=f32, shape=[n, 3]} : f32[n, 3]
      %1 = Unary(%0) {fn=exp} : f32[n, 3]
      output y %1
    end
    graph else
      %0 = Input {name="x", dtype=f32, shape=[n, 3]} : f32[n, 3]
      output y %0
    end
  %4 = Loop(%2, %1, %3) {num_carried=1} : f32[n, 3]
    graph body
      %0 = Input {name="i", dtype=i64, shape=[]} : i64[]
      %1 = Input {name="x", dtype=f32, shape=[n, 3]} : f32[n, 3]
      %2 = Constant {value=bool[](1)} : bool[]
      %3 = Binary(%1, %1) {fn=add} : f32[n, 3]
      output going %2
      output x %3
    end
  %5 = Constant {value=f32[3](0, 0, 0)} : f32[3]
  %6, %7 = Scan(%5, %4) {num_carried=1, num_scanned=1} : f32[3], f32[n, 3]
    graph body
      %0 = Input {name="sum", dtype=f32, shape=[3]} : f32[3]
      %1 = Input {name="row", dtype=f32, shape=[3]} : f32[3]
      %2 = Binary(%0, %1) {fn=add} : f32[3]
      output sum %2
      output row %2
    end
  output total %6
  output sums %7
end
)";

TEST(Text, PrintsWhatItParses) {
  for (const std::string_view text : {kEveryKind, kWindowsAndIndices, kControlFlow}) {
    const auto graph = parse(text);
    verify(*graph);
    EXPECT_EQ(print(*graph), text);
  }
}

TEST(Text, ACloneIsTheSameText) { EXPECT_EQ(print(*parse(kControlFlow)->clone()), kControlFlow); }

struct Wrong {
  const char* what;
  const char* text;
  const char* message;
};

class WrongText : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongText, IsAnErrorThatSaysWhere) {
  try {
    parse(GetParam().text);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ir, WrongText,
    ::testing::Values(
        Wrong{"empty", "", "expected 'graph NAME'"},
        Wrong{"no_end", "graph g\n", "'end' of graph 'g' is missing"},
        Wrong{"after_end", "graph g\nend\ngraph h\nend\n", "line 3"},
        Wrong{"unknown_op", "graph g\n  %0 = Magic : f32[]\nend\n", "no op is named 'Magic'"},
        Wrong{"unknown_value", "graph g\n  %0 = Softmax(%7) {axis=0}\nend\n",
              "'%7' is not a value above"},
        Wrong{"unknown_attribute", "graph g\n  %0 = Iota {size=3}\nend\n",
              "Iota has no attribute 'size'"},
        Wrong{"wrong_type", "graph g\n  %0 = Iota {count=3} : i64[4]\nend\n",
              "the type is i64[3], the text says i64[4]"},
        Wrong{"wrong_enum", "graph g\n  %0 = Iota {count=3}\n  %1 = Unary(%0) {fn=sinc}\nend\n",
              "expected neg, abs"},
        Wrong{"wrong_operands",
              "graph g\n  %0 = Iota {count=3}\n  %1 = Transpose(%0) {perm=[1]}\nend\n",
              "axis 1 of a tensor of rank 1"},
        Wrong{"wrong_tensor", "graph g\n  %0 = Constant {value=f32[2](1)}\nend\n", "2 elements"},
        Wrong{"element_outside_of_its_dtype", "graph g\n  %0 = Constant {value=u8[](256)}\nend\n",
              "an element of u8"},
        Wrong{"element_that_is_no_number", "graph g\n  %0 = Constant {value=i32[](nan)}\nend\n",
              "an element of i32"},
        Wrong{"huge_tensor",
              "graph g\n  %0 = Constant {value=f32[9223372036854775807, 4](1)}\nend\n",
              "not negative"},
        Wrong{"twice", "graph g\n  %0 = Iota {count=3}\n  %0 = Iota {count=3}\nend\n",
              "'%0' is made twice"},
        Wrong{"two_inputs",
              "graph g\n  %0 = Input {name=\"x\", dtype=f32, shape=[]}\n  %1 = Input {name=\"x\", "
              "dtype=f32, shape=[]}\nend\n",
              "two inputs named 'x'"},
        Wrong{"open_braces", "graph g\n  %0 = Iota {count=3\nend\n", "line 2"}),
    [](const auto& wrong) { return wrong.param.what; });

TEST(Text, TruncatedAnywhereItIsAnErrorAndNotACrash) {
  const std::string text(kControlFlow);
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_THROW(parse(text.substr(0, size)), Error) << size;
}

}  // namespace
}  // namespace tranship::ir

// Every primitive that ONNX can say, against the interpreter: graphs as text, run by ONNX Runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "interpret/interpret.h"
#include "ir/text.h"
#include "tranship/error.h"

namespace tranship::onnx {
namespace {

struct Lowered {
  const char* name;
  const char* lines;
  int opset_version = 20;
};

ir::Program program_of(std::string_view text) {
  ir::Program program;
  program.components.push_back({.name = "model", .graph = ir::parse(text), .states = {}});
  return program;
}

/// x f32[2, 3, 4], i i64[2, 3], m bool[2, 3], all of their axes symbolic but the last.
NamedTensors inputs() {
  NamedTensors made;
  Tensor x(DType::kF32, {2, 3, 4}), i(DType::kI64, {2, 3}), m(DType::kBool, {2, 3}),
      flag(DType::kBool, {});
  for (int64_t k = 0; k < x.num_elements(); ++k) x.set(k, std::sin(static_cast<double>(k)) + 1.5);
  for (int64_t k = 0; k < 6; ++k) {
    i.set(k, static_cast<double>(k * 5 % 4) - 1);
    m.set(k, k % 2 == 0 ? 1 : 0);
  }
  flag.set(0, 1);
  made.emplace("x", std::move(x));
  made.emplace("i", std::move(i));
  made.emplace("m", std::move(m));
  made.emplace("flag", std::move(flag));
  return made;
}

constexpr std::string_view kInputs = R"(graph model
  %x = Input {name="x", dtype=f32, shape=[b, s, 4]}
  %i = Input {name="i", dtype=i64, shape=[b, s]}
  %m = Input {name="m", dtype=bool, shape=[b, s]}
  %flag = Input {name="flag", dtype=bool, shape=[]}
)";

class Lower : public ::testing::TestWithParam<Lowered> {};

TEST_P(Lower, MeansToOnnxRuntimeWhatItMeansToTheInterpreter) {
  const ir::Program program =
      program_of(std::string(kInputs) + GetParam().lines + "  output y %y\nend\n");
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / (std::string("tranship-lower-") + GetParam().name);
  std::filesystem::create_directories(folder);
  OnnxProgram::lower(program, {.opset_version = GetParam().opset_version}).save(folder);
  const Tensor found =
      Session::open(folder / "model.onnx", {.intra_op_threads = 1}).run(inputs()).at("y");
  const Tensor expected = interpret(program, "model", inputs()).at("y");
  std::filesystem::remove_all(folder);
  ASSERT_EQ(found.dtype(), expected.dtype());
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t k = 0; k < expected.num_elements(); ++k) {
    EXPECT_NEAR(found.at(k), expected.at(k), 4e-6 * (1 + std::abs(expected.at(k))))
        << "element " << k;  // f32, short sums
  }
}

INSTANTIATE_TEST_SUITE_P(
    Onnx, Lower,
    ::testing::Values(
        Lowered{"unary",
                "  %1 = Unary(%x) {fn=neg}\n  %2 = Unary(%1) {fn=abs}\n  %3 = Unary(%2) {fn=log}\n "
                " %4 = Unary(%3) {fn=sin}\n"
                "  %5 = Unary(%4) {fn=cos}\n  %6 = Unary(%5) {fn=erf}\n  %7 = Unary(%6) "
                "{fn=tanh}\n  %8 = Unary(%7) {fn=sigmoid}\n"
                "  %9 = Unary(%8) {fn=reciprocal}\n  %10 = Unary(%9) {fn=sqrt}\n  %y = Unary(%10) "
                "{fn=exp}\n"},
        Lowered{"rounding",
                "  %1 = Unary(%x) {fn=floor}\n  %2 = Unary(%x) {fn=ceil}\n  %y = Binary(%1, %2) "
                "{fn=pow}\n"},
        Lowered{"floor_div",
                "  %1 = Constant {value=i64[](-2)}\n  %y = Binary(%i, %1) {fn=floor_div}\n"},
        Lowered{"floor_div_of_floats",
                "  %1 = Constant {value=f32[](0.7)}\n  %y = Binary(%x, %1) {fn=floor_div}\n"},
        Lowered{"mod", "  %1 = Constant {value=i64[](3)}\n  %y = Binary(%i, %1) {fn=mod}\n"},
        Lowered{"min_max",
                "  %1 = Constant {value=i64[](1)}\n  %2 = Binary(%i, %1) {fn=min}\n  %y = "
                "Binary(%2, %i) {fn=max}\n"},
        Lowered{"logic",
                "  %1 = Unary(%m) {fn=not}\n  %2 = Binary(%1, %m) {fn=or}\n  %y = Binary(%2, %m) "
                "{fn=and}\n"},
        Lowered{"compare",
                "  %1 = Constant {value=i64[](1)}\n  %2 = Compare(%i, %1) {fn=ne}\n  %3 = "
                "Compare(%i, %1) {fn=le}\n"
                "  %4 = Compare(%i, %1) {fn=gt}\n  %5 = Binary(%3, %4) {fn=and}\n  %y = Binary(%2, "
                "%5) {fn=or}\n"},
        Lowered{"where",
                "  %1 = Unsqueeze(%m) {axes=[2]}\n  %2 = Constant {value=f32[](-3)}\n  %y = "
                "Where(%1, %x, %2)\n"},
        Lowered{"reduce",
                "  %1 = Reduce(%x) {fn=mean, axes=[0, -1], keepdims=false}\n  %2 = Reduce(%x) "
                "{fn=max, axes=[1], keepdims=true}\n"
                "  %3 = Reduce(%x) {fn=min, axes=[1], keepdims=true}\n  %4 = Binary(%2, %3) "
                "{fn=sub}\n  %5 = Reduce(%4) {fn=sum, axes=[2], keepdims=true}\n"
                "  %y = Binary(%5, %1) {fn=mul}\n"},
        Lowered{"any", "  %y = Reduce(%m) {fn=any, axes=[1], keepdims=true}\n"},
        Lowered{"all", "  %y = Reduce(%m) {fn=all, axes=[0], keepdims=false}\n"},
        Lowered{"argmax", "  %y = ArgMax(%i) {axis=1}\n"},
        Lowered{"argmax_of_floats", "  %y = ArgMax(%x) {axis=-1}\n"},
        Lowered{"cumsum", "  %y = CumSum(%i) {axis=1}\n"},
        Lowered{"softmax", "  %y = Softmax(%x) {axis=1}\n"},
        Lowered{"matmul", "  %1 = Transpose(%x) {perm=[0, 2, 1]}\n  %y = MatMul(%x, %1)\n"},
        Lowered{"reshape_two_symbols",
                "  %1 = Reshape(%x) {shape=[b*s, 2, 2]}\n  %y = Reshape(%1) {shape=[s, b, 4]}\n"},
        Lowered{"reshape_in_place", "  %y = Reshape(%x) {shape=[b, 2*s, 2]}\n"},
        Lowered{"expand",
                "  %1 = Unsqueeze(%i) {axes=[1]}\n  %y = Expand(%1) {shape=[b, 2*b, s]}\n"},
        Lowered{"slice_to_a_size", "  %y = Slice(%x) {axis=1, begin=b - 1, end=s, step=1}\n"},
        Lowered{"slice_from_a_size",
                "  %y = Slice(%x) {axis=1, begin=0, end=floor_div(s + 1, 2), step=1}\n"},
        Lowered{"slice_with_steps", "  %y = Slice(%x) {axis=2, begin=1, end=4, step=2}\n"},
        Lowered{"gather",
                "  %1 = Constant {value=i64[2, 2](0, 1, 2, 2)}\n  %y = Gather(%x, %1) {axis=2}\n"},
        Lowered{"gather_elements",
                "  %1 = Constant {value=i64[](1)}\n  %2 = Binary(%i, %1) {fn=max}\n  %y = "
                "GatherElements(%i, %2) {axis=1}\n"},
        Lowered{"sizes",
                "  %1 = DimToTensor {dim=max(b*s, 5) - min(b, s)}\n  %2 = Iota {count=mod(7*s, 4) "
                "+ 1}\n  %y = Binary(%1, %2) {fn=add}\n"},
        Lowered{"full", "  %1 = Constant {value=f32[](2.5)}\n  %y = Full(%1) {shape=[b, 3, s]}\n"},
        Lowered{"cast",
                "  %1 = Cast(%x) {to=f16}\n  %2 = Cast(%1) {to=i64}\n  %y = Cast(%2) {to=f32}\n"},
        Lowered{"gelu_before_20", "  %y = Activation(%x) {fn=gelu}\n", 18},
        Lowered{"gelu", "  %y = Activation(%x) {fn=gelu}\n"},
        Lowered{"gelu_tanh", "  %y = Activation(%x) {fn=gelu_tanh}\n", 22},
        Lowered{"relu", "  %y = Activation(%x) {fn=relu}\n"},
        Lowered{"silu_at_24", "  %y = Activation(%x) {fn=silu}\n", 24},
        Lowered{"rows_stay_rows",  // Linear, norm, sum with a wider value, a row's mean, heads: all
                                   // forms of a value
                "  %w = Constant {value=f32[4, 4](1, 2, 0, -1, 0.5, 0, 1, 1, 2, 2, -1, 0, 0, 0, 1, "
                "3)}\n  %v = Constant {value=f32[4](1, 0.5, 2, 1)}\n"
                "  %1 = Linear(%x, %w, %v)\n  %2 = LayerNorm(%1, %v, _) {eps=1e-05}\n  %3 = "
                "Binary(%2, %x) {fn=add}\n"
                "  %4 = Reduce(%3) {fn=mean, axes=[-1], keepdims=true}\n  %5 = Binary(%3, %4) "
                "{fn=sub}\n  %6 = Activation(%5) {fn=silu}\n"
                "  %7 = Linear(%6, %w, _)\n  %8 = Reshape(%7) {shape=[b, s, 2, 2]}\n  %9 = "
                "Transpose(%8) {perm=[0, 2, 1, 3]}\n"
                "  %10 = Reshape(%9) {shape=[b, 2*s, 2]}\n  %11 = Reshape(%10) {shape=[b, s, 4]}\n "
                " %y = Linear(%11, %w, _)\n"},
        Lowered{
            "scatter_of_halves",
            "  %1 = Cast(%x) {to=f16}\n  %2 = Constant {value=i64[2, 1](1, 1)}\n  %3 = Slice(%1) "
            "{axis=0, begin=0, end=2, step=1}\n"
            "  %4 = ScatterNd(%1, %2, %3) {reduction=add}\n  %5 = Constant {value=i64[1, 1, "
            "4](1, 0, 1, 2)}\n"
            "  %6 = Slice(%1) {axis=0, begin=0, end=1, step=1}\n  %7 = Slice(%6) {axis=1, "
            "begin=0, end=1, step=1}\n"
            "  %y = ScatterElements(%4, %5, %7) {axis=1, reduction=max}\n"},
        Lowered{
            "if",
            "  %y = If(%flag, %x)\n    graph then\n      %0 = Input {name=\"x\", dtype=f32, "
            "shape=[b, s, 4]}\n"
            "      %1 = Reshape(%0) {shape=[b*s, 4]}\n      output y %1\n    end\n    graph else\n"
            "      %0 = Input {name=\"x\", dtype=f32, shape=[b, s, 4]}\n      %1 = Reshape(%0) "
            "{shape=[b*s, 4]}\n"
            "      %2 = Unary(%1) {fn=exp}\n      output y %2\n    end\n"},
        Lowered{"loop",
                "  %n = Constant {value=i64[](5)}\n  %y = Loop(%n, %flag, %x, %m) "
                "{num_carried=1}\n    graph body\n"
                "      %0 = Input {name=\"trip\", dtype=i64, shape=[]}\n      %1 = Input "
                "{name=\"x\", dtype=f32, shape=[b, s, 4]}\n"
                "      %2 = Input {name=\"m\", dtype=bool, shape=[b, s]}\n      %3 = Unsqueeze(%2) "
                "{axes=[2]}\n      %4 = Binary(%1, %1) {fn=add}\n"
                "      %5 = Where(%3, %4, %1)\n      %6 = Constant {value=i64[](3)}\n      %7 = "
                "Compare(%0, %6) {fn=lt}\n      output going %7\n"
                "      output x %5\n    end\n"},
        Lowered{"scan",
                "  %1 = Reduce(%x) {fn=sum, axes=[0], keepdims=false}\n  %2 = Transpose(%x) "
                "{perm=[1, 0, 2]}\n"
                "  %3 = Constant {value=f32[](0)}\n  %4 = Full(%3) {shape=[b, 4]}\n"
                "  %5, %y = Scan(%4, %2, %x) {num_carried=1, num_scanned=1}\n    graph body\n"
                "      %0 = Input {name=\"state\", dtype=f32, shape=[b, 4]}\n      %1 = Input "
                "{name=\"row\", dtype=f32, shape=[b, 4]}\n"
                "      %2 = Input {name=\"all\", dtype=f32, shape=[b, s, 4]}\n      %3 = "
                "Reduce(%2) {fn=max, axes=[1], keepdims=false}\n"
                "      %4 = Binary(%0, %1) {fn=add}\n      %5 = Binary(%4, %3) {fn=mul}\n      "
                "output state %4\n      output row %5\n    end\n"}),
    [](const auto& lowered) { return lowered.param.name; });

TEST(OnnxProgram, WhatItCannotSayIsReportedAllAtOnceBeforeAnyFile) {
  const ir::Program program = program_of(
      "graph model\n  %0 = Opaque {target=\"aten::one\", dtype=f32, shape=[1]}\n  %1 = Opaque "
      "{target=\"aten::two\", dtype=f32, shape=[1]}\n"
      "  output a %0\n  output b %1\nend\n");
  try {
    OnnxProgram::lower(program, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("aten::one"),
                                               ::testing::HasSubstr("aten::two")));
  }
}

TEST(OnnxProgram, AnOpsetOutsideItsRangeIsRefused) {
  const ir::Program program =
      program_of("graph model\n  %0 = Iota {count=1}\n  output a %0\nend\n");
  EXPECT_THROW(OnnxProgram::lower(program, {.opset_version = 17}), Error);
  EXPECT_THROW(OnnxProgram::lower(program, {.opset_version = 25}), Error);
}

}  // namespace
}  // namespace tranship::onnx

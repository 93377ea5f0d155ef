// Attention in every form that a target has, against the interpreter: graphs as text, run by ONNX
// Runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "interpret/interpret.h"
#include "ir/text.h"

namespace tranship::onnx {
namespace {

/// q has 4 heads of 8, k and v 2; there are 2 sequences of 3 queries, and 5 keys; the mask hides
/// all keys of the first sequence, `seen` all of its second query.
constexpr std::string_view kInputs = R"(graph model
  %q = Input {name="q", dtype=f32, shape=[b, s, 32]}
  %k = Input {name="k", dtype=f32, shape=[b, t, 16]}
  %v = Input {name="v", dtype=f32, shape=[b, t, 16]}
  %mask = Input {name="mask", dtype=bool, shape=[b, t]}
  %seen = Input {name="seen", dtype=bool, shape=[b, 1, s, t]}
  %bias = Input {name="bias", dtype=f32, shape=[1, 4, s, t]}
  %q4 = Reshape(%q) {shape=[b, s, 4, 8]}
  %k4 = Reshape(%k) {shape=[b, t, 2, 8]}
  %v4 = Reshape(%v) {shape=[b, t, 2, 8]}
  %qh = Transpose(%q4) {perm=[0, 2, 1, 3]}
  %kh = Transpose(%k4) {perm=[0, 2, 1, 3]}
  %vh = Transpose(%v4) {perm=[0, 2, 1, 3]}
)";
constexpr std::string_view kEnd = R"(  %yt = Transpose(%yh) {perm=[0, 2, 1, 3]}
  %y = Reshape(%yt) {shape=[b, s, 32]}
  output y %y
end
)";

NamedTensors inputs() {
  Tensor q(DType::kF32, {2, 3, 32}), k(DType::kF32, {2, 5, 16}), v(DType::kF32, {2, 5, 16}),
      mask(DType::kBool, {2, 5}), seen(DType::kBool, {2, 1, 3, 5}), bias(DType::kF32, {1, 4, 3, 5});
  for (Tensor* t : {&q, &k, &v, &bias}) {
    for (int64_t i = 0; i < t->num_elements(); ++i)
      t->set(i, std::sin(static_cast<double>(i * i + t->num_elements())));
  }
  for (int64_t i = 0; i < mask.num_elements(); ++i) mask.set(i, i >= 5 && i != 7 ? 1 : 0);
  for (int64_t i = 0; i < seen.num_elements(); ++i) seen.set(i, i / 5 != 1 && i % 4 != 1 ? 1 : 0);
  return {{"q", q}, {"k", k}, {"v", v}, {"mask", mask}, {"seen", seen}, {"bias", bias}};
}

struct Case {
  const char* name;
  const char* attention;  // %yh of %qh, %kh, %vh
};

std::string tensor_text(const Tensor& t) {
  std::string text;
  for (int64_t i = 0; i < t.num_elements(); ++i) text += std::to_string(t.at(i)) + " ";
  return text;
}

class Attends : public ::testing::TestWithParam<std::tuple<Case, int>> {};

TEST_P(Attends, AsInTheInterpreterAndGivesZerosWhereNothingIsSeen) {
  const auto& [c, opset_version] = GetParam();
  ir::Program program;
  program.components.push_back(
      {.name = "model",
       .graph = ir::parse(std::string(kInputs) + c.attention + std::string(kEnd)),
       .states = {}});
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("tranship-attends-" + std::string(c.name) + std::to_string(opset_version));
  std::filesystem::create_directories(folder);
  const OnnxProgram lowered = OnnxProgram::lower(program, {.opset_version = opset_version});
  lowered.save(folder);
  const Tensor expected = interpret(program, "model", inputs()).at("y");
  const Tensor found =
      Session::open(folder / "model.onnx", {.intra_op_threads = 1}).run(inputs()).at("y");
  std::filesystem::remove_all(folder);
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    ASSERT_NEAR(found.at(i), expected.at(i), 2e-6)
        << "element " << i << " of " << tensor_text(found);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Onnx, Attends,
    ::testing::Combine(
        ::testing::Values(
            Case{"plain",
                 "  %yh = Attention(%qh, %kh, %vh, _, _) {scale=0.3, causal=false, "
                 "window=none}\n"},
            Case{"causal_behind_a_past",
                 "  %yh = Attention(%qh, %kh, %vh, _, _) {scale=0.3, causal=true, window=none}\n"},
            Case{"window",
                 "  %yh = Attention(%qh, %kh, %vh, _, _) {scale=0.3, causal=true, window=2}\n"},
            Case{"mask_of_keys",
                 "  %yh = Attention(%qh, %kh, %vh, %mask, _) {scale=0.3, "
                 "causal=false, window=none}\n"},
            Case{"causal_mask_of_keys",
                 "  %yh = Attention(%qh, %kh, %vh, %mask, _) {scale=0.3, causal=true, "
                 "window=none}\n"},
            Case{"what_is_seen",
                 "  %yh = Attention(%qh, %kh, %vh, _, %seen) {scale=0.3, "
                 "causal=false, window=none}\n"},
            Case{"bias",
                 "  %yh = Attention(%qh, %kh, %vh, _, %bias) {scale=0.3, causal=false, "
                 "window=none}\n"},
            Case{"bias_and_mask_of_keys",
                 "  %yh = Attention(%qh, %kh, %vh, %mask, %bias) {scale=0.3, causal=true, "
                 "window=none}\n"},
            Case{"a_square",
                 "  %1 = Slice(%kh) {axis=2, begin=0, end=s, step=1}\n  %2 = Slice(%vh) {axis=2, "
                 "begin=0, end=s, step=1}\n  %yh = Attention(%qh, %1, %2, _, _) {scale=0.3, "
                 "causal=true, window=none}\n"}),
        ::testing::Values(20, 23, 24)),
    [](const auto& tested) {
      return std::string(std::get<0>(tested.param).name) + "_" +
             std::to_string(std::get<1>(tested.param));
    });

}  // namespace
}  // namespace tranship::onnx

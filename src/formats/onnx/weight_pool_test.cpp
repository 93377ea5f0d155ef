#include "formats/onnx/weight_pool.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing.h"
#include "formats/onnx/onnx_program.h"
#include "formats/onnx/ort_test_support.h"
#include "formats/onnx/session.h"
#include "ir/text.h"

namespace tranship::onnx {
namespace {

constexpr int64_t kRows = 4096, kColumns = 4096;  // 64 MiB of f32

/// Two components that use one weight.
class WeightPools : public NeedsOnnxRuntime {
 protected:
  void SetUp() override {
    NeedsOnnxRuntime::SetUp();
    if (IsSkipped()) return;
    Tensor weight(DType::kF32, {kRows, kColumns});
    for (int64_t i = 0; i < kRows; ++i) weight.set(i * kColumns + i, static_cast<double>(i));
    ir::Program program;
    program.parameters.emplace("w", memory_source("w", weight));
    for (const char* name : {"first", "second"}) {
      const std::string text = fmt::format(
          "graph model\n  %x = Input {{name=\"x\", dtype=f32, shape=[n, {1}]}}\n"
          "  %w = Param {{name=\"w\", dtype=f32, shape=[{0}, {1}]}}\n  %y = Linear(%x, %w)\n"
          "  output y %y\nend\n",
          kRows, kColumns);
      program.components.push_back({.name = name, .graph = ir::parse(text), .states = {}});
    }
    OnnxProgram::lower(program, {}).save(folder_.path());
  }

  Session open(const char* name, const std::shared_ptr<WeightPool>& weights) {
    return Session::open(folder_ / (std::string(name) + ".onnx"), {.weights = weights}, sink());
  }

  static int64_t anonymous_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      if (word != "RssAnon:") continue;
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
    return 0;
  }

  static void expect_right(const Session& session) {
    Tensor x(DType::kF32, {1, kColumns});
    for (int64_t i = 0; i < kColumns; ++i) x.set(i, 2);
    const Tensor y = session.run({{"x", x}}).at("y");
    for (const int64_t i : {int64_t{0}, int64_t{1}, kRows - 1})
      EXPECT_EQ(y.at(i), static_cast<double>(2 * i));
  }

  TestFolder folder_;
};

TEST_F(WeightPools, keep_a_weight_once_for_two_sessions) {
  const auto weights = std::make_shared<WeightPool>("");
  const Session first = open("first", weights);
  const int64_t before = anonymous_bytes();
  const Session second = open("second", weights);
  const int64_t added = anonymous_bytes() - before;
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
  EXPECT_LT(added, kRows * kColumns * 4 / 2);
#endif
  weights->forget_pages();
  expect_right(first);
  expect_right(second);
  EXPECT_TRUE(warnings_.empty());
  EXPECT_GE(added, 0);
}

TEST_F(WeightPools, outlive_their_owner_as_long_as_a_session_does) {
  auto weights = std::make_shared<WeightPool>("");
  const Session session = open("second", weights);
  weights.reset();
  expect_right(session);
}

TEST_F(WeightPools, leave_weights_that_are_not_there_to_the_runtime) {
  std::filesystem::resize_file(folder_ / "first.onnx.data", 1024);
  const auto kind = [&](const std::shared_ptr<WeightPool>& weights) {
    return error_of([&] { open("first", weights); }).kind();
  };
  EXPECT_EQ(kind(std::make_shared<WeightPool>("")), kind(nullptr));
}

}  // namespace
}  // namespace tranship::onnx

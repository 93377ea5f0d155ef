// The data file: every weight in its place, and the hash that is made on the way.
#include "formats/onnx/onnx_program.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/file_hash.h"
#include "base/testing.h"
#include "ir/text.h"

namespace tranship::onnx {
namespace {

struct Weight {
  std::string name;
  int64_t size;
  DType stored;  // the graph's is f32
};

/// Some begin within a block of the hash, some span several, some are smaller than the alignment.
const std::vector<Weight>& weights() {
  static const std::vector<Weight> kWeights = {
      {"tiny", 1, DType::kF32},          {"odd", 13, DType::kBF16},
      {"a_block", 32768, DType::kF32},   {"half", 40001, DType::kF16},
      {"several", 100003, DType::kBF16}, {"last", 3, DType::kF32}};
  return kWeights;
}

Tensor numbers(const Weight& weight) {
  Tensor tensor(weight.stored, {weight.size});
  for (int64_t i = 0; i < weight.size; ++i) tensor.set(i, static_cast<double>(i % 251) - 100);
  return tensor;
}

ir::Program program() {
  std::string text = "graph model\n  %x = Input {name=\"x\", dtype=f32, shape=[1]}\n";
  ir::Program made;
  for (const Weight& weight : weights()) {
    text += fmt::format("  %{0} = Param {{name=\"{0}\", dtype=f32, shape=[{1}]}}\n", weight.name,
                        weight.size);
    text += fmt::format("  %{0}_y = Binary(%{0}, %x) {{fn=add}}\n", weight.name);
    made.parameters.emplace(weight.name,
                            cast_source(memory_source(weight.name, numbers(weight)), DType::kF32));
  }
  for (const Weight& weight : weights()) text += fmt::format("  output {0} %{0}_y\n", weight.name);
  made.components.push_back({.name = "model", .graph = ir::parse(text + "end\n"), .states = {}});
  return made;
}

TEST(OnnxProgram, writes_each_weight_to_its_place_with_zeros_between) {
  const TestFolder folder;
  OnnxProgram::lower(program(), {}).save(folder.path());
  const std::string data = read_text(folder / "model.onnx.data");
  std::string expected;
  for (const Weight& weight : weights()) {
    expected.resize((expected.size() + 63) / 64 * 64);
    const Tensor wide =
        read_all(*cast_source(memory_source(weight.name, numbers(weight)), DType::kF32));
    expected += as_text(wide.bytes());
  }
  expected.resize((expected.size() + 63) / 64 * 64);
  EXPECT_EQ(data.size(), expected.size());
  EXPECT_TRUE(data == expected);
}

TEST(OnnxProgram, the_hashes_of_what_it_wrote_are_those_of_the_files) {
  const TestFolder folder;
  for (const Weights placement : {Weights::kExternal, Weights::kInline}) {
    for (const PlannedFile& file :
         OnnxProgram::lower(program(), {.weights = placement}).save(folder.path())) {
      const std::string bytes = read_text(folder / file.name);
      EXPECT_EQ(file.size_bytes, bytes.size()) << file.name;
      EXPECT_EQ(file.hash, hash_of(as_bytes(bytes))) << file.name;
    }
  }
}

}  // namespace
}  // namespace tranship::onnx

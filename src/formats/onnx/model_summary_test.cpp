#include "formats/onnx/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/testing.h"

namespace tranship::onnx {
namespace {

using testing::ElementsAre;

const std::filesystem::path kCases = std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases";

TEST(ModelSummary, says_what_a_model_takes_and_gives) {
  const ModelSummary summary = read_summary(kCases / "python_export/llama/model.onnx");
  ASSERT_EQ(summary.inputs.size(), 2U);
  EXPECT_EQ(summary.inputs[0].name, "input_ids");
  EXPECT_EQ(summary.inputs[0].dtype, DType::kI64);
  EXPECT_THAT(summary.inputs[0].shape, ElementsAre(-1, -1));
  EXPECT_FALSE(summary.inputs[0].dim_names[1].empty());
  EXPECT_EQ(summary.outputs[0].name, "logits");
  EXPECT_EQ(summary.outputs[0].shape.back(), 96);
  EXPECT_EQ(summary.opsets.at(""), 20);
  EXPECT_EQ(summary.ir_version, 10);
  EXPECT_TRUE(summary.producer.starts_with("pytorch"));
  EXPECT_GT(summary.operators.at("MatMul"), 2U);
  EXPECT_GT(summary.num_nodes, summary.operators.at("MatMul"));
  EXPECT_GT(summary.num_weights, 5U);
  EXPECT_THAT(summary.data_files, ElementsAre("model.onnx.data"));
}

TEST(ModelSummary, names_each_weight_with_its_dtype_size_and_place) {
  const std::filesystem::path path = kCases / "python_export/llama/model.onnx";
  const ModelSummary summary = read_summary(path);
  ASSERT_EQ(summary.weights.size(), summary.num_weights);
  const auto embedding =
      std::ranges::find(summary.weights, std::vector<int64_t>{96, 32}, &WeightInfo::shape);
  ASSERT_NE(embedding, summary.weights.end());
  EXPECT_EQ(embedding->dtype, "f32");
  EXPECT_EQ(embedding->size_bytes, 96U * 32 * 4);
  EXPECT_EQ(embedding->data_file, "model.onnx.data");
  uint64_t external_bytes = 0;
  for (const WeightInfo& weight : summary.weights) {
    EXPECT_GT(weight.size_bytes, 0U) << weight.name;
    if (!weight.data_file.empty()) external_bytes += weight.size_bytes;
  }
  EXPECT_LE(external_bytes, std::filesystem::file_size(path.string() + ".data"));
}

TEST(ModelSummary, cut_off_files_are_corrupt_or_have_less) {
  const std::string text = read_text(kCases / "onnx/add.onnx");
  const ModelSummary whole = read_summary(kCases / "onnx/add.onnx");
  const TestFolder folder;
  size_t corrupt = 0;
  for (size_t size = 0; size < text.size(); ++size) {
    const auto path = folder.write("cut.onnx", text.substr(0, size));
    try {
      EXPECT_LE(read_summary(path).num_nodes,
                whole.num_nodes);  // protobuf has no length: whole fields may be read
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal);
      ++corrupt;
    }
  }
  EXPECT_GT(corrupt, text.size() / 2);
}

TEST(ModelSummary, other_files_are_corrupt) {
  const TestFolder folder;
  EXPECT_EQ(tranship::error_of([&] { read_summary(folder.write("a.onnx", "hello")); }).kind(),
            ErrorKind::kCorrupt);
  EXPECT_EQ(tranship::error_of([&] { read_summary(folder.write("b.onnx", "")); }).kind(),
            ErrorKind::kCorrupt);
  EXPECT_EQ(tranship::error_of([&] { read_summary(folder / "absent.onnx"); }).kind(),
            ErrorKind::kIo);
}

}  // namespace
}  // namespace tranship::onnx

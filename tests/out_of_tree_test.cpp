// An architecture is one file, also outside of src/models: the table of this test is the usual one
// and bag_of_words.
#include <gtest/gtest.h>

#include "formats/onnx/onnx_program.h"
#include "interpret/interpret.h"
#include "tasks/task.h"

namespace tranship {
namespace {

TEST(OutOfTree, AModelOfOneFileIsListedBuiltRunAndLowered) {
  const models::Family* family = models::find_family("bag_of_words");
  ASSERT_NE(family, nullptr);
  ASSERT_NE(models::find_family("llama"), nullptr);
  const Checkpoint checkpoint = Checkpoint::synthetic(family->tiny_config);
  const tasks::TaskProgram built = tasks::forward(checkpoint.data(), {});
  NamedTensors inputs;
  inputs.emplace("input_ids", Tensor::of(std::vector<int64_t>{3, 5, 0, 7, 7, 7}, {2, 3}));
  inputs.emplace("attention_mask", Tensor::of(std::vector<int64_t>{1, 1, 0, 1, 0, 0}, {2, 3}));
  const Tensor logits = interpret(built.program, "model", inputs).at("logits");
  ASSERT_EQ(logits.shape(), (std::vector<int64_t>{2, 2}));
  // The second row is token 7 alone: its embedding through the classifier.
  const Tensor table = read_all(*built.program.parameters.at("embed_tokens.weight"));
  const Tensor weight = read_all(*built.program.parameters.at("classifier.weight"));
  const Tensor bias = read_all(*built.program.parameters.at("classifier.bias"));
  for (int64_t label = 0; label < 2; ++label) {
    double expected = bias.at(label);
    for (int64_t i = 0; i < 8; ++i) expected += weight.at(label * 8 + i) * table.at(7 * 8 + i);
    EXPECT_NEAR(logits.at(2 + label), expected, 1e-6);  // a sum of 8 products below 1, in f32
  }
  EXPECT_GT(onnx::OnnxProgram::lower(built.program, {}).num_nodes("model"), 0u);
}

}  // namespace
}  // namespace tranship

// What goes wrong with encoder-decoders elsewhere: masks that do not reach every attention, and
// keys of the encoder that are computed anew at each step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/testing.h"
#include "interpret/interpret.h"
#include "tasks/task.h"

namespace tranship {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

CheckpointData tiny(std::string_view model_type) {
  return Checkpoint::synthetic(models::find_family(model_type)->tiny_config).data();
}

/// Names of the inputs that a graph's outputs depend on.
std::set<std::string> used_inputs(const ir::Graph& graph) {
  std::set<ir::ValueId> needed;
  for (const ir::Output& output : graph.outputs()) needed.insert(output.value);
  std::set<std::string> names;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const ir::Node& node = graph.nodes()[i];
    if (std::ranges::none_of(node.outputs, [&](ir::ValueId id) { return needed.contains(id); }))
      continue;
    needed.insert(node.inputs.begin(), node.inputs.end());
    if (node.kind() == ir::OpKind::kInput) names.insert(ir::as<ir::Input>(*node.op).name);
  }
  return names;
}

std::set<std::string> parameters_of(const ir::Graph& graph) {
  std::set<std::string> names;
  for (const ir::Node& node : graph.nodes()) {
    if (node.kind() == ir::OpKind::kParam) names.insert(ir::as<ir::Param>(*node.op).name);
  }
  return names;
}

// "T5: encoder ignores padding; decoder without encoder mask" (spec/cases.md).
TEST(EncoderDecoderAnomaly, the_encoders_mask_reaches_every_graph_of_t5) {
  const CheckpointData checkpoint = tiny("t5");
  const tasks::TaskProgram generation = tasks::generation(checkpoint, {});
  ASSERT_EQ(generation.program.components.size(), 3U);
  for (const ir::Component& component : generation.program.components)
    EXPECT_THAT(used_inputs(*component.graph), Contains("attention_mask")) << component.name;
  const tasks::TaskProgram forward = tasks::forward(checkpoint, {});
  EXPECT_THAT(used_inputs(*forward.program.components[0].graph), Contains("attention_mask"));
}

Tensor ids(std::vector<int64_t> values) {
  const auto length = std::ssize(values);
  return Tensor::of(std::span<const int64_t>(values), {1, length});
}

/// The logits of a T5 for a text of four tokens with so many places of padding around it.
Tensor logits_of_padded(const ir::Program& program, size_t left, size_t right) {
  std::vector<int64_t> tokens(left, 0), mask(left, 0);
  for (const int64_t id : {17, 5, 80, 33}) {
    tokens.push_back(id);
    mask.push_back(1);
  }
  tokens.resize(tokens.size() + right, 0);
  mask.resize(tokens.size(), 0);
  return interpret(program, "model",
                   {{"input_ids", ids(tokens)},
                    {"attention_mask", ids(mask)},
                    {"decoder_input_ids", ids({0, 9, 41})}})
      .at("logits");
}

TEST(EncoderDecoderAnomaly, padding_on_either_side_changes_nothing_that_t5_says) {
  const tasks::TaskProgram made = tasks::forward(tiny("t5"), {});
  const Tensor expected = logits_of_padded(made.program, 0, 0);
  for (const auto& [left, right] : {std::pair<size_t, size_t>{0, 3}, {5, 0}, {2, 30}}) {
    const Tensor found = logits_of_padded(made.program, left, right);
    ASSERT_EQ(found.shape(), expected.shape());
    for (int64_t i = 0; i < found.num_elements(); ++i)
      EXPECT_NEAR(found.at(i), expected.at(i), 1e-5) << left << " left, " << right << " right";
  }
}

// "T5 FFN 66246 > 65504" (spec/cases.md).
TEST(EncoderDecoderAnomaly, t5_in_f16_is_refused_since_it_overflows) {
  const Error error = error_of([] { tasks::forward(tiny("t5"), {.dtype = DType::kF16}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("65504"));
  EXPECT_NO_THROW(tasks::forward(tiny("t5"), {.dtype = DType::kBF16}));
}

// "cross-attention K/V not inputs, constant outputs, merged decoder needs use_cache_branch"
// (spec/cases.md).
TEST(EncoderDecoderAnomaly, decode_takes_the_encoders_keys_and_does_not_compute_them) {
  for (const std::string_view model_type : {"t5", "whisper"}) {
    const tasks::TaskProgram made = tasks::generation(tiny(model_type), {});
    const ir::Component& decode = made.program.components.back();
    const std::set<std::string> inputs = used_inputs(*decode.graph);
    EXPECT_THAT(inputs, Not(Contains("use_cache_branch")));
    const std::set<std::string> weights = parameters_of(*decode.graph);
    int num_cross = 0;
    for (const ir::State& state : decode.states) {
      EXPECT_EQ(state.input, "input." + state.name);
      EXPECT_EQ(state.output, "output." + state.name);
      EXPECT_THAT(inputs, Contains(state.input)) << "an output that depends on nothing is constant";
      if (state.kind != ir::State::Kind::kReadOnly) continue;
      ++num_cross;
      EXPECT_THAT(state.name, HasSubstr("past_key_values.cross_attention_cache.layers."));
    }
    EXPECT_GT(num_cross, 0);
    for (const std::string& weight : weights) {
      EXPECT_FALSE(weight.find("EncDecAttention.k") != weight.npos ||
                   weight.find("EncDecAttention.v") != weight.npos ||
                   weight.find("encoder_attn.k_proj") != weight.npos ||
                   weight.find("encoder_attn.v_proj") != weight.npos)
          << weight;
    }
  }
}

}  // namespace
}  // namespace tranship

#include "generation/cache_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "formats/onnx/model_summary.h"
#include "formats/onnx/ort_test_support.h"
#include "models/families.h"
#include "tranship/exporters.h"

namespace tranship::generation {
namespace {

class Buffers : public onnx::NeedsOnnxRuntime {
 protected:
  void SetUp() override {
    NeedsOnnxRuntime::SetUp();
    if (IsSkipped()) return;
    OnnxExporter()
        .export_for_generation(Checkpoint::synthetic(models::find_family("llama")->tiny_config),
                               {.dynamic = true, .ort_fusions = "cpu"})
        .save_pretrained(folder_.path());
  }

  onnx::Session open(const std::string& component) const {
    return onnx::Session::open(folder_ / (component + ".onnx"), {.intra_op_threads = 1});
  }
  /// Ids, mask and positions of a call with so many tokens, `seen` of them before.
  static NamedTensors call(int64_t length, int64_t seen) {
    NamedTensors inputs;
    Tensor ids(DType::kI64, {1, length}), positions(DType::kI64, {1, length}),
        mask(DType::kI64, {1, seen + length});
    for (int64_t i = 0; i < length; ++i) {
      ids.i64()[static_cast<size_t>(i)] = 5 + 3 * i;
      positions.i64()[static_cast<size_t>(i)] = seen + i;
    }
    std::ranges::fill(mask.i64(), 1);
    inputs.emplace("input_ids", ids);
    inputs.emplace("position_ids", positions);
    inputs.emplace("attention_mask", mask);
    return inputs;
  }

  TestFolder folder_;
};

TEST_F(Buffers, what_goes_in_and_out_of_decode_is_one_buffer_that_it_writes) {
  const onnx::Session prefill = open("prefill"), decode = open("decode");
  onnx::Binding first(prefill), step(decode);
  const auto bind = [](onnx::Binding& to, const onnx::Session& session, NamedTensors& inputs) {
    for (auto& [name, tensor] : inputs) to.bind_input(name, session.over(tensor));
  };
  NamedTensors prompt = call(3, 0);
  bind(first, prefill, prompt);
  const CacheParts cache = find_cache(&prefill, decode);
  const std::vector<CachePart>& parts = cache.kept;
  for (const CachePart& part : parts) first.bind_output(part.prefill_output);
  first.run();
  CacheBuffers buffers(decode, step, cache, {});
  Outputs made = first.outputs();
  NamedTensors states;
  for (const CachePart& part : parts)
    states.emplace(part.decode_input, made.at(part.prefill_output).to_tensor());
  buffers.take(made, 3);
  step.bind_output("logits");

  const int64_t capacity = buffers.capacity();
  EXPECT_GT(capacity, 200);
  const std::byte* place = buffers.values()[0].bytes().data();
  for (int64_t seen = 3; seen < 6; ++seen) {
    buffers.prepare(seen, seen == 5 ? capacity - 4 : 1);  // moves in the end
    NamedTensors token = call(1, seen);
    bind(step, decode, token);
    step.run();
    NamedTensors inputs = token;
    for (const auto& [name, state] : states) inputs.emplace(name, state);
    const NamedTensors expected = decode.run(inputs);  // the same by copies
    const Tensor logits = step.output("logits").to_tensor();
    for (int64_t i = 0; i < logits.num_elements(); ++i)
      EXPECT_NEAR(logits.at(i), expected.at("logits").at(i), 1e-5);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Tensor buffer = buffers.values()[i].to_tensor();
      const Tensor& state = expected.at(parts[i].decode_output);
      const int64_t size = state.shape()[3];
      for (int64_t j = 0; j < (seen + 1) * size; ++j) EXPECT_EQ(buffer.at(j), state.at(j));
      states.at(parts[i].decode_input) = state;
    }
    if (seen < 5) {
      EXPECT_EQ(step.output(parts[0].decode_output).bytes().data(), place);
    }
  }
  EXPECT_GT(buffers.capacity(), capacity);
}

TEST_F(Buffers, graphs_say_which_caches_are_written_in_place) {
  const onnx::ModelSummary fused = onnx::read_summary(folder_ / "decode.onnx");
  EXPECT_EQ(fused.in_place.size(), 4U);
  EXPECT_EQ(fused.in_place.at("input.past_key_values.layers.1.values"),
            "output.past_key_values.layers.1.values");
  EXPECT_TRUE(onnx::read_summary(folder_ / "prefill.onnx").in_place.empty());
}

}  // namespace
}  // namespace tranship::generation

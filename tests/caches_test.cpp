// Every way to keep what was seen computes the same: golden cases of models with a cache of keys
// and values, run with a cache that grows and with one of slots, token by token and in blocks.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/onnx_sessions.h"
#include "support/run_golden.h"

namespace tranship::testing {
namespace {

constexpr int64_t kSlots = 48;
constexpr const char* kMask = "attention_mask";

/// The cases that prefill and decode, and whose layers keep keys and values alone.
std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const std::string& name : golden_cases()) {
    const bool keeps_more = name.starts_with("generation_mamba") ||
                            name.starts_with("generation_t5") ||
                            name.starts_with("generation_whisper");
    if (name.starts_with("generation_") && !keeps_more) names.push_back(name);
  }
  return names;
}

/// bool [B, 1, queries, slots] of a mask [B, seen]: the last tokens see themselves and all before
/// them that is there.
Tensor slot_mask(const Tensor& mask, int64_t num_queries, int64_t num_slots) {
  const int64_t batch = mask.shape()[0], seen = mask.shape()[1];
  Tensor out(DType::kBool, {batch, 1, num_queries, num_slots});
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const int64_t slot = i % num_slots, query = i / num_slots % num_queries,
                  row = i / num_slots / num_queries;
    const bool is_before = slot <= seen - num_queries + query;
    out.set(i, is_before && mask.at(row * seen + slot) != 0 ? 1 : 0);
  }
  return out;
}

GoldenCase with_slot_masks(GoldenCase golden, int64_t num_slots) {
  for (auto& run : golden.runs) {
    for (GoldenCall& call : run) {
      const auto mask = call.inputs.find(kMask);
      if (mask == call.inputs.end()) continue;
      const int64_t queries = call.inputs.at("input_ids").shape()[1];
      mask->second = slot_mask(mask->second, queries, num_slots);
    }
  }
  return golden;
}

/// The same, with all calls to decode.
GoldenCase in_decode(GoldenCase golden) {
  for (auto& run : golden.runs) {
    for (GoldenCall& call : run) call.component = "decode";
  }
  return golden;
}

/// A cache before the first token, for so many sequences.
NamedTensors empty_cache(const ir::Program& program, int64_t batch, int64_t num_slots) {
  NamedTensors cache;
  const ir::Component& decode = program.components.back();
  for (const ir::Node* node : decode.graph->inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    if (std::ranges::find(decode.states, input.name, &ir::State::input) == decode.states.end())
      continue;
    std::vector<int64_t> shape;
    for (const ir::Dim& dim : input.shape.dims) {
      shape.push_back(dim.evaluate({{"batch", batch}, {"past", 0}, {"cache_length", num_slots}}));
    }
    cache.emplace(input.name, Tensor(input.dtype, shape));
  }
  return cache;
}

struct Form {
  const char* name;
  bool has_slots, prompts_in_decode;
  int64_t slots_at_run = kSlots;  // the buffers' length, whatever the export said
};

class Caches : public ::testing::TestWithParam<std::tuple<std::string, Form>> {};

TEST_P(Caches, compute_what_transformers_does) {
  const auto& [name, form] = GetParam();
  const GoldenCase read = read_golden(name);
  tasks::TaskOptions options;
  options.graph_inputs = optional_inputs_of(read);
  if (form.has_slots) options.max_cache_len = kSlots;
  options.multi_token_decode = form.prompts_in_decode;
  const tasks::TaskProgram built = tasks::generation(golden_checkpoint(read), options);
  GoldenCase golden = form.has_slots ? with_slot_masks(read, form.slots_at_run) : read;
  if (form.prompts_in_decode) golden = in_decode(golden);
  const OnnxSessions plain(built.program, {});
  const OnnxSessions fused(built.program, {.fusions = onnx::Provider::kCpu});
  for (const auto& run : golden.runs) {
    GoldenCase one = golden;
    one.runs = {run};
    NamedTensors cache;
    if (form.prompts_in_decode) {
      const int64_t batch = run.front().inputs.at("input_ids").shape()[0];
      cache = empty_cache(built.program, batch, form.slots_at_run);
    }
    run_case(one, built.program, in_interpreter(built.program), cache);
    run_case(one, built.program, plain.runner(), cache);
    run_case(one, built.program, fused.runner(), cache);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Caches,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(Form{"growing_blocks", false, true},
                                                              Form{"slots", true, false},
                                                              Form{"slots_blocks", true, true},
                                                              Form{"slots_blocks_longer", true,
                                                                   true, kSlots + 9})),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param).name;
                         });

}  // namespace
}  // namespace tranship::testing

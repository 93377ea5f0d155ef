// Every way to keep what was seen computes the same: golden cases of models with a cache of keys
// and values, run with a cache that grows and with one of slots, token by token and in blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "support/onnx_sessions.h"
#include "support/run_golden.h"

namespace tranship::testing {
namespace {

constexpr int64_t kSlots = 48;
constexpr const char* kMask = "attention_mask";

/// The graphs that there are: of primitives, of composites, and with ONNX Runtime's own operators,
/// of which its CPU has all that other providers' graphs have in f32.
const std::vector<onnx::OnnxOptions> kTargets = {{},
                                                 {.opset_version = 24},
                                                 {.fusions = onnx::Provider::kCpu},
                                                 {.fusions = onnx::Provider::kCuda},
                                                 {.fusions = onnx::Provider::kWebGpu},
                                                 {.fusions = onnx::Provider::kDml}};

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

const std::vector<Form> kForms = {{"growing_blocks", false, true},
                                  {"slots", true, false},
                                  {"slots_blocks", true, true},
                                  {"slots_blocks_longer", true, true, kSlots + 9}};

/// How many places of padding each row of a case's only run has, on the left.
std::vector<int64_t> padding_of(const GoldenCase& golden) {
  const Tensor& mask = golden.runs[0][0].inputs.at(kMask);
  const int64_t length = mask.shape()[1];
  std::vector<int64_t> pads;
  for (int64_t row = 0; row < mask.shape()[0]; ++row) {
    pads.push_back(0);
    while (mask.at(row * length + pads.back()) == 0) ++pads.back();
  }
  return pads;
}

/// Puts the padding of a case's only run on the right of its prompts.
void move_padding_right(GoldenCase& golden) {
  const std::vector<int64_t> pads = padding_of(golden);
  const int64_t length = golden.runs[0][0].inputs.at(kMask).shape()[1];
  for (GoldenCall& call : golden.runs[0]) {
    for (auto& [name, tensor] : call.inputs) {
      const int64_t width = tensor.shape()[1];
      if (width < length) continue;
      const Tensor before = tensor;
      for (int64_t i = 0; i < std::ssize(pads) * length; ++i) {
        const int64_t row = i / length;
        const int64_t from = (i % length + pads[static_cast<size_t>(row)]) % length;
        tensor.set(row * width + i % length, before.at(row * width + from));
      }
    }
  }
}

/// The only run of a case, whose batch is padded on the left, with its padding on the right: the
/// tokens that each row has in common with the others get what `logits` says they got there.
GoldenCase padded_right(const GoldenCase& golden, const std::vector<Tensor>& logits) {
  GoldenCase moved = golden;
  move_padding_right(moved);
  const std::vector<int64_t> pads = padding_of(golden);
  const int64_t length = golden.runs[0][0].inputs.at(kMask).shape()[1];
  const int64_t common = length - *std::ranges::max_element(pads);
  for (size_t step = 0; step < moved.runs[0].size(); ++step) {
    ExpectedOutput expected{.shape = logits[step].shape(), .positions = {}, .values = {}};
    const int64_t queries = expected.shape[1], size = expected.shape[2];
    for (int64_t i = 0; i < std::min(queries, common); ++i) expected.positions.push_back(i);
    for (int64_t row = 0; row < std::ssize(pads); ++row) {
      for (const int64_t position : expected.positions) {
        const int64_t moved_by = queries == length ? pads[static_cast<size_t>(row)] : 0;
        const int64_t from = row * queries + position + moved_by;
        for (int64_t i = 0; i < size; ++i)
          expected.values.push_back(static_cast<float>(logits[step].at(from * size + i)));
      }
    }
    moved.runs[0][step].outputs = {{"logits", std::move(expected)}};
  }
  return moved;
}

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
  std::list<OnnxSessions> sessions;
  for (const onnx::OnnxOptions& target : kTargets) sessions.emplace_back(built.program, target);
  for (const auto& run : golden.runs) {
    GoldenCase one = golden;
    one.runs = {run};
    NamedTensors cache;
    if (form.prompts_in_decode) {
      const int64_t batch = run.front().inputs.at("input_ids").shape()[0];
      cache = empty_cache(built.program, batch, form.slots_at_run);
    }
    run_case(one, built.program, in_interpreter(built.program), cache);
    for (const OnnxSessions& made : sessions) run_case(one, built.program, made.runner(), cache);
  }
}

/// Runs decode with each buffer bound as what comes in and as what goes out: no state is copied,
/// and none has another place than the one it began with.
Runner in_place(const onnx::Session& session, NamedTensors& buffers) {
  return [&](const std::string&, const NamedTensors& inputs) {
    onnx::Binding binding(session);
    NamedTensors fed = inputs;
    std::map<std::string, onnx::Value> bound;
    for (auto& [name, tensor] : fed) {
      const bool is_state = buffers.contains(name);
      bound.emplace(name, session.over(is_state ? buffers.at(name) : tensor));
      binding.bind_input(name, bound.at(name));
      if (is_state)
        binding.bind_output("output." + name.substr(std::string_view("input.").size()),
                            bound.at(name));
    }
    binding.bind_output("logits");
    binding.run();
    NamedTensors outputs;
    for (const auto& [name, value] : binding.outputs()) outputs.emplace(name, value.to_tensor());
    return outputs;
  };
}

class Slots : public ::testing::TestWithParam<std::string> {};

TEST_P(Slots, are_written_where_they_are) {
  const GoldenCase golden = in_decode(with_slot_masks(read_golden(GetParam()), kSlots));
  tasks::TaskOptions options;
  options.graph_inputs = optional_inputs_of(golden);
  options.max_cache_len = kSlots;
  options.multi_token_decode = true;
  const tasks::TaskProgram built = tasks::generation(golden_checkpoint(golden), options);
  const OnnxSessions fused(built.program, {.fusions = onnx::Provider::kCpu});
  const OnnxSessions standard(built.program, {.opset_version = 24});
  for (const auto& run : golden.runs) {
    GoldenCase one = golden;
    one.runs = {run};
    const int64_t batch = run.front().inputs.at("input_ids").shape()[0];
    for (const OnnxSessions* sessions : {&fused, &standard}) {
      NamedTensors buffers = empty_cache(built.program, batch, kSlots);
      const NamedTensors cache = buffers;
      run_case(one, built.program, in_place(sessions->at("decode"), buffers), cache);
    }
  }
}

class Padding : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(Padding, may_stand_on_the_right_too) {
  const auto& [name, has_slots] = GetParam();
  GoldenCase golden = read_golden(name);
  golden.runs = {golden.runs.back()};
  tasks::TaskOptions options;
  options.graph_inputs = optional_inputs_of(golden);
  const tasks::TaskProgram growing = tasks::generation(golden_checkpoint(golden), options);
  std::vector<Tensor> logits;
  const Runner interpreted = in_interpreter(growing.program);
  run_case(golden, growing.program, [&](const std::string& component, const NamedTensors& inputs) {
    NamedTensors outputs = interpreted(component, inputs);
    logits.push_back(outputs.at("logits"));
    return outputs;
  });
  GoldenCase moved = padded_right(golden, logits);
  if (has_slots) {
    options.max_cache_len = kSlots;
    moved = with_slot_masks(moved, kSlots);
  }
  const tasks::TaskProgram built = tasks::generation(golden_checkpoint(golden), options);
  for (const onnx::OnnxOptions& target : kTargets)
    run_case(moved, built.program, OnnxSessions(built.program, target).runner());
}

/// What is expected of the last of a call's places alone.
GoldenCase of_last_places(GoldenCase golden) {
  for (auto& run : golden.runs) {
    for (GoldenCall& call : run) {
      const auto logits = call.outputs.find("logits");
      if (logits == call.outputs.end()) continue;
      ExpectedOutput& all = logits->second;
      const int64_t rows = all.shape[0], size = all.shape[2];
      const int64_t kept = static_cast<int64_t>(all.values.size()) / (rows * size);
      ExpectedOutput last{.shape = {rows, 1, size}, .positions = {}, .values = {}};
      for (int64_t row = 0; row < rows; ++row) {
        const auto begin = all.values.begin() + ((row + 1) * kept - 1) * size;
        last.values.insert(last.values.end(), begin, begin + size);
      }
      all = std::move(last);
    }
  }
  return golden;
}

std::vector<std::string> generating_cases() {
  std::vector<std::string> names = golden_cases();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("generation_"); });
  return names;
}

class LastToken : public ::testing::TestWithParam<std::string> {};

TEST_P(LastToken, has_the_logits_that_it_has_among_all) {
  const GoldenCase golden = of_last_places(read_golden(GetParam()));
  tasks::TaskOptions options;
  options.graph_inputs = optional_inputs_of(golden);
  options.last_token_logits = true;
  const tasks::TaskProgram built = tasks::generation(golden_checkpoint(golden), options);
  for (const tasks::Signature& signature : built.signatures)
    EXPECT_EQ(signature.last_token_logits, signature.output_class.find("LM") != std::string::npos);
  run_case(golden, built.program, in_interpreter(built.program));
  for (const onnx::OnnxOptions& target : kTargets)
    run_case(golden, built.program, OnnxSessions(built.program, target).runner());
}

INSTANTIATE_TEST_SUITE_P(Golden, LastToken, ::testing::ValuesIn(generating_cases()),
                         [](const auto& tested) { return tested.param; });

/// Prompts in prefill and in decode, with caches that grow and with slots; padding on the right.
class LastTokenOfForm : public ::testing::TestWithParam<std::tuple<std::string, Form>> {};

TEST_P(LastTokenOfForm, is_found_by_the_mask) {
  const auto& [name, form] = GetParam();
  GoldenCase golden = read_golden(name);
  golden.runs = {golden.runs.back()};
  const GoldenCase expected = of_last_places(golden);
  const Tensor mask = golden.runs[0][0].inputs.at(kMask);
  for (const bool on_the_right : {false, true}) {
    GoldenCase one = expected;
    if (on_the_right) move_padding_right(one);
    if (form.has_slots) one = with_slot_masks(one, form.slots_at_run);
    if (form.prompts_in_decode) one = in_decode(one);
    tasks::TaskOptions options;
    options.graph_inputs = optional_inputs_of(one);
    options.multi_token_decode = form.prompts_in_decode;
    options.last_token_logits = true;
    if (form.has_slots) options.max_cache_len = kSlots;
    const tasks::TaskProgram built = tasks::generation(golden_checkpoint(one), options);
    NamedTensors cache;
    if (form.prompts_in_decode)
      cache = empty_cache(built.program, mask.shape()[0], form.slots_at_run);
    run_case(one, built.program, in_interpreter(built.program), cache);
    for (const onnx::OnnxOptions& target : kTargets)
      run_case(one, built.program, OnnxSessions(built.program, target).runner(), cache);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, LastTokenOfForm,
                         ::testing::Combine(::testing::Values("generation_llama_default",
                                                              "generation_qwen3_default"),
                                            ::testing::ValuesIn(kForms)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param).name;
                         });

/// A window counts padding, so that it sees other tokens where that stands elsewhere.
std::vector<std::string> cases_without_windows() {
  std::vector<std::string> names = cases();
  std::erase_if(names, [](const std::string& name) {
    return name.find("window") != name.npos || name.find("layer_types") != name.npos;
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Golden, Padding,
                         ::testing::Combine(::testing::ValuesIn(cases_without_windows()),
                                            ::testing::Bool()),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) +
                                  (std::get<1>(tested.param) ? "_slots" : "_growing");
                         });

INSTANTIATE_TEST_SUITE_P(Golden, Slots, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param; });

INSTANTIATE_TEST_SUITE_P(Golden, Caches,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::ValuesIn(kForms)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param).name;
                         });

}  // namespace
}  // namespace tranship::testing

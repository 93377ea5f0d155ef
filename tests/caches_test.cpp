// Every way to keep what was seen computes the same: golden cases of models with a cache of keys
// and values, run with a cache that grows and with one of slots, token by token and in blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "passes/passes.h"
#include "support/onnx_sessions.h"
#include "support/run_golden.h"

namespace tranship::testing {
namespace {

constexpr int64_t kSlots = 48;
constexpr const char* kMask = "attention_mask";
constexpr const char* kDecoderIds = "decoder_input_ids";
constexpr const char* kDecoderMask = "decoder_attention_mask";

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
    const bool keeps_more = name.starts_with("generation_mamba");
    if (name.starts_with("generation_") && !keeps_more) names.push_back(name);
  }
  return names;
}

/// Those of decoders without an encoder.
std::vector<std::string> cases_of_decoders() {
  std::vector<std::string> names = cases();
  std::erase_if(names, [](const std::string& name) {
    return read_golden(name).runs[0][0].component == "encoder";
  });
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

bool has_decoder(const GoldenCall& call) { return call.inputs.contains(kDecoderIds); }

/// Masks of slots for the masks of tokens, where there are any.
GoldenCase with_slot_masks(GoldenCase golden, int64_t num_slots) {
  for (auto& run : golden.runs) {
    for (GoldenCall& call : run) {
      if (call.component == "encoder") continue;
      const auto mask = call.inputs.find(has_decoder(call) ? kDecoderMask : kMask);
      if (mask == call.inputs.end()) continue;
      const int64_t queries =
          call.inputs.at(has_decoder(call) ? kDecoderIds : "input_ids").shape()[1];
      mask->second = slot_mask(mask->second, queries, num_slots);
    }
  }
  return golden;
}

/// A mask without padding for the decoder beside an encoder.
GoldenCase with_decoder_masks(GoldenCase golden) {
  for (auto& run : golden.runs) {
    int64_t seen = 0;
    for (GoldenCall& call : run) {
      if (!has_decoder(call)) continue;
      const std::vector<int64_t>& ids = call.inputs.at(kDecoderIds).shape();
      seen += ids[1];
      Tensor mask(DType::kI64, {ids[0], seen});
      std::ranges::fill(mask.i64(), 1);
      call.inputs.insert_or_assign(kDecoderMask, std::move(mask));
    }
  }
  return golden;
}

/// The same, with all calls to decode; beside an encoder prefill comes first.
GoldenCase in_decode(GoldenCase golden) {
  for (auto& run : golden.runs) {
    for (GoldenCall& call : run) {
      if (call.component == "prefill" && !has_decoder(call)) call.component = "decode";
    }
  }
  return golden;
}

/// Rows of `a` and of `b` put together: [B, m, ...] and [B, n, ...] -> [B, m + n, ...].
template <class Span>
auto joined(const Span& a, const Span& b, int64_t num_rows) {
  std::vector<typename Span::value_type> out;
  const auto width = [&](const Span& all) { return std::ssize(all) / num_rows; };
  for (int64_t row = 0; row < num_rows; ++row) {
    for (const Span* part : {&a, &b}) {
      const auto from = part->begin() + row * width(*part);
      out.insert(out.end(), from, from + width(*part));
    }
  }
  return out;
}

/// Two calls to a decoder as one.
GoldenCall joined(const GoldenCall& a, const GoldenCall& b) {
  GoldenCall call = b;
  const auto ids = [](const GoldenCall& from) {
    const auto values = from.inputs.at(kDecoderIds).i64();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  const int64_t rows = b.inputs.at(kDecoderIds).shape()[0],
                count = std::ssize(ids(a)) / rows + std::ssize(ids(b)) / rows;
  const std::vector<int64_t> both = joined(ids(a), ids(b), rows);
  call.inputs.insert_or_assign(kDecoderIds, Tensor::of(std::span(both), {rows, count}));
  const ExpectedOutput &first = a.outputs.at("logits"), &second = b.outputs.at("logits");
  EXPECT_TRUE(first.positions.empty() && second.positions.empty());
  ExpectedOutput logits = {first.shape, {}, joined(first.values, second.values, rows)};
  logits.shape[1] = count;
  call.outputs = {{"logits", logits}};
  return call;
}

/// The decoder's steps behind an encoder, two at a time.
GoldenCase in_blocks(GoldenCase golden) {
  for (auto& run : golden.runs) {
    std::vector<GoldenCall> calls;
    for (size_t i = 0; i < run.size(); ++i) {
      const bool has_next = i + 1 < run.size() && has_decoder(run[i]);
      if (run[i].component == "decode" && has_next) {
        calls.push_back(joined(run[i], run[i + 1]));
        ++i;
      } else {
        calls.push_back(run[i]);
      }
    }
    run = calls;
  }
  return golden;
}

/// What prefill gives, with more slots.
Runner with_slots(Runner runner, int64_t num_slots) {
  return [runner = std::move(runner), num_slots](const std::string& component,
                                                 const NamedTensors& inputs) {
    NamedTensors outputs = runner(component, inputs);
    for (auto& [name, tensor] : outputs) {
      if (component != "prefill" || tensor.shape().size() != 4 ||
          name.find(".self_attention_cache.") == std::string::npos)
        continue;
      std::vector<int64_t> shape = tensor.shape();
      shape[2] = num_slots;
      Tensor longer(tensor.dtype(), shape);
      const int64_t from = tensor.shape()[2] * shape[3], to = num_slots * shape[3];
      for (int64_t i = 0; i < tensor.num_elements(); ++i)
        longer.set(i / from * to + i % from, tensor.at(i));
      tensor = std::move(longer);
    }
    return outputs;
  };
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
  bool is_fixed = false;          // that length, in the graph
};

const std::vector<Form> kForms = {{"growing_blocks", false, true},
                                  {"slots", true, false},
                                  {"slots_blocks", true, true},
                                  {"slots_blocks_longer", true, true, kSlots + 9},
                                  {"slots_fixed", true, false, kSlots, true},
                                  {"slots_blocks_fixed", true, true, kSlots, true}};

tasks::TaskProgram program_of(const GoldenCase& golden, tasks::TaskOptions options,
                              const Form& form) {
  if (form.has_slots) options.max_cache_len = kSlots;
  options.multi_token_decode = form.prompts_in_decode;
  tasks::TaskProgram built = tasks::generation(golden_checkpoint(golden), options);
  if (form.is_fixed) {
    for (ir::Component& component : built.program.components)
      passes::specialize(component.graph, {{"cache_length", kSlots}});
  }
  return built;
}

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
  GoldenCase golden = read_golden(name);
  const bool has_encoder = golden.runs[0][0].component == "encoder";
  if (has_encoder && form.has_slots && !form.prompts_in_decode) golden = with_decoder_masks(golden);
  tasks::TaskOptions options;
  options.graph_inputs = optional_inputs_of(golden);
  const tasks::TaskProgram built = program_of(golden, options, form);
  if (form.has_slots) golden = with_slot_masks(golden, form.slots_at_run);
  if (form.prompts_in_decode) golden = has_encoder ? in_blocks(golden) : in_decode(golden);
  std::list<OnnxSessions> sessions;
  for (const onnx::OnnxOptions& target : kTargets) sessions.emplace_back(built.program, target);
  std::vector<Runner> runners = {in_interpreter(built.program)};
  for (const OnnxSessions& made : sessions) runners.push_back(made.runner());
  for (const auto& run : golden.runs) {
    GoldenCase one = golden;
    one.runs = {run};
    NamedTensors cache;
    if (form.prompts_in_decode && !has_encoder) {
      const int64_t batch = run.front().inputs.at("input_ids").shape()[0];
      cache = empty_cache(built.program, batch, form.slots_at_run);
    }
    const bool longer = form.has_slots && form.slots_at_run != kSlots;
    for (const Runner& runner : runners)
      run_case(one, built.program, longer ? with_slots(runner, form.slots_at_run) : runner, cache);
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
    options.last_token_logits = true;
    const tasks::TaskProgram built = program_of(one, options, form);
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
  std::vector<std::string> names = cases_of_decoders();
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

INSTANTIATE_TEST_SUITE_P(Golden, Slots, ::testing::ValuesIn(cases_of_decoders()),
                         [](const auto& tested) { return tested.param; });

INSTANTIATE_TEST_SUITE_P(Golden, Caches,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::ValuesIn(kForms)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param).name;
                         });

}  // namespace
}  // namespace tranship::testing

// Caches of fixed length where exporters of today go wrong: windows, open shapes, a cache that is
// full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "anomalies/support.h"
#include "tranship/exporters.h"

namespace tranship::anomalies {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSlots = 16, kVocabulary = 96;
const GenerationOptions kStatic = {.cache_implementation = "static", .max_cache_len = kSlots};
const GenerationOptions kManyTokens = {
    .cache_implementation = "static", .max_cache_len = kSlots, .multi_token_decode = true};

ExportedModel exported(std::string_view config, const GenerationOptions& generation) {
  return OnnxExporter().export_for_generation(Checkpoint::synthetic(config),
                                              OnnxConfig{.dynamic = true}, generation);
}

/// What decode takes of a call before.
NamedTensors cache_of(NamedTensors outputs) {
  outputs.erase("logits");
  NamedTensors cache;
  constexpr std::string_view kOutput = "output.";
  for (auto& [name, tensor] : outputs)
    cache.emplace(name.starts_with(kOutput) ? name.substr(kOutput.size()) : name, tensor);
  return cache;
}

/// decode's buffers before the first token.
NamedTensors empty_cache(const ExportedModel& model, int64_t batch, int64_t slots) {
  NamedTensors cache;
  for (const Port& port : model.component("decode").program.inputs()) {
    if (!port.name.starts_with("input.")) continue;
    std::vector<int64_t> shape;
    for (const std::string& axis : port.shape) {
      shape.push_back(axis == "batch" ? batch : axis == "cache_length" ? slots : std::stoll(axis));
    }
    cache.emplace(port.name, Tensor(port.dtype, shape));
  }
  return cache;
}

NamedTensors decode(const ExportedModel& model, NamedTensors cache, const std::vector<int64_t>& ids,
                    int64_t batch = 1) {
  cache.emplace("input_ids", ints(ids, {batch, std::ssize(ids) / batch}));
  return model.run("decode", cache);
}

const std::vector<int64_t> kPrompt = {5, 17, 40, 8, 63, 21, 9, 77, 31, 2};

/// The logits after a prompt whose token at a place is `id`, and after one token more.
std::vector<double> continuation(const ExportedModel& model, bool prompt_in_decode, size_t place,
                                 int64_t id) {
  std::vector<int64_t> ids = kPrompt;
  ids.at(place) = id;
  const NamedTensors first =
      prompt_in_decode ? decode(model, empty_cache(model, 1, kSlots), ids)
                       : model.run("prefill", {{"input_ids", ints(ids, {1, std::ssize(ids)})}});
  std::vector<double> out =
      slice(first.at("logits"), (std::ssize(ids) - 1) * kVocabulary, kVocabulary);
  const NamedTensors second = decode(model, cache_of(first), {50});
  const std::vector<double> after = slice(second.at("logits"), 0, kVocabulary);
  out.insert(out.end(), after.begin(), after.end());
  return out;
}

TEST(StaticCache, takes_a_prompt_longer_than_the_window_and_sees_no_further) {
  const std::vector<double> expected = continuation(exported(kMistral, {}), false, 0, 5);
  for (const bool in_decode : {false, true}) {
    const ExportedModel model = exported(kMistral, in_decode ? kManyTokens : kStatic);
    expect_near(continuation(model, in_decode, 0, 5), expected);
    // Two layers of window 3 see four tokens back from the last of ten: place 5, and not place 4.
    EXPECT_EQ(continuation(model, in_decode, 4, 63), continuation(model, in_decode, 4, 64));
    EXPECT_NE(continuation(model, in_decode, 5, 21), continuation(model, in_decode, 5, 22));
  }
}

TEST(StaticCache, with_dynamic_shapes_has_axes_of_its_own_and_runs_with_other_sizes) {
  const ExportedModel model = exported(kLlama, kManyTokens);
  for (const Port& port : model.component("decode").program.inputs()) {
    if (port.name.ends_with(".keys") || port.name.ends_with(".values")) {
      EXPECT_THAT(port.shape, ElementsAre("batch", "2", "cache_length", "8")) << port.name;
    }
  }
  const std::vector<double> expected = continuation(model, true, 0, 5);
  for (const int64_t slots : {11, 16, 40}) {
    constexpr int64_t kBatch = 3;
    std::vector<int64_t> ids;
    for (int64_t row = 0; row < kBatch; ++row)
      ids.insert(ids.end(), kPrompt.begin(), kPrompt.end());
    const NamedTensors first = decode(model, empty_cache(model, kBatch, slots), ids, kBatch);
    const NamedTensors second = decode(model, cache_of(first), {50, 50, 50}, kBatch);
    for (int64_t row = 0; row < kBatch; ++row) {
      const int64_t last = (row + 1) * std::ssize(kPrompt) - 1;
      std::vector<double> found = slice(first.at("logits"), last * kVocabulary, kVocabulary);
      const std::vector<double> after = slice(second.at("logits"), row * kVocabulary, kVocabulary);
      found.insert(found.end(), after.begin(), after.end());
      expect_near(found, expected);
    }
  }
}

TEST(StaticCache, in_a_pt2_has_the_same_axes_in_each_leaf) {
  const ExportedModel model = DynamoExporter().export_for_generation(
      Checkpoint::synthetic(kLlama), DynamoConfig{.dynamic = true}, kManyTokens);
  std::vector<std::vector<std::string>> shapes;
  for (const Port& port : model.component("decode").program.inputs()) {
    if (port.name.ends_with(".keys") || port.name.ends_with(".values"))
      shapes.push_back(port.shape);
  }
  ASSERT_EQ(shapes.size(), 4U);
  for (const auto& shape : shapes)
    EXPECT_THAT(shape, ElementsAre("batch", "2", "cache_length", "8"));
}

TEST(StaticCache, does_not_grow_and_a_token_past_its_last_slot_is_an_error) {
  const std::vector<OnnxConfig> forms = {{.dynamic = true},
                                         {.dynamic = true, .opset_version = 24},
                                         {.dynamic = true, .ort_fusions = "cpu"}};
  for (const std::string_view config : {kLlama, kMistral}) {
    for (const OnnxConfig& form : forms) {
      const ExportedModel model =
          OnnxExporter().export_for_generation(Checkpoint::synthetic(config), form, kManyTokens);
      NamedTensors cache = empty_cache(model, 1, 4);
      for (int64_t id = 0; id < 4; ++id) {
        cache = cache_of(decode(model, cache, {id}));
        EXPECT_THAT(cache.at("past_key_values.layers.0.keys").shape(), ElementsAre(1, 2, 4, 8));
      }
      const Error error = error_of([&] { decode(model, cache, {4}); });
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("has 4 slots"));
      EXPECT_THAT(error.what(), HasSubstr("4 are taken, and the call has 1 token more"));
      EXPECT_THROW(decode(model, empty_cache(model, 1, 4), {1, 2, 3, 4, 5}), Error);
      NamedTensors lies = empty_cache(model, 1, 4);
      for (auto& [name, tensor] : lies) {
        if (name.ends_with("cumulative_length")) tensor.set(0, -1);
      }
      EXPECT_THROW(decode(model, lies, {1}), Error);
    }
  }
}

}  // namespace
}  // namespace tranship::anomalies

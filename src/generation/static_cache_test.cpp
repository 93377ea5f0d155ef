// The decode loop over caches of slots, which are written in place: the tokens are those of caches
// that grow, for each family, plain and fused, however the prompt is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "formats/onnx/ort_test_support.h"
#include "generation/cache_buffers.h"
#include "generation/onnx_model.h"
#include "generation/testing.h"
#include "models/families.h"
#include "tranship/exporters.h"
#include "tranship/generation.h"

namespace tranship::generation {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kSlots = 40;
const std::vector<Ids> kPrompts = {{5, 17, 3, 9, 22, 41, 8}, {11}, {7, 7, 30, 2}};

/// A way to export, and to read the prompt.
struct Form {
  const char* name;
  std::optional<std::string> fusions = {};
  bool reads_in_decode = false;
  std::optional<int64_t> fixed_batch = {};
};

class NeedsRuntime : public onnx::NeedsOnnxRuntime {
 protected:
  static Sink no_warnings() {
    return {.warning = [](std::string_view warning) { ADD_FAILURE() << warning; }, .progress = {}};
  }
  static Checkpoint checkpoint(std::string_view family) {
    Json config = Json::parse(models::find_family(family)->tiny_config);
    if (config.contains("sliding_window")) config["sliding_window"] = 4;
    config["max_position_embeddings"] = 4096;
    return Checkpoint::synthetic(config.dump());
  }
  Generator open(std::string_view family, const OnnxConfig& config,
                 const GenerationOptions& options) const {
    export_to(family, config, options);
    return Generator::open(folder_.path(), {}, no_warnings());
  }
  void export_to(std::string_view family, const OnnxConfig& config,
                 const GenerationOptions& options) const {
    OnnxExporter()
        .export_for_generation(checkpoint(family), config, options)
        .save_pretrained(folder_.path());
  }

  TestFolder folder_;
};

std::vector<Ids> new_ids(Generator& generator, std::span<const Ids> prompts,
                         int64_t max_new_tokens = 12) {
  std::vector<Ids> out;
  const GenerationConfig config = {.max_new_tokens = max_new_tokens, .prefill_chunk_size = 3};
  for (const GeneratedSequence& sequence : generator.generate(prompts, config).sequences)
    out.push_back(sequence.new_ids);
  return out;
}

class StaticCaches : public NeedsRuntime,
                     public testing::WithParamInterface<std::tuple<const char*, Form>> {};

TEST_P(StaticCaches, give_the_tokens_of_a_cache_that_grows) {
  const auto& [family, form] = GetParam();
  OnnxConfig config = {.dynamic = true, .ort_fusions = form.fusions};
  if (form.fixed_batch) config.static_shapes = {{"batch", *form.fixed_batch}};
  const auto prompts = std::span(kPrompts).first(
      static_cast<size_t>(form.fixed_batch.value_or(std::ssize(kPrompts))));
  Generator growing = open(family, {.dynamic = true}, {});
  const std::vector<Ids> expected = new_ids(growing, prompts);
  Generator generator = open(family, config,
                             {.cache_implementation = "static",
                              .max_cache_len = kSlots,
                              .multi_token_decode = form.reads_in_decode});
  EXPECT_EQ(new_ids(generator, prompts), expected);
  EXPECT_EQ(new_ids(generator, prompts), expected) << "nothing of the first call is left";
}

INSTANTIATE_TEST_SUITE_P(Families, StaticCaches,
                         testing::Combine(testing::Values("llama", "mistral", "qwen2", "qwen3",
                                                          "qwen3_moe"),
                                          testing::Values(Form{"plain"}, Form{"fused", "cpu"},
                                                          Form{"plain_decode_alone", {}, true},
                                                          Form{"fused_decode_alone", "cpu", true},
                                                          Form{"fused_one_row", "cpu", true, 1})),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param)) + "_" +
                                  std::get<1>(tested.param).name;
                         });

class Slots : public NeedsRuntime, public testing::WithParamInterface<Form> {
 protected:
  GenerationOptions options() const {
    return {.cache_implementation = "static",
            .max_cache_len = 2048,
            .multi_token_decode = GetParam().reads_in_decode};
  }
  std::unique_ptr<OnnxModel> model() const {
    export_to("llama", {.dynamic = true, .ort_fusions = GetParam().fusions}, options());
    return open_onnx_model(ExportedModel::from_pretrained(folder_.path()), {}, no_warnings());
  }
};

/// Where decode reads a part of the cache and where it has written it.
struct Places {
  const std::byte* in;
  const std::byte* out;
};

std::vector<Places> places(const OnnxModel& model) {
  std::vector<Places> out;
  const Decoder& decoder = model.decoder();
  const CacheParts parts = find_cache(nullptr, decoder.session());
  for (size_t i = 0; i < parts.kept.size(); ++i) {
    out.push_back({decoder.cache().values()[i].bytes().data(),
                   decoder.binding().output(parts.kept[i].decode_output).bytes().data()});
  }
  return out;
}

TEST_P(Slots, are_one_buffer_for_input_and_output_and_stay_where_they_are) {
  const std::unique_ptr<OnnxModel> model = this->model();
  model->prefill(pad_left(std::vector<Ids>{{5, 17, 3}, {9}}, 0));
  model->decode(Ids{4, 5});
  const std::vector<Places> first = places(*model);
  ASSERT_EQ(first.size(), 4U);
  for (const Places& place : first) EXPECT_EQ(place.in, place.out);
  for (int64_t step = 0; step < 5; ++step) {
    model->decode(Ids{step, 6});
    const std::vector<Places> now = places(*model);
    for (size_t i = 0; i < now.size(); ++i) {
      EXPECT_EQ(now[i].in, first[i].in);
      EXPECT_EQ(now[i].out, first[i].in);
    }
  }
}

TEST_P(Slots, are_written_where_a_token_stands_and_nowhere_else) {
  const std::unique_ptr<OnnxModel> model = this->model();
  model->prefill(pad_left(std::vector<Ids>{{5, 17, 3}}, 0));
  model->decode(Ids{4});
  onnx::Value& keys = const_cast<onnx::Value&>(model->decoder().cache().values()[0]);
  const int64_t heads = keys.shape()[1], slots = keys.shape()[2], size = keys.shape()[3];
  // A mark in each free slot, which no query sees: a copy of the buffer would not have them.
  const auto element = [&](int64_t head, int64_t slot) {
    void* bytes = keys.bytes().data();
    return static_cast<float*>(bytes) + (head * slots + slot) * size;
  };
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t slot = 4; slot < slots; ++slot) *element(head, slot) = 77;
  }
  const float before = *element(0, 3);
  model->decode(Ids{6});
  for (int64_t head = 0; head < heads; ++head) {
    EXPECT_NE(*element(head, 4), 77) << "the new token's slot";
    for (int64_t slot = 5; slot < slots; ++slot) ASSERT_EQ(*element(head, slot), 77);
  }
  EXPECT_EQ(*element(0, 3), before);
}

TEST_P(Slots, are_as_many_as_are_needed_and_grow) {
  Generator growing = open("llama", {.dynamic = true}, {});
  const Ids prompt(250, 5);
  const Ids expected = new_ids(growing, std::span(&prompt, 1), 20)[0];
  const std::unique_ptr<OnnxModel> model = this->model();
  model->prefill(pad_left(std::vector<Ids>{{5, 17, 3}}, 0));
  EXPECT_EQ(model->decoder().cache().num_slots(), 256);
  EXPECT_EQ(model->use().cache_bytes, 2 * 2 * 256 * 32 / 2 * 4) << "not those of 2048 slots";
  Generator generator = Generator::open(folder_.path(), {}, no_warnings());
  EXPECT_EQ(new_ids(generator, std::span(&prompt, 1), 20)[0], expected) << "over 256 in between";
}

TEST_P(Slots, a_conversation_goes_back_and_on) {
  const std::unique_ptr<OnnxModel> model = this->model();
  const Ids prompt = {5, 17, 3, 9, 22, 41};
  const auto best = [](const Logits& logits) {
    return std::ranges::max_element(logits.row(0)) - logits.row(0).begin();
  };
  const int64_t expected = best(model->prefill(pad_left(std::span(&prompt, 1), 0)));
  model->prefill(pad_left(std::vector<Ids>{{5, 17, 3, 1, 1}}, 0));
  model->decode(Ids{2});
  ASSERT_TRUE(model->rewind(3));
  EXPECT_EQ(best(model->extend(Ids{9, 22, 41})), expected);
  EXPECT_EQ(model->decoder().cache().num_slots(), 256);
}

INSTANTIATE_TEST_SUITE_P(Forms, Slots,
                         testing::Values(Form{"plain"}, Form{"fused", "cpu"},
                                         Form{"plain_decode_alone", {}, true}),
                         [](const auto& tested) { return std::string(tested.param.name); });

class FixedSlots : public NeedsRuntime {
 protected:
  Generator open_fixed(int64_t slots) const {
    return open("llama", {.dynamic = true, .static_shapes = {{"cache_length", slots}}},
                {.cache_implementation = "static", .max_cache_len = slots});
  }
  static std::string message(Generator& generator, const Ids& prompt, int64_t max_new_tokens) {
    return error_of([&] {
             generator.generate(std::span(&prompt, 1), {.max_new_tokens = max_new_tokens});
           })
        .what();
  }
};

TEST_F(FixedSlots, hold_so_many_tokens_and_the_rest_is_an_error) {
  Generator growing = open("llama", {.dynamic = true}, {});
  const Ids prompt = {5, 17, 3};
  const std::vector<Ids> expected = new_ids(growing, std::span(&prompt, 1), 10);
  Generator generator = open_fixed(12);
  EXPECT_EQ(new_ids(generator, std::span(&prompt, 1), 10), expected) << "the last is not kept";
  EXPECT_THAT(message(generator, prompt, 11),
              AllOf(HasSubstr("3 tokens and 11 new ones need 13 slots"), HasSubstr("has 12")));
  EXPECT_THAT(message(generator, Ids(13, 5), 1), HasSubstr("13 tokens"));
  const GenerationResult unasked = generator.generate(std::span(&prompt, 1), {});
  EXPECT_EQ(unasked.sequences[0].new_ids.size(), 10U) << "as many as fit, where nobody says";
}

TEST_F(FixedSlots, say_so_when_they_are_full) {
  export_to("llama", {.dynamic = true, .static_shapes = {{"cache_length", 4}}},
            {.cache_implementation = "static", .max_cache_len = 4});
  const auto model = open_onnx_model(ExportedModel::from_pretrained(folder_.path()), {}, {});
  model->prefill(pad_left(std::vector<Ids>{{5, 17, 3}}, 0));
  model->decode(Ids{4});
  const Error error = error_of([&] { model->decode(Ids{4}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("the cache is full: it has 4 slots"), HasSubstr("--max-cache-len")));
}

TEST_F(FixedSlots, prompts_have_the_room_that_prefill_has) {
  Generator generator =
      open("llama", {.dynamic = true}, {.cache_implementation = "static", .max_cache_len = 6});
  EXPECT_THAT(message(generator, Ids(7, 5), 3), HasSubstr("the export has 6 slots for it"));
  const Ids prompt(6, 5);
  const GenerationResult longer = generator.generate(std::span(&prompt, 1), {.max_new_tokens = 30});
  EXPECT_EQ(longer.sequences[0].new_ids.size(), 30U) << "decode takes any number of slots";
}

TEST_F(FixedSlots, the_range_of_an_export_is_the_limit) {
  Generator generator =
      open("llama", {.dynamic = true, .dims = {{"cache_length", {"cache_length", 1, 16}}}},
           {.cache_implementation = "static", .max_cache_len = 16});
  EXPECT_THAT(message(generator, {5, 17, 3}, 15), HasSubstr("need 17 slots, and the cache has 16"));
  const Ids prompt = {5, 17, 3};
  EXPECT_EQ(new_ids(generator, std::span(&prompt, 1), 14)[0].size(), 14U);
}

}  // namespace
}  // namespace tranship::generation

#include "generation/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/testing.h"

namespace tranship::generation {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;

TEST(GenerationConfig, has_the_defaults_of_transformers) {
  const auto config = GenerationConfig::from_json("{}", "{}");
  EXPECT_FALSE(config.do_sample);
  EXPECT_EQ(config.temperature, 1.0);
  EXPECT_EQ(config.top_k, 50);
  EXPECT_EQ(config.top_p, 1.0);
  EXPECT_EQ(config.repetition_penalty, 1.0);
  EXPECT_THAT(config.eos_token_id, IsEmpty());
  EXPECT_EQ(config.max_new_tokens, std::nullopt);
  EXPECT_EQ(config.max_length, std::nullopt);
}

TEST(GenerationConfig, reads_every_field) {
  const auto config = GenerationConfig::from_json(
      R"({"max_new_tokens": 7, "max_length": 90, "min_new_tokens": 2, "min_length": 12, "do_sample": true,
          "temperature": 0.6, "top_k": 40, "top_p": 0.9, "repetition_penalty": 1.1, "eos_token_id": [128001, 128009],
          "pad_token_id": 5, "bos_token_id": 128000, "stop_strings": ["User:", "\n\n"],
          "forced_bos_token_id": 11, "forced_eos_token_id": 12, "suppress_tokens": [13, 14], "begin_suppress_tokens": [15],
          "decoder_start_token_id": 16, "transformers_version": "4.40", "cache_implementation": "hybrid", "_from_model_config": true})",
      R"({"eos_token_id": 1, "pad_token_id": 2, "bos_token_id": 3})");
  EXPECT_THAT(config.max_new_tokens, Optional(7));
  EXPECT_THAT(config.max_length, Optional(90));
  EXPECT_THAT(config.min_new_tokens, Optional(2));
  EXPECT_THAT(config.min_length, Optional(12));
  EXPECT_TRUE(config.do_sample);
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_k, 40);
  EXPECT_EQ(config.top_p, 0.9);
  EXPECT_EQ(config.repetition_penalty, 1.1);
  EXPECT_THAT(config.eos_token_id, ElementsAre(128001, 128009));
  EXPECT_THAT(config.pad_token_id, Optional(5));
  EXPECT_THAT(config.bos_token_id, Optional(128000));
  EXPECT_THAT(config.stop_strings, ElementsAre("User:", "\n\n"));
  EXPECT_THAT(config.forced_bos_token_id, Optional(11));
  EXPECT_THAT(config.forced_eos_token_id, ElementsAre(12));
  EXPECT_THAT(config.suppress_tokens, ElementsAre(13, 14));
  EXPECT_THAT(config.begin_suppress_tokens, ElementsAre(15));
  EXPECT_THAT(config.decoder_start_token_id, Optional(16));
}

TEST(GenerationConfig, takes_one_id_or_one_string_for_a_list) {
  const auto config =
      GenerationConfig::from_json(R"({"eos_token_id": 2, "stop_strings": "END"})", "");
  EXPECT_THAT(config.eos_token_id, ElementsAre(2));
  EXPECT_THAT(config.stop_strings, ElementsAre("END"));
}

TEST(GenerationConfig, a_null_is_as_an_absent_key) {
  const auto config =
      GenerationConfig::from_json(R"({"top_k": null, "eos_token_id": null, "min_p": null})", "");
  EXPECT_EQ(config.top_k, 50);
  EXPECT_THAT(config.eos_token_id, IsEmpty());
}

TEST(GenerationConfig, ids_fall_back_to_the_model_s_configuration) {
  const auto config = GenerationConfig::from_json(
      R"({"bos_token_id": 9})",
      R"({"eos_token_id": [4, 5], "bos_token_id": 1, "decoder_start_token_id": 0, "text_config": {"pad_token_id": 6}})");
  EXPECT_THAT(config.decoder_start_token_id, Optional(0));
  EXPECT_THAT(config.eos_token_id, ElementsAre(4, 5));
  EXPECT_THAT(config.pad_token_id, Optional(6));
  EXPECT_THAT(config.bos_token_id, Optional(9));
}

TEST(GenerationConfig, without_a_file_of_its_own_is_read_from_the_model_s) {
  const auto config = GenerationConfig::from_json(
      "", R"({"model_type": "llama", "do_sample": true, "top_p": 0.5})");
  EXPECT_TRUE(config.do_sample);
  EXPECT_EQ(config.top_p, 0.5);
}

TEST(GenerationConfig, refuses_all_keys_that_it_would_not_honour_by_name) {
  const Error error = error_of([] {
    GenerationConfig::from_json(
        R"({"num_beams": 4, "penalty_alpha": 0.6, "no_repeat_ngram_size": 3, "typical_p": 0.95, "min_p": 0.05,
            "bad_words_ids": [[3]], "length_penalty": 2.0})",
        "");
  });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("generation_config.json"), HasSubstr("num_beams = 4"),
                    HasSubstr("penalty_alpha = 0.6"), HasSubstr("no_repeat_ngram_size = 3"),
                    HasSubstr("typical_p = 0.95"), HasSubstr("min_p = 0.05")));
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("bad_words_ids = [[3]]"), Not(HasSubstr("length_penalty"))));
}

TEST(GenerationConfig, takes_such_keys_where_they_change_nothing) {
  EXPECT_NO_THROW(GenerationConfig::from_json(
      R"({"num_beams": 1, "penalty_alpha": 0, "no_repeat_ngram_size": 0, "typical_p": 1.0, "min_p": 0.0,
          "bad_words_ids": null, "suppress_tokens": [], "guidance_scale": 1.0, "sequence_bias": {},
          "remove_invalid_values": false, "diversity_penalty": 0.0, "early_stopping": false, "num_return_sequences": 1})",
      ""));
}

TEST(GenerationConfig, a_wrong_type_is_corrupt_with_its_key) {
  for (const std::string text :
       {R"({"temperature": "hot"})", R"({"top_k": 1.5})", R"({"eos_token_id": [1, "a"]})",
        R"({"stop_strings": [1]})", R"([1])", R"({"do_sample": 1})"}) {
    const Error error = error_of([&] { GenerationConfig::from_json(text, ""); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << text;
    EXPECT_THAT(error.what(), HasSubstr("generation_config.json")) << text;
  }
}

TEST(CheckConfig, names_everything_that_makes_no_sense) {
  GenerationConfig config;
  config.max_new_tokens = 0;
  config.temperature = 0;
  config.top_k = -1;
  config.top_p = 1.5;
  config.repetition_penalty = 0;
  config.eos_token_id = {3, -1};
  config.pad_token_id = -1;
  config.stop_strings = {"a", ""};
  const Error error = error_of([&] { check_config(config); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  for (const char* field : {"max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty",
                            "eos_token_id", "pad_token_id", "stop_strings"}) {
    EXPECT_THAT(error.what(), HasSubstr(field));
  }
  EXPECT_NO_THROW(check_config({}));
}

int64_t most(const GenerationConfig& config, int64_t prompt_length,
             std::optional<int64_t> max_positions = {}) {
  return limits_of(config, prompt_length, max_positions, {}).max_new_tokens;
}

TEST(Limits, are_those_of_transformers) {
  EXPECT_EQ(most({}, 100), 20) << "by default";
  EXPECT_EQ(most({}, 100, 110), 10) << "but within the positions that the model has";
  EXPECT_EQ(most({.max_length = 150}, 100, 110), 50) << "max_length counts the prompt";
  EXPECT_EQ(most({.max_new_tokens = 3, .max_length = 150}, 100), 3) << "max_new_tokens wins";
}

TEST(Limits, a_minimum_counts_new_tokens_or_all) {
  EXPECT_EQ(limits_of({.min_new_tokens = 4}, 10, {}, {}).min_new_tokens, 4);
  EXPECT_EQ(limits_of({.min_length = 14}, 10, {}, {}).min_new_tokens, 4);
  EXPECT_EQ(limits_of({.min_length = 4}, 10, {}, {}).min_new_tokens, 0);
}

TEST(Limits, a_prompt_that_leaves_no_room_is_refused) {
  for (const GenerationConfig& config : {GenerationConfig{.max_length = 8}, GenerationConfig{}}) {
    const Error error = error_of([&] { limits_of(config, 8, 8, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("the prompt has 8 tokens"), HasSubstr("max_new_tokens")));
  }
}

TEST(Limits, a_minimum_over_the_maximum_is_warned_of) {
  std::string warning;
  const Sink sink = {.warning = [&](std::string_view text) { warning = text; }, .progress = {}};
  EXPECT_EQ(limits_of({.max_new_tokens = 3, .min_new_tokens = 5}, 1, {}, sink).max_new_tokens, 3);
  EXPECT_THAT(warning, HasSubstr("5 new tokens are asked for at least, but 3 at most"));
}

}  // namespace
}  // namespace tranship::generation

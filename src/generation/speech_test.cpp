#include "generation/speech.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "generation/testing.h"

namespace tranship::generation {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Json golden_runs() {
  const std::filesystem::path path = kTests / "golden" / "encoder_decoder.json";
  return parse_json("test", path.string(), read_text(path))["models"][1]["runs"];
}

TEST(Speech, prompts_are_those_of_transformers) {
  for (const Json& run : golden_runs()) {
    const std::string text = run["generation_config"].dump();
    SCOPED_TRACE(text);
    const SpeechTokens tokens = read_speech_tokens(text, "{}");
    const GenerationConfig config = GenerationConfig::from_json(text, "{}");
    for (const Json& expected : run["prompts"]) {
      const bool detects = must_detect_language(tokens, config);
      const auto language = detects ? std::optional(expected[1].get<int64_t>()) : std::nullopt;
      EXPECT_EQ(speech_prompt(tokens, config, 3, language), expected.get<Ids>());
    }
  }
}

TEST(Speech, forced_ids_of_an_old_checkpoint_stand_in_config_json) {
  const char* kConfig = R"({"forced_decoder_ids": [[1, 9], [2, null], [3, 8]]})";
  const SpeechTokens tokens = read_speech_tokens("{}", kConfig);
  EXPECT_THAT(speech_prompt(tokens, {}, 3, {}), ElementsAre(3, 9, 8));
  EXPECT_FALSE(must_detect_language(tokens, {})) << "there are no languages to choose from";
}

TEST(Speech, forced_ids_that_are_not_pairs_in_order_are_refused) {
  const auto error = [](const char* text) {
    return error_of([&] { read_speech_tokens(text, ""); });
  };
  for (const char* text :
       {R"({"forced_decoder_ids": 5})", R"({"forced_decoder_ids": [[1]]})",
        R"({"forced_decoder_ids": [["a", 5]]})", R"({"forced_decoder_ids": [[1, 5.5]]})"}) {
    EXPECT_EQ(error(text).kind(), ErrorKind::kCorrupt) << text;
    EXPECT_THAT(error(text).what(), HasSubstr("forced_decoder_ids"));
  }
  for (const char* text :
       {R"({"forced_decoder_ids": [[1, -5]]})", R"({"lang_to_id": {"<|en|>": -1}})",
        R"({"task_to_id": {"transcribe": 4294967296}})", R"({"no_timestamps_token_id": -1})",
        R"({"forced_decoder_ids": [[1, 18446744073709551615]]})"})
    EXPECT_EQ(error(text).kind(), ErrorKind::kCorrupt) << text;
  const Error gap = error(R"({"forced_decoder_ids": [[1, 5], [3, 6]]})");
  EXPECT_EQ(gap.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(gap.what(), AllOf(HasSubstr("[[1, 5], [3, 6]]"), HasSubstr("places 1, 2")));
}

TEST(Speech, max_length_does_not_count_the_prompt_but_positions_end_it) {
  EXPECT_EQ(with_speech_limits({.max_length = 20}, 4, 448).max_length, 24);
  EXPECT_EQ(with_speech_limits({.max_length = 448}, 4, 448).max_length, 448);
  EXPECT_EQ(with_speech_limits({.max_new_tokens = 444}, 4, 448).max_new_tokens, 444);
  const Error error = error_of([] { with_speech_limits({.max_new_tokens = 445}, 4, 448); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("the model's 448 positions"));
}

}  // namespace
}  // namespace tranship::generation

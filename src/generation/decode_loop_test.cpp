#include "generation/decode_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "base/testing.h"
#include "generation/testing.h"

namespace tranship::generation {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kVocabSize = 50;

LoopOptions options_for(GenerationConfig config) {
  LoopOptions options;
  options.limits = limits_of(config, 1, {}, {});
  options.config = std::move(config);
  return options;
}

TEST(PadLeft, pads_counts_positions_over_the_mask_and_gives_padding_position_0) {
  const std::vector<Ids> prompts = {{5, 6, 7}, {8}};
  const PromptBatch batch = pad_left(prompts, 9);
  EXPECT_EQ(batch.num_rows, 2);
  EXPECT_EQ(batch.num_columns, 3);
  EXPECT_THAT(batch.input_ids, ElementsAre(5, 6, 7, 9, 9, 8));
  EXPECT_THAT(batch.attention_mask, ElementsAre(1, 1, 1, 0, 0, 1));
  EXPECT_THAT(batch.position_ids, ElementsAre(0, 1, 2, 0, 0, 0));
  EXPECT_TRUE(batch.is_padded());
  EXPECT_FALSE(pad_left(std::vector<Ids>{{1, 2}, {3, 4}}, 9).is_padded());
}

TEST(PadId, is_the_pad_token_else_the_first_eos_else_0) {
  EXPECT_EQ(pad_id_of({.eos_token_id = {4, 5}, .pad_token_id = 6}), 6);
  EXPECT_EQ(pad_id_of({.eos_token_id = {4, 5}}), 4);
  EXPECT_EQ(pad_id_of({}), 0);
}

TEST(DecodeLoop, feeds_each_token_back_and_stops_at_the_limit) {
  ScriptedModel model({{11, 12, 13, 14}}, kVocabSize);
  const std::vector<Ids> prompts = {{1, 2}};
  const GenerationResult result = decode_loop(model, prompts, options_for({.max_new_tokens = 3}));
  EXPECT_THAT(result.sequences[0].new_ids, ElementsAre(11, 12, 13));
  EXPECT_EQ(result.sequences[0].finish_reason, FinishReason::kLength);
  EXPECT_THAT(model.steps, ElementsAre(Ids{11}, Ids{12})) << "the last token is not read";
}

TEST(DecodeLoop, any_eos_token_ends_a_row_and_is_kept) {
  for (const int64_t eos : {12, 13}) {
    ScriptedModel model({{11, eos, 14}}, kVocabSize);
    const GenerationConfig config = {.max_new_tokens = 9, .eos_token_id = {13, 12}};
    const GenerationResult result = decode_loop(model, std::vector<Ids>{{1}}, options_for(config));
    EXPECT_THAT(result.sequences[0].new_ids, ElementsAre(11, eos));
    EXPECT_EQ(result.sequences[0].finish_reason, FinishReason::kEos);
  }
}

TEST(DecodeLoop, a_row_that_has_ended_is_fed_padding_until_all_have) {
  ScriptedModel model({{7, 20}, {11, 12, 13, 7}, {7}}, kVocabSize);
  const GenerationConfig config = {.max_new_tokens = 9, .eos_token_id = {7}, .pad_token_id = 3};
  const GenerationResult result =
      decode_loop(model, std::vector<Ids>{{1, 2}, {1}, {1}}, options_for(config));
  EXPECT_THAT(result.sequences[0].new_ids, ElementsAre(7));
  EXPECT_THAT(result.sequences[1].new_ids, ElementsAre(11, 12, 13, 7));
  EXPECT_THAT(result.sequences[2].new_ids, ElementsAre(7));
  EXPECT_THAT(model.steps, ElementsAre(Ids{7, 11, 7}, Ids{3, 12, 3}, Ids{3, 13, 3}));
}

TEST(DecodeLoop, no_eos_before_the_minimum) {
  ScriptedModel model({{7}}, kVocabSize);
  const GenerationConfig config = {.max_new_tokens = 9, .min_new_tokens = 3, .eos_token_id = {7}};
  const GenerationResult result = decode_loop(model, std::vector<Ids>{{1}}, options_for(config));
  EXPECT_THAT(result.sequences[0].new_ids, ElementsAre(0, 0, 0, 7))
      << "0 is the lowest of the equals that are left";
}

TEST(DecodeLoop, tells_of_tokens_in_order_and_of_no_padding) {
  ScriptedModel model({{7}, {11, 12, 7}}, kVocabSize);
  LoopOptions options = options_for({.max_new_tokens = 9, .eos_token_id = {7}});
  std::vector<std::pair<size_t, int64_t>> told;
  options.watch = [&](size_t row, int64_t id) -> std::optional<FinishReason> {
    told.emplace_back(row, id);
    return std::nullopt;
  };
  decode_loop(model, std::vector<Ids>{{1}, {1}}, options);
  using Told = std::pair<size_t, int64_t>;
  EXPECT_THAT(told, ElementsAre(Told(0, 7), Told(1, 11), Told(1, 12), Told(1, 7)));
}

TEST(DecodeLoop, a_watcher_ends_one_row_and_not_the_others) {
  ScriptedModel model({{11, 12, 13}, {21, 22, 23}}, kVocabSize);
  LoopOptions options = options_for({.max_new_tokens = 3});
  options.watch = [](size_t, int64_t id) {
    return id == 12 ? std::optional(FinishReason::kStopString) : std::nullopt;
  };
  const GenerationResult result = decode_loop(model, std::vector<Ids>{{1}, {1}}, options);
  EXPECT_THAT(result.sequences[0].new_ids, ElementsAre(11, 12));
  EXPECT_EQ(result.sequences[0].finish_reason, FinishReason::kStopString);
  EXPECT_THAT(result.sequences[1].new_ids, ElementsAre(21, 22, 23));
  EXPECT_EQ(result.sequences[1].finish_reason, FinishReason::kLength);
}

TEST(DecodeLoop, penalizes_the_prompt_but_not_its_padding) {
  ScriptedModel model({{4, 4}, {0, 0}}, kVocabSize);
  model.unsaid = 1;
  LoopOptions options =
      options_for({.max_new_tokens = 1, .repetition_penalty = 10, .pad_token_id = 0});
  const GenerationResult result = decode_loop(model, std::vector<Ids>{{4, 9}, {9}}, options);
  EXPECT_THAT(result.sequences[0].new_ids, ElementsAre(0))
      << "4 was in the prompt: 5 / 10 is under 1";
  EXPECT_THAT(result.sequences[1].new_ids, ElementsAre(0)) << "0 was padding only";
}

TEST(DecodeLoop, counts_tokens_without_padding) {
  ScriptedModel model({{7}, {11, 12, 7}}, kVocabSize);
  const GenerationResult result =
      decode_loop(model, std::vector<Ids>{{1, 2, 3}, {1}},
                  options_for({.max_new_tokens = 9, .eos_token_id = {7}}));
  EXPECT_EQ(result.stats.prompt_tokens, 4);
  EXPECT_EQ(result.stats.new_tokens, 4);
  EXPECT_EQ(result.stats.decoded_tokens, 2);
  EXPECT_GT(result.stats.prefill_seconds, 0);
  EXPECT_GT(result.stats.decode_seconds, 0);
}

}  // namespace
}  // namespace tranship::generation

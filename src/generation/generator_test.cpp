// The public face over a model that says what a test wrote down, with the small tokenizer of
// tests/cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "generation/generator_impl.h"
#include "generation/testing.h"
#include "tranship/generation.h"

namespace tranship::generation {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kVocabSize = 400;

class GeneratorTest : public testing::Test {
 protected:
  /// A generator whose rows say the texts, then EOS.
  Generator saying(const std::vector<std::string>& texts) {
    std::vector<Ids> scripts;
    for (const std::string& text : texts) {
      scripts.push_back(tokenizer_.encode(text, false));
      scripts.back().push_back(eos_);
    }
    auto impl = std::make_unique<GeneratorImpl>();
    auto model = std::make_unique<ScriptedModel>(scripts, kVocabSize);
    model_ = model.get();
    impl->model = std::move(model);
    impl->tokenizer = tokenizer_;
    impl->config_json = R"({"max_position_embeddings": 30})";
    impl->sink.warning = [this](std::string_view warning) { warnings_.emplace_back(warning); };
    return Generator(std::move(impl));
  }

  GenerationConfig config(std::vector<std::string> stop_strings = {}) const {
    return {.max_new_tokens = 100, .eos_token_id = {eos_}, .stop_strings = std::move(stop_strings)};
  }

  Tokenizer tokenizer_ = Tokenizer::open(kTests / "cases" / "tokenizer" / "bytelevel");
  int64_t eos_ = *tokenizer_.token_to_id("<|im_end|>");
  ScriptedModel* model_ = nullptr;
  std::vector<std::string> warnings_;
};

TEST_F(GeneratorTest, text_comes_in_pieces_that_add_up) {
  const std::string said = " caf\xC3\xA9 \xE4\xBB\x8A\xE6\x97\xA5 over the lazy dog";
  std::vector<std::string> pieces;
  const GeneratedText out =
      saying({said}).generate_text("The quick", config(), [&](std::string_view piece) {
        pieces.emplace_back(piece);
        return true;
      });
  EXPECT_EQ(out.text, said) << "EOS is not text";
  EXPECT_GT(pieces.size(), 5U);
  std::string together;
  for (const std::string& piece : pieces) together += piece;
  EXPECT_EQ(together, said);
  EXPECT_EQ(out.prompt_ids, tokenizer_.encode("The quick"));
  EXPECT_EQ(out.new_ids.back(), eos_);
  EXPECT_EQ(out.finish_reason, FinishReason::kEos);
  EXPECT_EQ(out.stats.prompt_tokens, std::ssize(out.prompt_ids));
  EXPECT_EQ(out.stats.new_tokens, std::ssize(out.new_ids));
}

TEST_F(GeneratorTest, text_ends_before_a_stop_string_and_the_ids_with_it) {
  const GeneratedText out =
      saying({" brown fox jumps over"}).generate_text("The quick", config({"x ju"}));
  EXPECT_EQ(out.text, " brown fo");
  EXPECT_THAT(tokenizer_.decode(out.new_ids), testing::StartsWith(" brown fox ju"));
  EXPECT_EQ(out.finish_reason, FinishReason::kStopString);
}

TEST_F(GeneratorTest, what_only_looked_like_a_stop_string_comes_at_the_end) {
  const GeneratedText out =
      saying({" brown fox"}).generate_text("The quick", config({"fox jumps"}));
  EXPECT_EQ(out.text, " brown fox");
  EXPECT_EQ(out.finish_reason, FinishReason::kEos);
}

TEST_F(GeneratorTest, a_text_callback_ends_the_text) {
  const auto once = [](std::string_view) { return false; };
  const GeneratedText out = saying({" brown fox"}).generate_text("The quick", config(), once);
  EXPECT_EQ(out.finish_reason, FinishReason::kCallback);
  EXPECT_LT(out.new_ids.size(), 4U);
}

TEST_F(GeneratorTest, a_token_callback_sees_all_tokens_and_ends_its_sequence_only) {
  Generator generator = saying({"abc", "abcdef"});
  std::vector<Ids> told(2);
  const std::vector<Ids> prompts = {{5}, {6, 7}};
  const GenerationResult result =
      generator.generate(prompts, config(), [&](size_t sequence, int64_t id) {
        told[sequence].push_back(id);
        return sequence == 1 || told[0].size() < 2;
      });
  EXPECT_EQ(told[0], result.sequences[0].new_ids);
  EXPECT_EQ(told[1], result.sequences[1].new_ids);
  EXPECT_EQ(told[0].size(), 2U);
  EXPECT_EQ(result.sequences[0].finish_reason, FinishReason::kCallback);
  EXPECT_EQ(result.sequences[1].finish_reason, FinishReason::kEos);
}

TEST_F(GeneratorTest, stop_strings_end_the_sequences_of_a_batch_one_by_one) {
  Generator generator = saying({" the lazy dog", " lazy the dog"});
  const std::vector<Ids> prompts = {{5}, {6, 7}};
  const GenerationResult result = generator.generate(prompts, config({"lazy"}));
  EXPECT_EQ(tokenizer_.decode(result.sequences[0].new_ids), " the lazy");
  EXPECT_EQ(tokenizer_.decode(result.sequences[1].new_ids), " lazy");
  EXPECT_EQ(result.sequences[0].finish_reason, FinishReason::kStopString);
}

TEST_F(GeneratorTest, a_conversation_is_written_by_the_chat_template) {
  Generator generator = saying({"Paris"});
  const GeneratedText out = generator.chat({{"user", "Capital?"}}, config());
  const std::vector<ChatMessage> messages = {{"user", "Capital?"}};
  EXPECT_EQ(out.prompt_ids, tokenizer_.encode(tokenizer_.apply_chat_template(messages), false));
  EXPECT_EQ(out.text, "Paris");
}

TEST_F(GeneratorTest, an_empty_prompt_is_the_bos_token) {
  GenerationConfig with_bos = config();
  with_bos.bos_token_id = 3;
  Generator generator = saying({"a", "b"});
  const std::vector<Ids> prompts = {{}, {6, 7}};
  generator.generate(prompts, with_bos);
  EXPECT_THAT(model_->prompts.input_ids, ElementsAre(eos_, 3, 6, 7));
  const Error error = error_of([&] { generator.generate(prompts, config()); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("prompt 0 is empty"));
}

TEST_F(GeneratorTest, prompts_are_checked_before_the_model_sees_them) {
  Generator generator = saying({"a"});
  EXPECT_THAT(error_of([&] { generator.generate({}, config()); }).what(),
              HasSubstr("there is no prompt"));
  const std::vector<Ids> negative = {{5, -2}};
  EXPECT_THAT(error_of([&] { generator.generate(negative, config()); }).what(),
              HasSubstr("prompt 0 has the id -2"));
}

TEST_F(GeneratorTest, a_configuration_that_makes_no_sense_is_refused) {
  Generator generator = saying({"a"});
  GenerationConfig cold = config();
  cold.temperature = 0;
  const std::vector<Ids> prompts = {{5}};
  EXPECT_THAT(error_of([&] { generator.generate(prompts, cold); }).what(),
              HasSubstr("temperature"));
  EXPECT_THAT(error_of([&] { generator.generate_text("a", cold); }).what(),
              HasSubstr("temperature"));
}

TEST_F(GeneratorTest, more_text_than_the_model_has_positions_is_warned_of) {
  Generator generator = saying({std::string(60, 'x')});
  const std::vector<Ids> prompts = {{5}};
  generator.generate(prompts, config());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the model was made for 30")));
  warnings_.clear();
  const GenerationResult result = generator.generate(prompts, {.eos_token_id = {eos_}});
  EXPECT_EQ(result.sequences[0].new_ids.size(), 20U) << "by default";
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(GeneratorTest, the_seed_that_was_used_is_told_and_can_be_used_again) {
  Generator generator = saying({"a"});
  GenerationConfig sampled = config();
  sampled.do_sample = true;
  sampled.temperature = 50;
  sampled.max_new_tokens = 12;
  const std::vector<Ids> prompts = {{5}};
  const GenerationResult first = generator.generate(prompts, sampled);
  EXPECT_NE(first.sequences[0].new_ids, generator.generate(prompts, sampled).sequences[0].new_ids);
  sampled.seed = first.seed;
  EXPECT_EQ(first.sequences[0].new_ids, generator.generate(prompts, sampled).sequences[0].new_ids);
}

}  // namespace
}  // namespace tranship::generation

// A conversation reads what is new, and says what it would say if it read all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "formats/onnx/ort_test_support.h"
#include "generation/generator_impl.h"
#include "generation/onnx_model.h"
#include "generation/process_memory.h"
#include "generation/testing.h"
#include "models/families.h"
#include "tranship/exporters.h"
#include "tranship/generation.h"

namespace tranship::generation {
namespace {

using testing::ElementsAre;

const std::filesystem::path kTokenizer = kTests / "cases" / "tokenizer" / "bytelevel";

class Scripted : public testing::Test {
 protected:
  Generator saying(const std::string& text) {
    Ids script = tokenizer_.encode(text, false);
    script.push_back(eos_);
    auto impl = std::make_unique<GeneratorImpl>();
    auto model = std::make_unique<ScriptedModel>(std::vector<Ids>{script}, 400);
    model_ = model.get();
    impl->model = std::move(model);
    impl->tokenizer = tokenizer_;
    return Generator(std::move(impl));
  }

  Tokenizer tokenizer_ = Tokenizer::open(kTokenizer);
  int64_t eos_ = *tokenizer_.token_to_id("<|im_end|>");
  GenerationConfig config_ = {.max_new_tokens = 40, .eos_token_id = {eos_}};
  ScriptedModel* model_ = nullptr;
};

TEST_F(Scripted, the_second_turn_reads_what_comes_after_the_answer) {
  Generator generator = saying("Hello you");
  Conversation conversation(generator, {{"system", "Be brief."}});
  const GeneratedText first = conversation.say("Hi", config_);
  EXPECT_EQ(first.stats.cached_tokens, 0);
  EXPECT_EQ(model_->prompts.input_ids, first.prompt_ids);
  const GeneratedText second = conversation.say("And now?", config_);
  // All that was read: the prompt, and the answer but its last token.
  const auto read = std::ssize(first.prompt_ids) + std::ssize(first.new_ids) - 1;
  EXPECT_EQ(model_->rewound, read);
  EXPECT_EQ(second.stats.cached_tokens, read);
  EXPECT_EQ(second.stats.prompt_tokens, std::ssize(second.prompt_ids));
  EXPECT_EQ(model_->extended, Ids(second.prompt_ids.begin() + read, second.prompt_ids.end()));
  EXPECT_EQ(conversation.messages().size(), 5U);
  EXPECT_EQ(conversation.messages()[2].content, "Hello you");
}

TEST_F(Scripted, what_was_read_for_somebody_else_is_kept_as_far_as_it_is_the_same) {
  Generator generator = saying("Hello you");
  Conversation conversation(generator);
  const GeneratedText first = conversation.say("Hi", config_);
  generator.generate_text("Something else", config_);
  EXPECT_EQ(model_->extended, Ids()) << "a call of its own reads all";
  const GeneratedText second = conversation.say("And now?", config_);
  EXPECT_LT(second.stats.cached_tokens, 3) << "two texts hardly begin the same way";
}

TEST_F(Scripted, a_model_that_cannot_go_back_reads_all_of_it) {
  Generator generator = saying("Hello you");
  Conversation conversation(generator);
  conversation.say("Hi", config_);
  model_->can_rewind = false;
  const GeneratedText second = conversation.say("And now?", config_);
  EXPECT_EQ(second.stats.cached_tokens, 0);
  EXPECT_EQ(model_->prompts.input_ids, second.prompt_ids);
}

TEST_F(Scripted, an_error_leaves_the_conversation_as_it_was) {
  Generator generator = saying("Hello you");
  Conversation conversation(generator);
  conversation.say("Hi", config_);
  EXPECT_THROW(conversation.say("And now?", {.max_new_tokens = 0}), Error);
  EXPECT_THROW(conversation.say("And now?", config_,
                                [](std::string_view) -> bool { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_EQ(conversation.messages().size(), 2U);
  EXPECT_EQ(conversation.say("And now?", config_).stats.cached_tokens, 0) << "it may have read on";
}

TEST_F(Scripted, a_prompt_is_read_in_pieces_as_the_configuration_says) {
  Generator generator = saying("Hello you");
  generator.generate_text("Hi", config_);
  EXPECT_EQ(model_->chunk_size, 512);
  config_.prefill_chunk_size = 64;
  generator.generate_text("Hi", config_);
  EXPECT_EQ(model_->chunk_size, 64);
}

/// A way to keep what was read.
struct Form {
  const char* name;
  std::string_view family = "llama";
  std::optional<std::string> fusions = {};
  bool has_slots = false, takes_several = false;
  std::optional<int64_t> batch = {};
};

class Conversations : public onnx::NeedsOnnxRuntime, public testing::WithParamInterface<Form> {
 protected:
  Generator open() const {
    const Form& form = GetParam();
    const Tokenizer tokenizer = Tokenizer::open(kTokenizer);
    Json config = Json::parse(models::find_family(form.family)->tiny_config);
    config["vocab_size"] = tokenizer.vocab_size();
    config["max_position_embeddings"] = 4096;
    GenerationOptions options = {.multi_token_decode = form.takes_several};
    if (form.has_slots) options.cache_implementation = "static";
    if (form.has_slots) options.max_cache_len = 512;
    OnnxConfig onnx = {.dynamic = true, .ort_fusions = form.fusions};
    if (form.batch) onnx.static_shapes = {{"batch", *form.batch}};
    OnnxExporter()
        .export_for_generation(Checkpoint::synthetic(config.dump()), onnx, options)
        .save_pretrained(folder_.path());
    for (const auto& file : std::filesystem::directory_iterator(kTokenizer)) {
      if (!std::filesystem::exists(folder_.path() / file.path().filename()))
        std::filesystem::copy_file(file.path(), folder_.path() / file.path().filename());
    }
    return Generator::open(folder_.path());
  }

  TestFolder folder_;
};

TEST_P(Conversations, say_what_they_would_say_if_all_were_read_anew) {
  Generator generator = open();
  const GenerationConfig config = {.max_new_tokens = 12};
  Conversation conversation(generator);
  const std::vector<std::string> said = {"The quick brown fox", "jumps", "over the lazy dog"};
  for (size_t turn = 0; turn < said.size(); ++turn) {
    const GeneratedText answer = conversation.say(said[turn], config);
    if (turn > 0) {
      EXPECT_GT(answer.stats.cached_tokens, 10);
      EXPECT_LT(answer.stats.cached_tokens, std::ssize(answer.prompt_ids));
    }
    Generator fresh = Generator::open(folder_.path());
    const std::vector<ChatMessage>& messages = conversation.messages();
    const GeneratedText expected =
        fresh.chat(std::span(messages).first(messages.size() - 1), config);
    EXPECT_EQ(answer.prompt_ids, expected.prompt_ids);
    EXPECT_EQ(answer.new_ids, expected.new_ids);
    EXPECT_EQ(answer.text, expected.text);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Conversations,
    testing::Values(Form{"grows"}, Form{"grows_several", "llama", {}, false, true},
                    Form{"grows_in_place", "llama", "cpu"},
                    Form{"grows_in_place_several", "llama", "cpu", false, true, 1},
                    Form{"slots", "mistral", {}, true}, Form{"slots_fused", "qwen3", "cpu", true},
                    Form{"slots_several", "mistral", {}, true, true},
                    Form{"slots_fused_several", "qwen3", "cpu", true, true, 1}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(MemoryUse, is_what_the_kernel_says) {
  const MemoryUse use =
      read_memory_use("Name:\tx\nVmHWM:\t    300 kB\nRssAnon:\t     20 kB\nRssFile:\t      7 kB\n");
  EXPECT_EQ(use.peak_bytes, 300 * 1024);
  EXPECT_EQ(use.anonymous_bytes, 20 * 1024);
  EXPECT_EQ(use.mapped_bytes, 7 * 1024);
  EXPECT_EQ(read_memory_use("VmHWM:").peak_bytes, 0);
  EXPECT_GT(memory_use().peak_bytes, 1 << 20);
  EXPECT_EQ(most_of(use, {.anonymous_bytes = 1 << 20}).anonymous_bytes, 1 << 20);
}

}  // namespace
}  // namespace tranship::generation

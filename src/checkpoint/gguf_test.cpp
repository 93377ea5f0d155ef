#include "checkpoint/gguf.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "checkpoint/gguf_testing.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class GgufCheckpointTest : public GgufTest {
 protected:
  Sink sink_{.warning = [this](std::string_view text) { warnings_.emplace_back(text); },
             .progress = {}};
  std::vector<std::string> warnings_;
};

GgufBuilder model(const std::string& pre) {
  GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .u32("llama.context_length", 64)
      .u32("llama.embedding_length", 8);
  builder.u32("llama.block_count", 1)
      .u32("llama.feed_forward_length", 16)
      .u32("llama.attention.head_count", 2);
  builder.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).zeros("token_embd.weight", {8, 2});
  builder.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", pre)
      .texts("tokenizer.ggml.tokens", {"a", "b"});
  return builder;
}

TEST_F(GgufCheckpointTest, fixture_of_the_python_package_is_a_whole_checkpoint) {
  const CheckpointData data = open_gguf(gguf_case("bytelevel.gguf"), sink_);
  EXPECT_EQ(data.kind, CheckpointKind::kGguf);
  EXPECT_EQ(data.config.text("model_type"), "llama");
  EXPECT_EQ(data.generation_config->integer("eos_token_id"), 2);
  EXPECT_EQ(data.tensors.size(), 11u);
  EXPECT_THAT(data.tensors.at("model.layers.0.mlp.up_proj.weight")->shape(), ElementsAre(16, 8));
  EXPECT_THAT(data.made_companions,
              ElementsAre(Pair("tokenizer.json", HasSubstr("\"merges\"")),
                          Pair("tokenizer_config.json", HasSubstr("<|im_end|>"))));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(GgufCheckpointTest, a_tokenizer_that_cannot_be_read_is_a_warning) {
  const CheckpointData data = open_gguf(folder_.write("x.gguf", model("superbpe").build()), sink_);
  EXPECT_THAT(data.made_companions, IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("'superbpe'")));
}

TEST_F(GgufCheckpointTest, a_tokenizer_that_does_not_say_how_it_splits_is_a_warning) {
  const CheckpointData data = open_gguf(folder_.write("x.gguf", model("default").build()), sink_);
  EXPECT_EQ(data.made_companions.size(), 2u);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("tokenizer.ggml.pre")));
}

TEST_F(GgufCheckpointTest, a_broken_tokenizer_is_corrupt) {
  GgufBuilder builder = model("gpt-2");
  builder.u32("tokenizer.ggml.eos_token_id", 2);
  EXPECT_EQ(error_of([&] { open_gguf(folder_.write("x.gguf", builder.build()), sink_); }).kind(),
            ErrorKind::kCorrupt);
}

TEST_F(GgufCheckpointTest, smollm2_has_all_its_weights_and_its_tokenizer) {
  const char* path = std::getenv("TRANSHIP_SMOLLM2");
  if (path == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "TRANSHIP_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  }
  const CheckpointData data = open_gguf(path, sink_);
  EXPECT_EQ(data.tensors.size(), 272u);
  EXPECT_EQ(data.config.integer("vocab_size"), 49152);
  EXPECT_TRUE(data.config.boolean("tie_word_embeddings", false));
  EXPECT_THAT(data.tensors.at("model.embed_tokens.weight")->shape(), ElementsAre(49152, 576));
  // Two numbers of Transformers' model: a row of q that the file has elsewhere, and one of the
  // embedding.
  const auto element = [&](const std::string& name, int64_t index) {
    float value = 0;
    data.tensors.at(name)->read(index, 1, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  };
  EXPECT_EQ(element("model.layers.3.self_attn.q_proj.weight", 33 * 576 + 5), 0x1.3bc0000000000p-5f);
  EXPECT_EQ(element("model.embed_tokens.weight", 12345 * 576 + 7), 0x1.7eda000000000p-3f);
  EXPECT_EQ(data.made_companions.size(), 2u);
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace tranship

#include "checkpoint/gguf_config.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "checkpoint/config.h"
#include "checkpoint/gguf_testing.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::UnorderedElementsAre;

using GgufConfigTest = GgufTest;

/// A model of two query heads and one for keys and values, head dimension 4, and whatever else a
/// test adds.
GgufBuilder model(const std::string& architecture = "llama") {
  GgufBuilder builder;
  builder.text("general.architecture", architecture);
  const std::string prefix = architecture + ".";
  builder.u32(prefix + "context_length", 64)
      .u32(prefix + "embedding_length", 8)
      .u32(prefix + "block_count", 1);
  builder.u32(prefix + "feed_forward_length", 16).u32(prefix + "attention.head_count", 2);
  builder.u32(prefix + "attention.head_count_kv", 1)
      .f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  builder.zeros("token_embd.weight", {8, 10});
  return builder;
}

/// As llama.cpp's converter writes Llama 3's factors: the formula in f32.
std::string llama3_factors(float factor, float theta, int head_dim) {
  std::string bytes;
  for (int i = 0; i < head_dim / 2; ++i) {
    const float frequency =
        1.0f / std::pow(theta, 2.0f * static_cast<float>(i) / static_cast<float>(head_dim));
    const float wavelength = 2.0f * std::numbers::pi_v<float> / frequency;
    const float smooth = (8192.0f / wavelength - 1.0f) / 3.0f;
    float value = 1.0f / ((1.0f - smooth) / factor + smooth);
    if (wavelength < 2048.0f) value = 1.0f;
    if (wavelength > 8192.0f) value = factor;
    bytes += little_endian(value);
  }
  return bytes;
}

GgufBuilder llama3(float factor) {
  GgufBuilder builder = model();
  builder.u32("llama.attention.key_length", 128).f32("llama.rope.freq_base", 500000.0f);
  builder.tensor("rope_freqs.weight", {64}, GgmlType::kF32, llama3_factors(factor, 500000.0f, 128));
  return builder;
}

class GgufConfigValues : public GgufTest {
 protected:
  Config config_of(const GgufBuilder& builder) const {
    return Config::parse("test", gguf_config_json(open(builder)));
  }
};

TEST_F(GgufConfigValues, llama_has_transformers_keys_and_the_files_numbers) {
  const Config config = config_of(
      model().u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.padding_token_id", 3));
  EXPECT_THAT(config.texts("architectures"), ElementsAre("LlamaForCausalLM"));
  EXPECT_EQ(config.text("model_type"), "llama");
  EXPECT_EQ(config.integer("hidden_size"), 8);
  EXPECT_EQ(config.integer("intermediate_size"), 16);
  EXPECT_EQ(config.integer("num_hidden_layers"), 1);
  EXPECT_EQ(config.integer("num_attention_heads"), 2);
  EXPECT_EQ(config.integer("num_key_value_heads"), 1);
  EXPECT_EQ(config.integer("head_dim"), 4);
  EXPECT_EQ(config.integer("max_position_embeddings"), 64);
  EXPECT_EQ(config.integer("vocab_size"), 10);
  EXPECT_EQ(config.number("rms_norm_eps"), 9.999999747378752e-06);
  EXPECT_EQ(config.integer("bos_token_id"), 1);
  EXPECT_EQ(config.integer("pad_token_id"), 3);
  EXPECT_FALSE(config.has("eos_token_id"));
  EXPECT_TRUE(config.boolean("tie_word_embeddings", false));
  EXPECT_FALSE(config.boolean("attention_bias", true));
  EXPECT_EQ(config.text("dtype"), "float32");
  EXPECT_EQ(config.find_object("rope_parameters")->text("rope_type"), "default");
  EXPECT_EQ(config.find_object("rope_parameters")->number("rope_theta"), 10000.0);
}

TEST_F(GgufConfigValues, the_other_architectures_have_their_own_types) {
  EXPECT_THAT(config_of(model("qwen2")).texts("architectures"), ElementsAre("Qwen2ForCausalLM"));
  EXPECT_FALSE(config_of(model("qwen2")).has("head_dim"));
  EXPECT_EQ(config_of(model("qwen2").u32("qwen2.attention.key_length", 6)).integer("head_dim"), 6);
  EXPECT_EQ(config_of(model("qwen3").u32("qwen3.attention.key_length", 128)).integer("head_dim"),
            128);
  EXPECT_EQ(config_of(model("qwen3")).text("model_type"), "qwen3");
  const Config mistral = config_of(model().u32("llama.attention.sliding_window", 32));
  EXPECT_EQ(mistral.text("model_type"), "mistral");
  EXPECT_EQ(mistral.integer("sliding_window"), 32);
}

TEST_F(GgufConfigValues, tensors_decide_ties_and_biases) {
  EXPECT_FALSE(
      config_of(model().zeros("output.weight", {8, 10})).boolean("tie_word_embeddings", true));
  EXPECT_TRUE(config_of(model().zeros("blk.0.attn_q.bias", {8})).boolean("attention_bias", false));
  EXPECT_TRUE(config_of(model().zeros("blk.0.ffn_up.bias", {16})).boolean("mlp_bias", false));
}

TEST_F(GgufConfigValues, vocabulary_comes_from_the_key_the_tokens_or_the_embedding) {
  EXPECT_EQ(config_of(model().texts("tokenizer.ggml.tokens", {"a", "b"})).integer("vocab_size"), 2);
  EXPECT_EQ(config_of(model().texts("tokenizer.ggml.tokens", {"a"}).u32("llama.vocab_size", 7))
                .integer("vocab_size"),
            7);
}

TEST_F(GgufConfigValues, linear_and_yarn_scaling_are_honoured) {
  const Config linear =
      *config_of(
           model().text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4))
           .find_object("rope_parameters");
  EXPECT_EQ(linear.text("rope_type"), "linear");
  EXPECT_EQ(linear.number("factor"), 4.0);
  EXPECT_EQ(config_of(model().f32("llama.rope.scale_linear", 2))
                .find_object("rope_parameters")
                ->number("factor"),
            2.0);
  const Config yarn = *config_of(model("qwen2")
                                     .text("qwen2.rope.scaling.type", "yarn")
                                     .f32("qwen2.rope.scaling.factor", 4)
                                     .u32("qwen2.rope.scaling.original_context_length", 32)
                                     .f32("qwen2.rope.scaling.yarn_beta_fast", 16))
                           .find_object("rope_parameters");
  EXPECT_EQ(yarn.text("rope_type"), "yarn");
  EXPECT_EQ(yarn.integer("original_max_position_embeddings"), 32);
  EXPECT_EQ(yarn.number("beta_fast"), 16.0);
}

TEST_F(GgufConfigValues, llama3_factors_become_its_parameters) {
  for (const float factor : {8.0f, 32.0f}) {
    const Config rope = *config_of(llama3(factor)).find_object("rope_parameters");
    EXPECT_EQ(rope.text("rope_type"), "llama3");
    EXPECT_EQ(rope.number("factor"), static_cast<double>(factor));
    EXPECT_EQ(rope.number("low_freq_factor"), 1.0);
    EXPECT_EQ(rope.number("high_freq_factor"), 4.0);
    EXPECT_EQ(rope.integer("original_max_position_embeddings"), 8192);
    EXPECT_EQ(rope.number("rope_theta"), 500000.0);
  }
}

TEST_F(GgufConfigTest, factors_that_are_not_llama3s_are_refused_by_name) {
  GgufBuilder other = model();
  other.u32("llama.attention.key_length", 128).f32("llama.rope.freq_base", 10000.0f);
  other.tensor("rope_freqs.weight", {64}, GgmlType::kF32, llama3_factors(8, 500000.0f, 128));
  const Error error = error_of([&] { gguf_config_json(open(other)); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("'rope_freqs.weight'"));
  EXPECT_EQ(
      error_of([&] { gguf_config_json(open(model().zeros("rope_freqs.weight", {2}))); }).kind(),
      ErrorKind::kUnsupported);
  EXPECT_THAT(
      error_of([&] { gguf_config_json(open(model().zeros("rope_freqs.weight", {3}))); }).what(),
      HasSubstr("is not a list of 2 f32"));
}

TEST_F(GgufConfigTest, what_changes_the_maths_and_is_not_honoured_is_refused_by_name) {
  const auto message = [&](const GgufBuilder& builder) {
    const Error error = error_of([&] { gguf_config_json(open(builder)); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    return std::string(error.what());
  };
  EXPECT_THAT(message(model("gemma3")), HasSubstr("'gemma3'"));
  EXPECT_THAT(message(model().f32("llama.logit_scale", 2).f32("llama.residual_scale", 2)),
              HasSubstr("'llama.logit_scale', 'llama.residual_scale'"));
  EXPECT_THAT(message(model().u32("llama.expert_count", 8)),
              HasSubstr("'llama.expert_count' is 8"));
  EXPECT_THAT(message(model().text("llama.rope.scaling.type", "longrope")), HasSubstr("longrope"));
  EXPECT_THAT(message(model().u32("llama.rope.dimension_count", 2)),
              HasSubstr("'llama.rope.dimension_count' is 2"));
  EXPECT_THAT(message(model().u32("llama.attention.value_length", 2)), HasSubstr("value_length"));
  EXPECT_THAT(message(model("qwen2").u32("qwen2.attention.sliding_window", 2)),
              HasSubstr("sliding_window"));
  EXPECT_THAT(message(model().u32("split.count", 3)), HasSubstr("llama-gguf-split --merge"));
  EXPECT_THAT(message(model().text("general.type", "adapter")), HasSubstr("'adapter'"));
}

TEST_F(GgufConfigTest, impossible_and_absent_numbers_are_corrupt_with_their_key) {
  const auto message = [&](const GgufBuilder& builder) {
    const Error error = error_of([&] { gguf_config_json(open(builder)); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    return std::string(error.what());
  };
  EXPECT_THAT(message(GgufBuilder()), HasSubstr("'general.architecture' is absent"));
  EXPECT_THAT(message(GgufBuilder().text("general.architecture", "llama")),
              HasSubstr("'llama.attention.head_count' is absent"));
  EXPECT_THAT(message(model().u32("llama.vocab_size", 0)), HasSubstr("'llama.vocab_size' is 0"));
  EXPECT_THAT(message(model().u32("llama.vocab_size", 0xffffffffu)),
              HasSubstr("'llama.vocab_size' is 4294967295"));
  EXPECT_THAT(message(model().f32("llama.rope.freq_base", -1)),
              HasSubstr("'llama.rope.freq_base' is -1"));
  EXPECT_THAT(message(model().text("llama.rope.scaling.type", "yarn")),
              HasSubstr("'llama.rope.scaling.factor' is absent"));
}

TEST_F(GgufConfigTest, generation_config_has_the_ids_that_are_given) {
  const GgufFile gguf = open(model().u32("tokenizer.ggml.eos_token_id", 2));
  const Config config = Config::parse("test", gguf_generation_config_json(gguf));
  EXPECT_EQ(config.integer("eos_token_id"), 2);
  EXPECT_FALSE(config.has("bos_token_id"));
  EXPECT_TRUE(config.boolean("_from_model_config", false));
}

TEST_F(GgufConfigTest, every_tensor_gets_transformers_name) {
  GgufBuilder builder = model("qwen3");
  builder.zeros("output_norm.weight", {8})
      .zeros("output.weight", {8, 10})
      .zeros("rope_freqs.weight", {2});
  for (const char* part : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm",
                           "attn_k_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}) {
    builder.zeros(std::string("blk.12.") + part + ".weight", {8, 4});
  }
  builder.zeros("blk.0.attn_v.bias", {4});
  const auto tensors = gguf_tensors(open(builder));
  const std::string layer = "model.layers.12.";
  EXPECT_THAT(
      tensors,
      UnorderedElementsAre(
          Key("model.embed_tokens.weight"), Key("model.norm.weight"), Key("lm_head.weight"),
          Key("model.layers.0.self_attn.v_proj.bias"), Key(layer + "input_layernorm.weight"),
          Key(layer + "self_attn.q_proj.weight"), Key(layer + "self_attn.k_proj.weight"),
          Key(layer + "self_attn.v_proj.weight"), Key(layer + "self_attn.o_proj.weight"),
          Key(layer + "self_attn.q_norm.weight"), Key(layer + "self_attn.k_norm.weight"),
          Key(layer + "post_attention_layernorm.weight"), Key(layer + "mlp.gate_proj.weight"),
          Key(layer + "mlp.up_proj.weight"), Key(layer + "mlp.down_proj.weight")));
  EXPECT_THAT(tensors.at(layer + "mlp.up_proj.weight")->shape(), ElementsAre(4, 8));
  EXPECT_EQ(tensors.at(layer + "mlp.up_proj.weight")->name(), "blk.12.ffn_up.weight");
}

TEST_F(GgufConfigTest, rows_of_llamas_q_and_k_are_put_back_and_no_others) {
  const std::string rows = [] {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += little_endian(static_cast<float>(i));
    return bytes;
  }();
  const auto rows_of = [&](const std::string& architecture, const std::string& part) {
    GgufBuilder builder = model(architecture);
    builder.tensor("blk.0." + part, {8}, GgmlType::kF32, rows);
    const Tensor tensor = read_all(*gguf_tensors(open(builder)).rbegin()->second);
    return std::vector<float>(tensor.f32().begin(), tensor.f32().end());
  };
  EXPECT_THAT(rows_of("llama", "attn_q.bias"), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));  // two heads
  EXPECT_THAT(rows_of("llama", "attn_k.bias"), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));  // one
  EXPECT_THAT(rows_of("llama", "attn_v.bias"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(rows_of("qwen2", "attn_q.bias"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(GgufConfigTest, rows_that_heads_do_not_divide_are_corrupt) {
  const GgufFile gguf = open(model().zeros("blk.0.attn_q.weight", {8, 6}));
  EXPECT_EQ(error_of([&] { gguf_tensors(gguf); }).kind(), ErrorKind::kCorrupt);
}

TEST_F(GgufConfigTest, unknown_tensors_are_refused_all_at_once) {
  GgufBuilder builder = model();
  for (const char* name :
       {"blk.0.ffn_gate_inp.weight", "blk.x.attn_q.weight", "blk.01.attn_q.weight", "blk.0",
        "token_embd.scale", "position_embd.weight", "blk..attn_q.weight"}) {
    builder.zeros(name, {8});
  }
  const Error error = error_of([&] { gguf_tensors(open(builder)); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(
      error.what(),
      HasSubstr(
          "'blk.0.ffn_gate_inp.weight', 'blk.x.attn_q.weight', 'blk.01.attn_q.weight', 'blk.0', "
          "'token_embd.scale', 'position_embd.weight', 'blk..attn_q.weight'"));
  EXPECT_THAT(error.what(), Not(HasSubstr("'token_embd.weight'")));
}

TEST_F(GgufConfigTest, types_without_a_decoder_are_refused_all_at_once) {
  GgufBuilder builder = model();
  builder.tensor("blk.0.ffn_up.weight", {256}, GgmlType::kQ2_K, std::string(84, '\0'));
  builder.tensor("blk.0.ffn_down.weight", {256}, GgmlType::kIQ4_XS, std::string(136, '\0'));
  builder.tensor("blk.0.ffn_gate.weight", {32}, GgmlType::kMXFP4, std::string(17, '\0'));
  const Error error = error_of([&] { gguf_tensors(open(builder)); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("'IQ4_XS', 'MXFP4', 'Q2_K'"));
}

}  // namespace
}  // namespace tranship

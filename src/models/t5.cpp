// T5, after transformers/models/t5/modeling_t5.py (5.23): an encoder and a decoder that share their
// embedding. Positions are a bias on the scores, one table a stack; scores are not scaled.
// B batch, S queries, T keys, H heads, D d_kv.
#include <cmath>

#include "base/error.h"
#include "models/families.h"
#include "nn/decoder.h"
#include "nn/last_token.h"
#include "nn/relative_bias.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

struct T5Config {
  int64_t vocab_size, d_model, d_kv, d_ff, num_layers, num_decoder_layers, num_heads;
  int64_t relative_attention_num_buckets, relative_attention_max_distance;
  double layer_norm_epsilon;
  std::string dense_act_fn;
  bool is_gated_act, scale_decoder_outputs;
};

T5Config read(const Config& config) {
  ignore_common_keys(config, config.boolean("is_encoder_decoder", true));
  config.ignore({"n_positions", "output_past", "dropout_rate"});
  const std::string projection = config.text("feed_forward_proj", "relu");
  const bool is_gated = projection.starts_with("gated-");
  const std::string act =
      projection == "gated-gelu" ? "gelu_new" : projection.substr(is_gated ? 6 : 0);
  const bool ties = config.boolean("tie_word_embeddings", true);
  const int64_t num_layers = read_size(config, "num_layers", 6);
  return {
      .vocab_size = read_size(config, "vocab_size", 32128),
      .d_model = read_size(config, "d_model", 512),
      .d_kv = read_size(config, "d_kv", 64),
      .d_ff = read_size(config, "d_ff", 2048),
      .num_layers = num_layers,
      .num_decoder_layers = read_size(config, "num_decoder_layers", num_layers),
      .num_heads = read_size(config, "num_heads", 8),
      .relative_attention_num_buckets = read_size(config, "relative_attention_num_buckets", 32),
      .relative_attention_max_distance = read_size(config, "relative_attention_max_distance", 128),
      .layer_norm_epsilon = config.number("layer_norm_epsilon", 1e-6),
      .dense_act_fn = config.text("dense_act_fn", act),
      .is_gated_act = config.boolean("is_gated_act", is_gated),
      .scale_decoder_outputs = config.boolean("scale_decoder_outputs", ties)};
}

Tensor position_bias(Scope stack, const Dim& queries, const Dim& keys, const T5Config& c,
                     bool bidirectional, Tensor first = {}) {  // [1, H, S, T]
  return relative_position_bias(
      stack / "block.0.layer.0.SelfAttention.relative_attention_bias", queries, keys, c.num_heads,
      {c.relative_attention_num_buckets, c.relative_attention_max_distance, bidirectional}, first);
}

/// Adds what the queries of x see of `all`.
Tensor attend(Scope m, Tensor x, Tensor q, const KeyValue& all, const T5Config& c,
              const AttentionOptions& options) {
  const Tensor y = attention(m, q, all.keys, all.values, options);
  return x + linear(m / "o", merge_heads(y), c.d_model);
}

KeyValue keys_and_values(Scope m, Tensor x, const T5Config& c) {  // [B, H, T, D] each
  return {heads(m / "k", x, c.num_heads, c.d_kv), heads(m / "v", x, c.num_heads, c.d_kv)};
}

Tensor self_attention(Scope m, Tensor x, const T5Config& c, const AttentionOptions& options,
                      Cache* cache, int64_t layer) {
  const Scope self = m / "SelfAttention";
  const Tensor y = rms_norm(m / "layer_norm", x, c.layer_norm_epsilon);
  const Tensor q = heads(self / "q", y, c.num_heads, c.d_kv);
  KeyValue all = keys_and_values(self, y, c);
  if (cache != nullptr) all = cache->update(layer, all.keys, all.values);
  return attend(self, x, q, all, c, options);
}

Tensor cross_attention(Scope m, Tensor x, Tensor memory, const T5Config& c,
                       const AttentionOptions& options, Cache& cache, int64_t layer) {
  const Scope cross = m / "EncDecAttention";
  const Tensor y = rms_norm(m / "layer_norm", x, c.layer_norm_epsilon);
  const Tensor q = heads(cross / "q", y, c.num_heads, c.d_kv);
  const Shape shape = {memory.shape()[0], c.num_heads, memory.shape()[1], c.d_kv};
  const KeyValue all = cache.cross(layer, shape, [&] { return keys_and_values(cross, memory, c); });
  return attend(cross, x, q, all, c, options);
}

Tensor feed_forward(Scope m, Tensor x, const T5Config& c) {
  const Scope dense = m / "DenseReluDense";
  const Tensor y = rms_norm(m / "layer_norm", x, c.layer_norm_epsilon);
  Tensor inner = linear(dense / (c.is_gated_act ? "wi_0" : "wi"), y, c.d_ff);
  inner = activate(c.dense_act_fn, inner);
  if (c.is_gated_act) inner = inner * linear(dense / "wi_1", y, c.d_ff);
  return x + linear(dense / "wo", inner, c.d_model);
}

Tensor encoder(Scope m, const ModelInputs& in, const T5Config& c) {
  Tensor x = embedding(m / "embed_tokens", in.input_ids, c.vocab_size, c.d_model);
  const Dim length = x.shape()[1];
  const AttentionOptions options = {.key_mask = key_mask_of(in.attention_mask),
                                    .bias = position_bias(m, length, length, c, true)};
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const Scope layer = m / "block" / i / "layer";
    x = feed_forward(layer / "1", self_attention(layer / "0", x, c, options, nullptr, i), c);
  }
  return rms_norm(m / "final_layer_norm", x, c.layer_norm_epsilon);
}

Tensor decoder(Scope m, const ModelInputs& in, Tensor memory, const T5Config& c) {
  Tensor x = embedding(m / "embed_tokens", in.decoder_input_ids, c.vocab_size, c.d_model);
  const Dim length = x.shape()[1];
  const Tensor first = in.cache->first_slot();
  const Dim keys = first ? in.cache->num_slots() : in.past + length;
  const AttentionOptions self = Visibility(m.graph(), in, in.decoder_attention_mask, length)
                                    .with_bias(position_bias(m, length, keys, c, false, first));
  const AttentionOptions cross = {.key_mask = key_mask_of(in.attention_mask)};
  for (int64_t i = 0; i < c.num_decoder_layers; ++i) {
    const Scope layer = m / "block" / i / "layer";
    x = self_attention(layer / "0", x, c, self, in.cache, i);
    x = cross_attention(layer / "1", x, memory, c, cross, *in.cache, i);
    x = feed_forward(layer / "2", x, c);
  }
  return rms_norm(m / "final_layer_norm", x, c.layer_norm_epsilon);
}

/// The embeddings of both stacks are `shared`.
Scope tied(Scope m) {
  if (m.dtype() == DType::kF16) {
    fail(
        ErrorKind::kUnsupported,
        "[model] T5 goes over 65504, where f16 ends; Transformers keeps parts of it in f32: export "
        "it as f32 or bf16");
  }
  for (const std::string_view stack : {"encoder", "decoder"})
    (m / stack / "embed_tokens").tie("weight", m / "shared", "weight");
  return m;
}

/// The encoder's states: those that came in, or new ones.
Tensor memory_of(Scope m, const ModelInputs& in, const T5Config& c) {
  return in.encoder_hidden_states ? in.encoder_hidden_states : encoder(m / "encoder", in, c);
}

ModelOutputs encoder_model(Scope m, const ModelInputs& in, const Config& config) {
  return {"BaseModelOutputWithPastAndCrossAttentions",
          {{"last_hidden_state", encoder(tied(m) / "encoder", in, read(config))}}};
}

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  config.require("is_encoder_decoder", true);
  const T5Config c = read(config);
  const Tensor memory = memory_of(tied(m), in, c);
  return {"Seq2SeqModelOutput",
          {{"last_hidden_state", decoder(m / "decoder", in, memory, c)}},
          {{"encoder_last_hidden_state", memory}}};
}

ModelOutputs for_conditional_generation(Scope m, const ModelInputs& in, const Config& config) {
  config.require("is_encoder_decoder", true);
  const T5Config c = read(config);
  // An older config says tie_word_embeddings = false for a head of its own.
  const bool own_head = !c.scale_decoder_outputs && (m / "lm_head").has("weight", false);
  if (!own_head) (m / "lm_head").tie("weight", m / "shared", "weight");
  const Tensor memory = memory_of(tied(m), in, c);
  Tensor x = last_tokens(decoder(m / "decoder", in, memory, c), in);
  if (c.scale_decoder_outputs) x = x * std::pow(double(c.d_model), -0.5);
  return {"Seq2SeqLMOutput",
          {{"logits", linear(m / "lm_head", x, c.vocab_size)}},
          {{"encoder_last_hidden_state", memory}}};
}

}  // namespace

const Family& t5() {
  static const Family family = {
      .model_type = "t5",
      .architectures =
          {{"T5ForConditionalGeneration", for_conditional_generation, true, encoder_model},
           {"T5Model", model, false, encoder_model, {"lm_head."}},
           {"T5EncoderModel", encoder_model, false, nullptr, {"lm_head.", "decoder."}}},
      .optional_inputs = {"attention_mask", "decoder_attention_mask"},
      .has_cache = true,
      .ignorable = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"},
      .tiny_config =
          R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 96, "d_model": 32,
        "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 4, "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0})"};
  return family;
}

}  // namespace tranship::models

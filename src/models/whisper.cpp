// Whisper, after transformers/models/whisper/modeling_whisper.py (5.23): an encoder of sound whose
// length never varies, and a decoder of text with learned positions; the norms stand before the
// blocks. B batch, T the encoder's positions, S the decoder's tokens, D the size of a head.
#include <cmath>

#include "base/error.h"
#include "models/families.h"
#include "nn/decoder.h"
#include "nn/last_token.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

struct WhisperConfig {
  int64_t vocab_size, num_mel_bins, d_model, max_source_positions, max_target_positions;
  int64_t encoder_layers, encoder_attention_heads, encoder_ffn_dim;
  int64_t decoder_layers, decoder_attention_heads, decoder_ffn_dim;
  std::string activation_function;
  bool tie_word_embeddings;
};

WhisperConfig read(const Config& config) {
  ignore_common_keys(config, true);
  config.ignore({"scale_embedding", "use_weighted_layer_sum", "classifier_proj_size",
                 "median_filter_width"});  // of other classes, or of nothing
  const WhisperConfig c = {
      .vocab_size = read_size(config, "vocab_size", 51865),
      .num_mel_bins = read_size(config, "num_mel_bins", 80),
      .d_model = read_size(config, "d_model", 384),
      .max_source_positions = read_size(config, "max_source_positions", 1500),
      .max_target_positions = read_size(config, "max_target_positions", 448),
      .encoder_layers = read_size(config, "encoder_layers", 4),
      .encoder_attention_heads = read_size(config, "encoder_attention_heads", 6),
      .encoder_ffn_dim = read_size(config, "encoder_ffn_dim", 1536),
      .decoder_layers = read_size(config, "decoder_layers", 4),
      .decoder_attention_heads = read_size(config, "decoder_attention_heads", 6),
      .decoder_ffn_dim = read_size(config, "decoder_ffn_dim", 1536),
      .activation_function = config.text("activation_function", "gelu"),
      .tie_word_embeddings = config.boolean("tie_word_embeddings", true)};
  config.require("num_hidden_layers", c.encoder_layers);
  if (c.d_model % c.encoder_attention_heads == 0 && c.d_model % c.decoder_attention_heads == 0)
    return c;
  fail(ErrorKind::kInvalidArgument,
       "[config] {}: d_model {} is not a multiple of encoder_attention_heads {} and "
       "decoder_attention_heads {}",
       config.where(), c.d_model, c.encoder_attention_heads, c.decoder_attention_heads);
}

struct Heads {
  int64_t count, size;
};

Tensor norm(Scope m, Tensor x) { return layer_norm(m, x, 1e-5); }

/// x [B, C, t] -> [B, channels, t / stride]
Tensor convolution(Scope m, Tensor x, int64_t channels, int64_t stride) {
  ir::Conv op;
  op.strides = {stride};
  op.pads_begin = op.pads_end = op.dilations = {1};
  const Tensor weight = m.param("weight", {channels, x.shape()[1], 3});
  return m.graph().add_one(ir::make(op), {x, weight, m.param("bias", {channels})}, m.path());
}

KeyValue keys_and_values(Scope m, Tensor x, Heads h) {  // [B, H, T, D] each
  return {heads(m / "k_proj", x, h.count, h.size), heads(m / "v_proj", x, h.count, h.size, true)};
}

/// What the queries of y see of `all`.
Tensor attend(Scope m, Tensor y, const KeyValue& all, Heads h, AttentionOptions options) {
  options.scale = 1 / std::sqrt(double(h.size));
  const Tensor q = heads(m / "q_proj", y, h.count, h.size, true);  // [B, H, S, D]
  const Tensor seen = attention(m, q, all.keys, all.values, options);
  return linear(m / "out_proj", merge_heads(seen), h.count * h.size, true);
}

Tensor self_attention(Scope m, Tensor x, Heads h, const AttentionOptions& options, Cache* cache,
                      int64_t layer) {
  const Tensor y = norm(m / "self_attn_layer_norm", x);
  KeyValue all = keys_and_values(m / "self_attn", y, h);
  if (cache != nullptr) all = cache->update(layer, all.keys, all.values);
  return x + attend(m / "self_attn", y, all, h, options);
}

Tensor cross_attention(Scope m, Tensor x, Tensor memory, Heads h, Cache& cache, int64_t layer) {
  const Scope cross = m / "encoder_attn";
  const Shape shape = {memory.shape()[0], h.count, memory.shape()[1], h.size};
  const KeyValue all = cache.cross(layer, shape, [&] { return keys_and_values(cross, memory, h); });
  return x + attend(cross, norm(m / "encoder_attn_layer_norm", x), all, h, {});
}

Tensor feed_forward(Scope m, Tensor x, const WhisperConfig& c, int64_t ffn_dim) {
  const Tensor y = linear(m / "fc1", norm(m / "final_layer_norm", x), ffn_dim, true);
  return x + linear(m / "fc2", activate(c.activation_function, y), c.d_model, true);
}

/// f16 ends at 65504: as in Transformers.
Tensor clamp_f16(Tensor x) {
  if (x.dtype() != DType::kF16) return x;
  const Tensor most = ir::scalar(x.graph(), DType::kF16, 64504);
  x = ir::binary(ir::BinaryKind::kMin, x, most);
  return ir::binary(ir::BinaryKind::kMax, x, ir::unary(ir::UnaryKind::kNeg, most));
}

/// in.features [B, num_mel_bins, 2 T] -> [B, T, d_model]
Tensor encoder(Scope m, const ModelInputs& in, const WhisperConfig& c) {
  Tensor x = activate("gelu", convolution(m / "conv1", in.features, c.d_model, 1));
  x = activate("gelu", convolution(m / "conv2", x, c.d_model, 2));
  x = ir::transpose(x, {0, 2, 1}) +
      (m / "embed_positions").param("weight", {c.max_source_positions, c.d_model});
  const Heads h = {c.encoder_attention_heads, c.d_model / c.encoder_attention_heads};
  for (int64_t i = 0; i < c.encoder_layers; ++i) {
    const Scope layer = m / "layers" / i;
    x = self_attention(layer, x, h, {}, nullptr, i);
    x = clamp_f16(feed_forward(layer, x, c, c.encoder_ffn_dim));
  }
  return norm(m / "layer_norm", x);
}

Tensor decoder(Scope m, const ModelInputs& in, Tensor memory, const WhisperConfig& c) {
  ir::Graph& g = m.graph();
  const Dim length = in.decoder_input_ids.shape()[1];
  for (const Dim& size : {length, in.past}) {  // the table of positions is as long as it is
    if (const auto symbol = size.as_symbol())
      g.set_range(*symbol, {.min = size == in.past ? 0 : 1, .max = c.max_target_positions});
  }
  Tensor x =
      embedding(m / "embed_tokens", in.decoder_input_ids, c.vocab_size, c.d_model) +
      embedding(m / "embed_positions", places(g, in, length), c.max_target_positions, c.d_model);
  const AttentionOptions options = Visibility(g, in, in.decoder_attention_mask, length).options();
  const Heads h = {c.decoder_attention_heads, c.d_model / c.decoder_attention_heads};
  for (int64_t i = 0; i < c.decoder_layers; ++i) {
    const Scope layer = m / "layers" / i;
    x = self_attention(layer, x, h, options, in.cache, i);
    x = cross_attention(layer, x, memory, h, *in.cache, i);
    x = feed_forward(layer, x, c, c.decoder_ffn_dim);
  }
  return norm(m / "layer_norm", x);
}

/// The encoder's states: those that came in, or new ones.
Tensor memory_of(Scope m, const ModelInputs& in, const WhisperConfig& c) {
  return in.encoder_hidden_states ? in.encoder_hidden_states : encoder(m / "encoder", in, c);
}

template <bool kHasHead>
ModelOutputs encoder_of(Scope m, const ModelInputs& in, const Config& config) {
  const Tensor states = encoder(m.base("model", kHasHead) / "encoder", in, read(config));
  return {"BaseModelOutput", {{"last_hidden_state", states}}};
}

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  const WhisperConfig c = read(config);
  const Scope whisper = m.base("model", false);
  const Tensor memory = memory_of(whisper, in, c);
  return {"Seq2SeqModelOutput",
          {{"last_hidden_state", decoder(whisper / "decoder", in, memory, c)}},
          {{"encoder_last_hidden_state", memory}}};
}

ModelOutputs for_conditional_generation(Scope m, const ModelInputs& in, const Config& config) {
  const WhisperConfig c = read(config);
  const Scope whisper = m.base("model", true);
  if (c.tie_word_embeddings)
    (m / "proj_out").tie("weight", whisper / "decoder" / "embed_tokens", "weight");
  const Tensor memory = memory_of(whisper, in, c);
  const Tensor x = last_tokens(decoder(whisper / "decoder", in, memory, c), in);
  return {"Seq2SeqLMOutput",
          {{"logits", linear(m / "proj_out", x, c.vocab_size)}},
          {{"encoder_last_hidden_state", memory}}};
}

MainInput input_features(const Config& config) {
  const WhisperConfig c = read(config);
  return {"input_features", {Dim::symbol("batch"), c.num_mel_bins, 2 * c.max_source_positions}};
}

}  // namespace

const Family& whisper() {
  static const Family family = {
      .model_type = "whisper",
      .architectures = {{"WhisperForConditionalGeneration", for_conditional_generation, true,
                         encoder_of<true>},
                        {"WhisperModel", model, false, encoder_of<false>, {"proj_out."}}},
      .optional_inputs = {"decoder_attention_mask"},
      .has_cache = true,
      .ignorable = {},
      .main_input = input_features,
      .tiny_config =
          R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "vocab_size": 96, "num_mel_bins": 8,
        "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_layers": 1,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 48, "max_source_positions": 20, "max_target_positions": 32,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3})"};
  return family;
}

}  // namespace tranship::models

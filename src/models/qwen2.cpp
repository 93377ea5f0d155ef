// Qwen2, after transformers/models/qwen2/modeling_qwen2.py (5.23): Llama with biases on q, k and v,
// and layers from `max_window_layers` on that slide, if `use_sliding_window`. B batch, S sequence,
// D head_dim.
#include <cmath>

#include "models/families.h"
#include "nn/decoder.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

DecoderConfig read(const Config& config) {
  return read_decoder_config(config,
                             {.vocab_size = 151936,
                              .intermediate_size = 22016,
                              .num_key_value_heads = 32,
                              .max_position_embeddings = 32768,
                              .sliding_window = 4096},
                             {.enabled = config.boolean("use_sliding_window", false),
                              .first = config.integer("max_window_layers", 28)});
}

Tensor self_attention(Scope m, Tensor x, const DecoderConfig& c, const Step& s) {
  const Tensor q = heads(m / "q_proj", x, c.num_attention_heads, c.head_dim, true);  // [B, H, S, D]
  const Tensor k = heads(m / "k_proj", x, c.num_key_value_heads, c.head_dim, true);
  const Tensor v = heads(m / "v_proj", x, c.num_key_value_heads, c.head_dim, true);
  const Tensor y =
      attend(m, rope(q, s.rotary), rope(k, s.rotary), v, s, 1 / std::sqrt(double(c.head_dim)));
  return linear(m / "o_proj", merge_heads(y), c.hidden_size);
}

Tensor layer(Scope m, Tensor x, const DecoderConfig& c, const Step& s) {
  x = x + self_attention(m / "self_attn", rms_norm(m / "input_layernorm", x, c.rms_norm_eps), c, s);
  const Tensor y = rms_norm(m / "post_attention_layernorm", x, c.rms_norm_eps);
  return x + gated_mlp(m / "mlp", y, c.intermediate_size, c.hidden_act);
}

Backbone backbone(const DecoderConfig& c) {
  return [&c](Scope m, const ModelInputs& in) {
    Tensor x = embedding(m / "embed_tokens", in.input_ids, c.vocab_size, c.hidden_size);
    x = each_layer(m / "layers", x, c, in,
                   [&](Scope n, Tensor y, const Step& s) { return layer(n, y, c, s); });
    return rms_norm(m / "norm", x, c.rms_norm_eps);
  };
}

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  const DecoderConfig c = read(config);
  return base_model(m, in, backbone(c));
}

ModelOutputs for_causal_lm(Scope m, const ModelInputs& in, const Config& config) {
  const DecoderConfig c = read(config);
  return causal_lm(m, in, c, backbone(c));
}

ModelOutputs for_sequence_classification(Scope m, const ModelInputs& in, const Config& config) {
  const DecoderConfig c = read(config);
  return sequence_classification(m, in, c, backbone(c));
}

}  // namespace

const Family& qwen2() {
  static const Family family = {
      .model_type = "qwen2",
      .architectures = {{"Qwen2ForCausalLM", for_causal_lm, true},
                        {"Qwen2Model", model},
                        {"Qwen2ForSequenceClassification", for_sequence_classification}},
      .optional_inputs = {"attention_mask", "position_ids"},
      .has_cache = true,
      .ignorable = {"lm_head.", "score.", ".rotary_emb.inv_freq"},
      .tiny_config =
          R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-06, "pad_token_id": 0})"};
  return family;
}

}  // namespace tranship::models

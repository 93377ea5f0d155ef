// Qwen3, after transformers/models/qwen3/modeling_qwen3.py (5.23): Llama with an RMS norm over D on
// q and k before their rotation, and Qwen2's sliding layers. B batch, S sequence, D head_dim.
#include <cmath>

#include "models/families.h"
#include "nn/decoder.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

struct Qwen3Config : DecoderConfig {
  bool attention_bias = false;
};

Qwen3Config read(const Config& config) {
  Qwen3Config c{read_decoder_config(config,
                                    {.vocab_size = 151936,
                                     .intermediate_size = 22016,
                                     .num_key_value_heads = 32,
                                     .head_dim = 128,
                                     .max_position_embeddings = 32768,
                                     .sliding_window = 4096},
                                    {.enabled = config.boolean("use_sliding_window", false),
                                     .first = config.integer("max_window_layers", 28)})};
  c.attention_bias = config.boolean("attention_bias", false);
  return c;
}

Tensor self_attention(Scope m, Tensor x, const Qwen3Config& c, const Step& s) {
  Tensor q =
      heads(m / "q_proj", x, c.num_attention_heads, c.head_dim, c.attention_bias);  // [B, H, S, D]
  Tensor k = heads(m / "k_proj", x, c.num_key_value_heads, c.head_dim, c.attention_bias);
  const Tensor v = heads(m / "v_proj", x, c.num_key_value_heads, c.head_dim, c.attention_bias);
  q = rope(rms_norm(m / "q_norm", q, c.rms_norm_eps), s.rotary);
  k = rope(rms_norm(m / "k_norm", k, c.rms_norm_eps), s.rotary);
  const Tensor y = attend(m, q, k, v, s, 1 / std::sqrt(double(c.head_dim)));
  return linear(m / "o_proj", merge_heads(y), c.hidden_size, c.attention_bias);
}

Tensor layer(Scope m, Tensor x, const Qwen3Config& c, const Step& s) {
  x = x + self_attention(m / "self_attn", rms_norm(m / "input_layernorm", x, c.rms_norm_eps), c, s);
  const Tensor y = rms_norm(m / "post_attention_layernorm", x, c.rms_norm_eps);
  return x + gated_mlp(m / "mlp", y, c.intermediate_size, c.hidden_act);
}

Backbone backbone(const Qwen3Config& c) {
  return [&c](Scope m, const ModelInputs& in) {
    Tensor x = embedding(m / "embed_tokens", in.input_ids, c.vocab_size, c.hidden_size);
    x = each_layer(m / "layers", x, c, in,
                   [&](Scope n, Tensor y, const Step& s) { return layer(n, y, c, s); });
    return rms_norm(m / "norm", x, c.rms_norm_eps);
  };
}

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  const Qwen3Config c = read(config);
  return base_model(m, in, backbone(c));
}

ModelOutputs for_causal_lm(Scope m, const ModelInputs& in, const Config& config) {
  const Qwen3Config c = read(config);
  return causal_lm(m, in, c, backbone(c));
}

ModelOutputs for_sequence_classification(Scope m, const ModelInputs& in, const Config& config) {
  const Qwen3Config c = read(config);
  return sequence_classification(m, in, c, backbone(c));
}

}  // namespace

const Family& qwen3() {
  static const Family family = {
      .model_type = "qwen3",
      .architectures = {{"Qwen3ForCausalLM", for_causal_lm, true},
                        {"Qwen3Model", model},
                        {"Qwen3ForSequenceClassification", for_sequence_classification}},
      .optional_inputs = {"attention_mask", "position_ids"},
      .has_cache = true,
      .ignorable = {"lm_head.", "score.", ".rotary_emb.inv_freq"},
      .tiny_config =
          R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-06, "pad_token_id": 0, "head_dim": 16})"};
  return family;
}

}  // namespace tranship::models

// Qwen3-MoE, after transformers/models/qwen3_moe/modeling_qwen3_moe.py (5.23): Qwen3 with experts
// in place of most layers' MLPs; if layers slide, all do. B batch, S sequence, D head_dim.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/families.h"
#include "nn/decoder.h"
#include "nn/moe.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

struct Qwen3MoeConfig : DecoderConfig {
  bool attention_bias = false, norm_topk_prob = false;
  int64_t num_experts = 0, num_experts_per_tok = 0, moe_intermediate_size = 0;
  int64_t decoder_sparse_step = 1;
  std::vector<int64_t> mlp_only_layers = {};
};

Qwen3MoeConfig read(const Config& config) {
  Qwen3MoeConfig c{
      read_decoder_config(config,
                          {.vocab_size = 151936,
                           .hidden_size = 2048,
                           .intermediate_size = 6144,
                           .num_hidden_layers = 24,
                           .num_key_value_heads = 4,
                           .max_position_embeddings = 32768,
                           .sliding_window = 4096},
                          {.enabled = config.boolean("use_sliding_window", false), .first = 0})};
  config.require("output_router_logits", false);
  config.ignore({"router_aux_loss_coef", "max_window_layers"});
  c.attention_bias = config.boolean("attention_bias", false);
  c.norm_topk_prob = config.boolean("norm_topk_prob", false);
  // num_local_experts is what 5.23 writes.
  c.num_experts = config.integer("num_local_experts", config.integer("num_experts", 128));
  c.num_experts_per_tok = config.integer("num_experts_per_tok", 8);
  c.moe_intermediate_size = config.integer("moe_intermediate_size", 768);
  c.decoder_sparse_step = config.integer("decoder_sparse_step", 1);
  c.mlp_only_layers = config.integers("mlp_only_layers");
  check_size(config, "moe_intermediate_size", c.moe_intermediate_size);
  check_size(config, "decoder_sparse_step", c.decoder_sparse_step);
  if (c.num_experts < 1 || c.num_experts > 65'536 || c.num_experts_per_tok < 1 ||
      c.num_experts_per_tok > c.num_experts) {
    fail(ErrorKind::kInvalidArgument,
         "[config] {}: num_experts {} and num_experts_per_tok {} make no sense", config.where(),
         c.num_experts, c.num_experts_per_tok);
  }
  return c;
}

bool is_sparse(const Qwen3MoeConfig& c, int64_t layer) {
  return std::ranges::find(c.mlp_only_layers, layer) == c.mlp_only_layers.end() &&
         (layer + 1) % c.decoder_sparse_step == 0;
}

Tensor self_attention(Scope m, Tensor x, const Qwen3MoeConfig& c, const Step& s) {
  Tensor q =
      heads(m / "q_proj", x, c.num_attention_heads, c.head_dim, c.attention_bias);  // [B, H, S, D]
  Tensor k = heads(m / "k_proj", x, c.num_key_value_heads, c.head_dim, c.attention_bias);
  const Tensor v = heads(m / "v_proj", x, c.num_key_value_heads, c.head_dim, c.attention_bias);
  q = rope(rms_norm(m / "q_norm", q, c.rms_norm_eps), s.rotary);
  k = rope(rms_norm(m / "k_norm", k, c.rms_norm_eps), s.rotary);
  const Tensor y = attend(m, q, k, v, s, 1 / std::sqrt(double(c.head_dim)));
  return linear(m / "o_proj", merge_heads(y), c.hidden_size, c.attention_bias);
}

Tensor layer(Scope m, Tensor x, const Qwen3MoeConfig& c, const Step& s) {
  x = x + self_attention(m / "self_attn", rms_norm(m / "input_layernorm", x, c.rms_norm_eps), c, s);
  const Tensor y = rms_norm(m / "post_attention_layernorm", x, c.rms_norm_eps);
  if (!is_sparse(c, s.layer)) return x + gated_mlp(m / "mlp", y, c.intermediate_size, c.hidden_act);
  return x + moe(m / "mlp", y,
                 {.num_experts = c.num_experts,
                  .num_experts_per_tok = c.num_experts_per_tok,
                  .intermediate_size = c.moe_intermediate_size,
                  .hidden_act = c.hidden_act,
                  .norm_topk_prob = c.norm_topk_prob});
}

Backbone backbone(const Qwen3MoeConfig& c) {
  return [&c](Scope m, const ModelInputs& in) {
    Tensor x = embedding(m / "embed_tokens", in.input_ids, c.vocab_size, c.hidden_size);
    x = each_layer(m / "layers", x, c, in,
                   [&](Scope n, Tensor y, const Step& s) { return layer(n, y, c, s); });
    return rms_norm(m / "norm", x, c.rms_norm_eps);
  };
}

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  const Qwen3MoeConfig c = read(config);
  ModelOutputs out = base_model(m, in, backbone(c));
  out.output_class = "MoeModelOutputWithPast";
  return out;
}

ModelOutputs for_causal_lm(Scope m, const ModelInputs& in, const Config& config) {
  const Qwen3MoeConfig c = read(config);
  ModelOutputs out = causal_lm(m, in, c, backbone(c));
  out.output_class = "MoeCausalLMOutputWithPast";
  return out;
}

}  // namespace

const Family& qwen3_moe() {
  static const Family family = {
      .model_type = "qwen3_moe",
      .architectures = {{"Qwen3MoeForCausalLM", for_causal_lm, true}, {"Qwen3MoeModel", model}},
      .optional_inputs = {"attention_mask", "position_ids"},
      .has_cache = true,
      .ignorable = {"lm_head.", ".rotary_emb.inv_freq"},
      .tiny_config =
          R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "max_position_embeddings": 64, "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
        "mlp_only_layers": [0], "norm_topk_prob": true})"};
  return family;
}

}  // namespace tranship::models

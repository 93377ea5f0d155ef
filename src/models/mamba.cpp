// Mamba, after transformers/models/mamba/modeling_mamba.py (5.23): no attention; a layer is a short
// convolution and a selective scan over the tokens, and keeps the state of both. B batch, L
// sequence, D inner size, N state.
#include "base/error.h"
#include "models/families.h"
#include "nn/decoder.h"
#include "nn/last_token.h"
#include "nn/ssm.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

struct MambaConfig {
  int64_t vocab_size, hidden_size, state_size, num_hidden_layers, inner_size, conv_kernel;
  int64_t time_step_rank;
  std::string hidden_act;
  double layer_norm_epsilon;
  bool use_bias, use_conv_bias, residual_in_fp32, tie_word_embeddings;
};

MambaConfig read(const Config& config) {
  ignore_common_keys(config);
  config.ignore({"time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme",
                 "time_step_floor", "rescale_prenorm_residual", "use_mambapy",
                 "use_associative_scan"});
  // Of the original's configurations; the class makes its own of them.
  config.ignore({"d_inner", "d_model", "fused_add_norm", "intermediate_size", "n_layer",
                 "pad_vocab_size_multiple", "rms_norm", "ssm_cfg"});
  const int64_t hidden_size = config.integer("hidden_size", 768);
  check_size(config, "hidden_size", hidden_size);
  const int64_t expand = config.integer("expand", 2);
  if (expand < 1 || expand > 1024)
    fail(ErrorKind::kInvalidArgument, "[config] {}: expand is {}", config.where(), expand);
  const int64_t automatic = (hidden_size + 15) / 16;
  const MambaConfig c = {
      .vocab_size = config.integer("vocab_size", 50280),
      .hidden_size = hidden_size,
      .state_size = config.integer("state_size", 16),
      .num_hidden_layers = config.integer("num_hidden_layers", 32),
      .inner_size = expand * hidden_size,
      .conv_kernel = config.integer("conv_kernel", 4),
      .time_step_rank = config.find_integer("time_step_rank", "auto").value_or(automatic),
      .hidden_act = config.text("hidden_act", "silu"),
      .layer_norm_epsilon = config.number("layer_norm_epsilon", 1e-5),
      .use_bias = config.boolean("use_bias", false),
      .use_conv_bias = config.boolean("use_conv_bias", true),
      .residual_in_fp32 = config.boolean("residual_in_fp32", true),
      .tie_word_embeddings = config.boolean("tie_word_embeddings", true)};
  check_size(config, "vocab_size", c.vocab_size);
  check_size(config, "state_size", c.state_size);
  check_size(config, "num_hidden_layers", c.num_hidden_layers);
  check_size(config, "conv_kernel", c.conv_kernel);
  check_size(config, "time_step_rank", c.time_step_rank);
  return c;
}

/// Zeros where there is no token.  mask [B, L, 1], or absent.
Tensor masked(Tensor x, Tensor mask) { return mask ? x * ir::cast(mask, x.dtype()) : x; }

Tensor mixer(Scope m, Tensor x, Tensor mask, const MambaConfig& c, const LayerState& s) {
  const int64_t inner = c.inner_size, rank = c.time_step_rank, n = c.state_size;
  const Tensor both = linear(m / "in_proj", masked(x, mask), 2 * inner, c.use_bias);
  const Tensor gate = ir::slice(both, 2, inner, 2 * inner);  // [B, L, D]
  Tensor h =
      causal_conv(m / "conv1d", ir::slice(both, 2, 0, inner), c.conv_kernel, c.use_conv_bias, s);
  h = masked(activate(c.hidden_act, h), mask);
  const Tensor chosen = linear(m / "x_proj", h, rank + 2 * n);
  const Tensor step = linear(m / "dt_proj", ir::slice(chosen, 2, 0, rank), inner, true);
  const Tensor a_log = ir::cast(m.param("A_log", {inner, n}), DType::kF32);
  Tensor y =
      selective_scan(m,
                     {.x = h,
                      .step = ir::activation(ir::ActivationKind::kSoftplus, step),
                      .a = ir::unary(ir::UnaryKind::kNeg, ir::unary(ir::UnaryKind::kExp, a_log)),
                      .b = ir::slice(chosen, 2, rank, rank + n),
                      .c = ir::slice(chosen, 2, rank + n, rank + 2 * n)},
                     s);  // f32
  y = y + ir::cast(h, DType::kF32) * ir::cast(m.param("D", {inner}), DType::kF32);
  y = y * ir::cast(activate("silu", gate), DType::kF32);
  return linear(m / "out_proj", ir::cast(y, x.dtype()), c.hidden_size, c.use_bias);
}

/// -> [B, L, hidden].
Tensor backbone(Scope m, const ModelInputs& in, const MambaConfig& c) {
  Tensor mask;
  if (in.attention_mask) mask = ir::unsqueeze(in.attention_mask, {2});
  Tensor x = embedding(m / "embeddings", in.input_ids, c.vocab_size, c.hidden_size);
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = m / "layers" / i;
    const Tensor y = rms_norm(layer / "norm", ir::cast(x, m.dtype()), c.layer_norm_epsilon);
    if (c.residual_in_fp32) x = ir::cast(x, DType::kF32);
    x = x + ir::cast(mixer(layer / "mixer", y, mask, c, {*in.cache, i}), x.dtype());
  }
  return rms_norm(m / "norm_f", ir::cast(x, m.dtype()), c.layer_norm_epsilon);
}

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  return {"transformers.models.mamba.modeling_mamba.MambaOutput",
          {{"last_hidden_state", backbone(m.base("backbone", false), in, read(config))}}};
}

ModelOutputs for_causal_lm(Scope m, const ModelInputs& in, const Config& config) {
  const MambaConfig c = read(config);
  const Scope body = m.base("backbone", true), head = m / "lm_head";
  if (c.tie_word_embeddings) head.tie("weight", body / "embeddings", "weight");
  const Tensor logits = linear(head, last_tokens(backbone(body, in, c), in), c.vocab_size);
  return {"transformers.models.mamba.modeling_mamba.MambaCausalLMOutput",
          {{"logits", ir::cast(logits, DType::kF32)}}};
}

}  // namespace

const Family& mamba() {
  static const Family family = {
      .model_type = "mamba",
      .architectures = {{"MambaForCausalLM", for_causal_lm, true}, {"MambaModel", model}},
      .optional_inputs = {"attention_mask"},
      .has_cache = true,
      .ignorable = {"lm_head."},
      .state_cache = "cache_params",
      .tiny_config =
          R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "state_size": 8, "num_hidden_layers": 2, "conv_kernel": 4, "time_step_rank": 4})"};
  return family;
}

}  // namespace tranship::models

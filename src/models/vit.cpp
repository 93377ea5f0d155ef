// ViT and its classifier, after transformers/models/vit/modeling_vit.py (5.23), with the names that
// checkpoints have: an encoder over the patches of an image, the norms before the blocks. Images of
// any height and width: as with interpolate_pos_encoding. B batch, P patches, D head_dim.
#include <cmath>

#include "models/families.h"
#include "nn/decoder.h"
#include "nn/image.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

struct VitConfig {
  int64_t hidden_size, num_hidden_layers, num_attention_heads, head_dim, intermediate_size;
  int64_t pooler_output_size, num_labels;
  PatchGrid grid;
  std::string hidden_act, pooler_act;
  double layer_norm_eps;
  bool qkv_bias;
};

VitConfig read(const Config& config) {
  ignore_common_keys(config);
  config.ignore({"encoder_stride"});
  const int64_t hidden_size = config.integer("hidden_size", 768);
  const int64_t num_heads = config.integer("num_attention_heads", 12);
  check_size(config, "hidden_size", hidden_size);
  check_size(config, "num_attention_heads", num_heads);
  const VitConfig c = {.hidden_size = hidden_size,
                       .num_hidden_layers = config.integer("num_hidden_layers", 12),
                       .num_attention_heads = num_heads,
                       .head_dim = config.integer("head_dim", hidden_size / num_heads),
                       .intermediate_size = config.integer("intermediate_size", 3072),
                       .pooler_output_size = config.integer("pooler_output_size", hidden_size),
                       .num_labels = read_num_labels(config),
                       .grid = read_patch_grid(config, 224, 16),
                       .hidden_act = config.text("hidden_act", "gelu"),
                       .pooler_act = config.text("pooler_act", "tanh"),
                       .layer_norm_eps = config.number("layer_norm_eps", 1e-12),
                       .qkv_bias = config.boolean("qkv_bias", true)};
  check_size(config, "num_hidden_layers", c.num_hidden_layers);
  check_size(config, "head_dim", c.head_dim);
  check_size(config, "intermediate_size", c.intermediate_size);
  check_size(config, "pooler_output_size", c.pooler_output_size);
  if (c.num_labels != 0) check_size(config, "num_labels", c.num_labels);  // 0: without a head
  return c;
}

Tensor embeddings(Scope m, Tensor pixels, const VitConfig& c) {
  const Dim batch = pixels.shape()[0], hidden = c.hidden_size;
  Tensor x = patches(m / "patch_embeddings" / "projection", pixels, c.hidden_size, c.grid);
  const Dim rows = x.shape()[2], columns = x.shape()[3];
  x = ir::transpose(ir::reshape(x, {batch, hidden, rows * columns}), {0, 2, 1});  // [B, P, hidden]
  const Tensor first = ir::expand(m.param("cls_token", {1, 1, hidden}), {batch, 1, hidden});
  x = ir::concat({first, x}, 1);
  const Tensor table =
      m.param("position_embeddings", {1, c.grid.rows * c.grid.columns + 1, hidden});
  return x + resized_positions(table, c.grid, rows, columns);
}

Tensor layer(Scope m, Tensor x, const VitConfig& c) {
  const Scope self = m / "attention" / "attention";
  Tensor y = layer_norm(m / "layernorm_before", x, c.layer_norm_eps);
  const Tensor q = heads(self / "query", y, c.num_attention_heads, c.head_dim, c.qkv_bias);
  const Tensor k = heads(self / "key", y, c.num_attention_heads, c.head_dim, c.qkv_bias);
  const Tensor v = heads(self / "value", y, c.num_attention_heads, c.head_dim, c.qkv_bias);
  y = merge_heads(attention(self, q, k, v, {.scale = 1 / std::sqrt(double(c.head_dim))}));
  x = x + linear(m / "attention" / "output" / "dense", y, c.hidden_size, true);
  y = layer_norm(m / "layernorm_after", x, c.layer_norm_eps);
  y = activate(c.hidden_act, linear(m / "intermediate" / "dense", y, c.intermediate_size, true));
  return x + linear(m / "output" / "dense", y, c.hidden_size, true);
}

/// -> [B, 1 + P, hidden].
Tensor encoder(Scope m, const ModelInputs& in, const VitConfig& c) {
  Tensor x = embeddings(m / "embeddings", in.features, c);
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) x = layer(m / "encoder" / "layer" / i, x, c);
  return layer_norm(m / "layernorm", x, c.layer_norm_eps);
}

Tensor class_state(Tensor x) { return ir::squeeze(ir::slice(x, 1, 0, 1), {1}); }

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  const VitConfig c = read(config);
  const Scope vit = m.base("vit", false);
  const Tensor x = encoder(vit, in, c);
  ModelOutputs out = {"BaseModelOutputWithPooling", {{"last_hidden_state", x}}};
  const Scope dense = vit / "pooler" / "dense";
  if (dense.has("weight", true))
    out.values.emplace_back(
        "pooler_output",
        activate(c.pooler_act, linear(dense, class_state(x), c.pooler_output_size, true)));
  return out;
}

ModelOutputs for_image_classification(Scope m, const ModelInputs& in, const Config& config) {
  const VitConfig c = read(config);
  const Tensor x = class_state(encoder(m.base("vit", true), in, c));
  return {"ImageClassifierOutput", {{"logits", linear(m / "classifier", x, c.num_labels, true)}}};
}

}  // namespace

const Family& vit() {
  static const Family family = {
      .model_type = "vit",
      .architectures = {{"ViTModel", model},
                        {"ViTForImageClassification", for_image_classification}},
      .optional_inputs = {},
      .has_cache = false,
      .ignorable = {"classifier.", "pooler.", "vit.pooler.", "decoder.", ".mask_token"},
      .main_input = [](const Config& config) { return pixel_values(read(config).grid); },
      .tiny_config =
          R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32, "patch_size": 8})"};
  return family;
}

}  // namespace tranship::models

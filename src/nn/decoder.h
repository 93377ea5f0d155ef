// What decoder-only models share: the configuration's common fields, a step of the layer stack,
// heads.
#pragma once

#include <map>

#include "nn/model.h"
#include "nn/rope.h"

namespace tranship::nn {

/// Transformers' names. Only what most decoders share: at most 25 fields.
/// As a family's defaults: what its configuration class has for absent keys.
struct DecoderConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 4096;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 32;
  int64_t num_attention_heads = 32;
  int64_t num_key_value_heads = 0;  // as a default, 0: num_attention_heads
  int64_t head_dim = 0;             // as a default, 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings = 0;
  std::string hidden_act = "silu";
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  std::vector<std::string> layer_types = {};  // one a layer: full_attention or sliding_attention
  int64_t sliding_window = 0;                 // of the sliding layers; 0: none slides
  std::map<std::string, RopeParameters> rope = {};  // by layer type
  std::optional<int64_t> pad_token_id = {};
  int64_t num_labels = 2;
};

/// Whether `sliding_window` holds at all, and from which layer on, where the config has no
/// layer_types.
struct SlidingLayers {
  bool enabled = true;
  int64_t first = 0;
};

/// Reads the shared fields, and knows the keys that do not change what is computed.
/// Errors: those of Config; invalid_argument for sizes that make no sense.
DecoderConfig read_decoder_config(const Config& config, const DecoderConfig& defaults,
                                  SlidingLayers sliding = {});
/// Keys of every configuration that say nothing about the maths, and those that may only say what
/// the model is anyway. Errors: unsupported if one says something else.
void ignore_common_keys(const Config& config, bool is_encoder_decoder = false);
/// What a graph is made of must have a size that one can make a graph of.
/// Errors: invalid_argument unless `value`, which the key has, is positive and at most 2^31 - 1, or
/// 10 000 for keys that end with "layers" and 65 536 for head_dim.
void check_size(const Config& config, std::string_view key, int64_t value);
/// The size that the key has, or `absent`, checked.
int64_t read_size(const Config& config, std::string_view key, int64_t absent);
/// num_labels, or the length of id2label, or 2.
int64_t read_num_labels(const Config& config);

/// The places of `length` new tokens among all, i64 [S].
Tensor places(ir::Graph& g, const ModelInputs& in, const Dim& length);

/// Which keys of its own the queries of a decoder's layer see.
class Visibility {
 public:
  /// attention_mask: of the decoder's tokens, as ModelInputs has it; may be absent.
  Visibility(ir::Graph& g, const ModelInputs& in, Tensor attention_mask, const Dim& length);

  /// window: 0 if the layer has none.
  AttentionOptions options(int64_t window = 0) const;
  /// Adds `bias` [1, H, S, T] to the scores of what is seen.
  AttentionOptions with_bias(Tensor bias) const;

 private:
  Tensor seen_slots(int64_t window) const;

  Dim num_slots_;
  Tensor key_mask_, slots_, queries_, seen_;
};

/// What a layer needs to know of the call.
struct Step {
  const Rotary& rotary;
  Cache& cache;
  int64_t layer;
  AttentionOptions attention;  // causal, this layer's window, the padding
};

/// Keys and values go through the cache; causal; the layer's window and the padding hold.
Tensor attend(Scope m, Tensor q, Tensor k, Tensor v, const Step& s, double scale);

/// Calls layer(m / i, x, step) for each layer in order.  x [B, S, hidden].
Tensor each_layer(Scope m, Tensor x, const DecoderConfig& c, const ModelInputs& in,
                  const std::function<Tensor(Scope, Tensor, const Step&)>& layer);

/// A stack of layers with its embedding and last norm: input -> hidden states [B, S, hidden].
using Backbone = std::function<Tensor(Scope model, const ModelInputs& in)>;

/// The three classes that Transformers makes of a backbone. `m` is the root of the checkpoint's
/// names; the backbone's names stand below "model".
ModelOutputs base_model(Scope m, const ModelInputs& in, const Backbone& backbone);
ModelOutputs causal_lm(Scope m, const ModelInputs& in, const DecoderConfig& c,
                       const Backbone& backbone);
/// Logits of the last token that is not padding. Source: modeling_layers.py
/// GenericForSequenceClassification (5.23).
ModelOutputs sequence_classification(Scope m, const ModelInputs& in, const DecoderConfig& c,
                                     const Backbone& backbone);

}  // namespace tranship::nn

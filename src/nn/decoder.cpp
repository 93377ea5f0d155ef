#include "nn/decoder.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ir/decompose.h"
#include "nn/last_token.h"

namespace tranship::nn {

namespace {

/// Keys of config.json that say nothing about the maths: names, ids, training, defaults of
/// generate().
constexpr std::string_view kIrrelevantKeys = R"(
    architectures model_type torch_dtype dtype transformers_version _name_or_path
    _attn_implementation _attn_implementation_autoset auto_map bos_token_id eos_token_id
    pad_token_id sep_token_id cls_token_id unk_token_id mask_token_id decoder_start_token_id
    use_cache initializer_range initializer_factor attention_dropout
    attention_probs_dropout_prob hidden_dropout hidden_dropout_prob classifier_dropout
    gradient_checkpointing id2label label2id num_labels problem_type task_specific_params
    finetuning_task tokenizer_class prefix torchscript use_bfloat16 return_dict
     language license unsloth_version unsloth_fixed
    transformers.js_config chunk_size_feed_forward tf_legacy_loss is_llama_config max_length
    min_length max_new_tokens do_sample temperature top_k top_p repetition_penalty num_beams
    bad_words_ids suppress_tokens begin_suppress_tokens forced_bos_token_id forced_eos_token_id
    no_repeat_ngram_size encoder_no_repeat_ngram_size num_beam_groups diversity_penalty
    length_penalty typical_p early_stopping num_return_sequences output_scores
    return_dict_in_generate remove_invalid_values exponential_decay_length_penalty
    cross_attention_hidden_size dropout activation_dropout encoder_layerdrop decoder_layerdrop
    init_std apply_spec_augment mask_time_prob mask_time_length mask_time_min_masks
    mask_feature_prob mask_feature_length mask_feature_min_masks forced_decoder_ids
)";

}  // namespace

void ignore_common_keys(const Config& config, bool is_encoder_decoder) {
  constexpr std::string_view kSpace = " \n";
  for (std::string_view rest = kIrrelevantKeys; rest.find_first_not_of(kSpace) != rest.npos;) {
    rest.remove_prefix(rest.find_first_not_of(kSpace));
    config.ignore({rest.substr(0, rest.find_first_of(kSpace))});
    rest.remove_prefix(rest.find_first_of(kSpace));
  }
  config.require("output_attentions", false);
  config.require("output_hidden_states", false);
  config.require("is_encoder_decoder", is_encoder_decoder);
  config.require("is_decoder", false);
  config.require("add_cross_attention", false);
  config.require("tie_encoder_decoder", false);
  config.require("rope_interleaved", false);
  config.require("pretraining_tp", int64_t{1});
  if (config.has("pruned_heads") && !config.find_object("pruned_heads")->keys().empty()) {
    fail(ErrorKind::kUnsupported, "[config] {}: pruned_heads is not empty; heads cannot be pruned",
         config.where());
  }
}

void check_size(const Config& config, std::string_view key, int64_t value) {
  int64_t most = std::numeric_limits<int32_t>::max();
  if (key.ends_with("layers")) most = 10'000;
  if (key == "head_dim") most = 65'536;
  if (value >= 1 && value <= most) return;
  fail(ErrorKind::kInvalidArgument, "[config] {}: {} is {}, expected a number from 1 to {}",
       config.where(), key, value, most);
}

int64_t read_size(const Config& config, std::string_view key, int64_t absent) {
  const int64_t size = config.integer(key, absent);
  check_size(config, key, size);
  return size;
}

int64_t read_num_labels(const Config& config) {
  if (const auto count = config.find_integer("num_labels")) return *count;
  const auto labels = config.find_object("id2label");
  return labels ? static_cast<int64_t>(labels->keys().size()) : 2;
}

namespace {

void check_sizes(const Config& config, const DecoderConfig& c) {
  check_size(config, "vocab_size", c.vocab_size);
  check_size(config, "hidden_size", c.hidden_size);
  check_size(config, "intermediate_size", c.intermediate_size);
  check_size(config, "num_hidden_layers", c.num_hidden_layers);
  check_size(config, "num_attention_heads", c.num_attention_heads);
  check_size(config, "num_key_value_heads", c.num_key_value_heads);
  check_size(config, "head_dim", c.head_dim);
  if (c.num_labels != 0) check_size(config, "num_labels", c.num_labels);  // 0: without a head
  if (c.num_attention_heads % c.num_key_value_heads != 0) {
    fail(ErrorKind::kInvalidArgument,
         "[config] {}: num_attention_heads {} is not a multiple of num_key_value_heads {}",
         config.where(), c.num_attention_heads, c.num_key_value_heads);
  }
  if (c.head_dim % 2 != 0)
    fail(ErrorKind::kInvalidArgument, "[config] {}: head_dim {} is odd", config.where(),
         c.head_dim);
}

void read_layer_types(const Config& config, int64_t first_sliding_layer, DecoderConfig& c) {
  c.layer_types = config.texts("layer_types");
  if (c.layer_types.empty()) {
    for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
      c.layer_types.push_back(c.sliding_window > 0 && i >= first_sliding_layer ? "sliding_attention"
                                                                               : "full_attention");
    }
  }
  if (static_cast<int64_t>(c.layer_types.size()) < c.num_hidden_layers) {
    fail(ErrorKind::kCorrupt, "[config] {}: layer_types names {} layers of {}", config.where(),
         c.layer_types.size(), c.num_hidden_layers);
  }
  for (const std::string& type : c.layer_types) {
    if (type != "full_attention" && type != "sliding_attention") {
      fail(ErrorKind::kUnsupported,
           "[config] {}: layer_types has '{}'; known are full_attention and sliding_attention",
           config.where(), type);
    }
    if (type == "sliding_attention" && c.sliding_window < 1) {
      fail(ErrorKind::kInvalidArgument,
           "[config] {}: a layer is sliding_attention, but sliding_window is {}", config.where(),
           c.sliding_window);
    }
    c.rope.try_emplace(type, read_rope_parameters(config, type, c.max_position_embeddings));
  }
}

}  // namespace

DecoderConfig read_decoder_config(const Config& config, const DecoderConfig& defaults,
                                  SlidingLayers sliding) {
  ignore_common_keys(config);
  DecoderConfig c = defaults;
  c.vocab_size = config.integer("vocab_size", defaults.vocab_size);
  c.hidden_size = config.integer("hidden_size", defaults.hidden_size);
  c.intermediate_size = config.integer("intermediate_size", defaults.intermediate_size);
  c.num_hidden_layers = config.integer("num_hidden_layers", defaults.num_hidden_layers);
  c.num_attention_heads = config.integer("num_attention_heads", defaults.num_attention_heads);
  const bool own_keys = config.is_null("num_key_value_heads") || defaults.num_key_value_heads == 0;
  c.num_key_value_heads = config.integer(
      "num_key_value_heads", own_keys ? c.num_attention_heads : defaults.num_key_value_heads);
  const bool even_share = config.is_null("head_dim") || defaults.head_dim == 0;
  const int64_t share = c.num_attention_heads > 0 ? c.hidden_size / c.num_attention_heads : 0;
  c.head_dim = config.integer("head_dim", even_share ? share : defaults.head_dim);
  c.max_position_embeddings =
      config.integer("max_position_embeddings", defaults.max_position_embeddings);
  c.hidden_act = config.text("hidden_act", defaults.hidden_act);
  c.rms_norm_eps = config.number("rms_norm_eps", defaults.rms_norm_eps);
  c.tie_word_embeddings = config.boolean("tie_word_embeddings", defaults.tie_word_embeddings);
  c.sliding_window = config.is_null("sliding_window")
                         ? 0
                         : config.integer("sliding_window", defaults.sliding_window);
  if (!sliding.enabled) c.sliding_window = 0;
  if (sliding.enabled && config.has("sliding_window") && c.sliding_window < 1) {
    fail(ErrorKind::kInvalidArgument,
         "[config] {}: sliding_window is {}, expected a positive number, or null for none",
         config.where(), c.sliding_window);
  }
  c.pad_token_id = config.find_integer("pad_token_id");
  constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();
  if (c.pad_token_id && (*c.pad_token_id < -kMaxId || *c.pad_token_id > kMaxId)) {
    fail(ErrorKind::kInvalidArgument, "[config] {}: pad_token_id is {}, expected at most {}",
         config.where(), *c.pad_token_id, kMaxId);
  }
  c.num_labels = read_num_labels(config);
  check_sizes(config, c);
  read_layer_types(config, sliding.first, c);
  return c;
}

Tensor attend(Scope m, Tensor q, Tensor k, Tensor v, const Step& s, double scale) {
  const KeyValue all = s.cache.update(s.layer, k, v);
  AttentionOptions options = s.attention;
  options.scale = scale;
  return attention(m, q, all.keys, all.values, options);
}

Tensor places(ir::Graph& g, const ModelInputs& in, const Dim& length) {
  const Tensor first = in.cache->first_slot();
  return ir::iota(g, length) + (first ? first : ir::dim_to_tensor(g, in.past));
}

Visibility::Visibility(ir::Graph& g, const ModelInputs& in, Tensor attention_mask,
                       const Dim& length)
    : num_slots_(0) {
  if (!in.cache->first_slot()) {
    key_mask_ = key_mask_of(attention_mask);
    return;
  }
  num_slots_ = in.cache->num_slots();
  slots_ = ir::iota(g, num_slots_);
  queries_ = ir::unsqueeze(places(g, in, length), {1});
  seen_ = attention_mask;
  if (!seen_) {
    seen_ = ir::compare(ir::CompareKind::kLessEqual, slots_, queries_);
  } else if (!(seen_.shape()[3] == num_slots_)) {
    seen_ = ir::slice(seen_, 3, 0, num_slots_);
  }
}

AttentionOptions Visibility::options(int64_t window) const {
  AttentionOptions options;
  if (slots_) {
    options.bias = seen_slots(window);
  } else {
    options.causal = true;
    options.key_mask = key_mask_;
    if (window > 0) options.window = window;
  }
  return options;
}

AttentionOptions Visibility::with_bias(Tensor bias) const {
  AttentionOptions options = this->options();
  if (options.bias) {  // of slots: a query sees its own, so one at least that is not hidden
    const Tensor hidden = ir::scalar(bias.graph(), bias.dtype(), ir::lowest(bias.dtype()));
    bias = ir::where(options.bias, bias, hidden);
  }
  options.bias = bias;
  return options;
}

/// bool, broadcasting to [B, 1, S, slots]. The mask says what is there; without one, all up to
/// the query's own slot is.
Tensor Visibility::seen_slots(int64_t window) const {
  if (window == 0) return seen_;
  const Tensor oldest = queries_ - static_cast<double>(window);
  return ir::logical_and(seen_, ir::compare(ir::CompareKind::kGreater, slots_, oldest));
}

Tensor each_layer(Scope m, Tensor x, const DecoderConfig& c, const ModelInputs& in,
                  const std::function<Tensor(Scope, Tensor, const Step&)>& layer) {
  ir::Graph& g = m.graph();
  const Dim length = in.input_ids.shape()[1];
  Tensor positions = in.position_ids;
  if (!positions) positions = ir::unsqueeze(places(g, in, length), {0});
  std::map<std::string, Rotary> tables;
  for (const auto& [type, rope] : c.rope)
    tables.emplace(type, rotary(rope, positions, c.head_dim, c.max_position_embeddings, m.dtype()));
  const Visibility visibility(g, in, in.attention_mask, length);
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::string& type = c.layer_types[static_cast<size_t>(i)];
    const int64_t window = type == "sliding_attention" ? c.sliding_window : 0;
    x = layer(m / i, x, Step{tables.at(type), *in.cache, i, visibility.options(window)});
  }
  return x;
}

ModelOutputs base_model(Scope m, const ModelInputs& in, const Backbone& backbone) {
  return {"BaseModelOutputWithPast", {{"last_hidden_state", backbone(m.base("model", false), in)}}};
}

ModelOutputs causal_lm(Scope m, const ModelInputs& in, const DecoderConfig& c,
                       const Backbone& backbone) {
  const Scope model = m.base("model", true), head = m / "lm_head";
  if (c.tie_word_embeddings) head.tie("weight", model / "embed_tokens", "weight");
  const Tensor x = last_tokens(backbone(model, in), in);
  return {"CausalLMOutputWithPast", {{"logits", linear(head, x, c.vocab_size)}}};
}

ModelOutputs sequence_classification(Scope m, const ModelInputs& in, const DecoderConfig& c,
                                     const Backbone& backbone) {
  ir::Graph& g = m.graph();
  const Tensor scores =
      linear(m / "score", backbone(m.base("model", true), in), c.num_labels);  // [B, S, labels]
  const Dim batch = in.input_ids.shape()[0], length = in.input_ids.shape()[1];
  Tensor last;  // i64 [B, 1, 1]
  if (c.pad_token_id) {
    const Tensor is_token =
        ir::compare(ir::CompareKind::kNotEqual, in.input_ids,
                    ir::scalar(g, DType::kI64, static_cast<double>(*c.pad_token_id)));
    const Tensor rank = ir::iota(g, length) * ir::cast(is_token, DType::kI64);
    last = ir::unsqueeze(ir::argmax(rank, -1), {1, 2});
  } else {
    g.assume(batch, 1);  // as in Transformers: without a padding token there is one row
    last = ir::expand(ir::dim_to_tensor(g, length - 1), {batch, 1, 1});
  }
  const Tensor pooled = ir::gather_elements(scores, ir::expand(last, {batch, 1, c.num_labels}), 1);
  return {"SequenceClassifierOutputWithPast", {{"logits", ir::squeeze(pooled, {1})}}};
}

}  // namespace tranship::nn

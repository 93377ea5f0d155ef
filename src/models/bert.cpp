// BERT with its heads, after transformers/models/bert/modeling_bert.py (5.23): an encoder with
// learned absolute positions and the norms after the residual sums. B batch, S sequence, D
// head_dim.
#include <cmath>

#include "base/error.h"
#include "models/families.h"
#include "nn/decoder.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

struct BertConfig {
  int64_t vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size;
  int64_t max_position_embeddings, type_vocab_size, num_labels;
  std::string hidden_act;
  double layer_norm_eps;
  bool tie_word_embeddings;
};

BertConfig read(const Config& config) {
  ignore_common_keys(config);
  config.ignore({"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type", "directionality"});
  config.require("position_embedding_type", "absolute");
  const BertConfig c = {.vocab_size = config.integer("vocab_size", 30522),
                        .hidden_size = config.integer("hidden_size", 768),
                        .num_hidden_layers = config.integer("num_hidden_layers", 12),
                        .num_attention_heads = config.integer("num_attention_heads", 12),
                        .intermediate_size = config.integer("intermediate_size", 3072),
                        .max_position_embeddings = config.integer("max_position_embeddings", 512),
                        .type_vocab_size = config.integer("type_vocab_size", 2),
                        .num_labels = read_num_labels(config),
                        .hidden_act = config.text("hidden_act", "gelu"),
                        .layer_norm_eps = config.number("layer_norm_eps", 1e-12),
                        .tie_word_embeddings = config.boolean("tie_word_embeddings", true)};
  check_size(config, "vocab_size", c.vocab_size);
  check_size(config, "hidden_size", c.hidden_size);
  check_size(config, "num_hidden_layers", c.num_hidden_layers);
  check_size(config, "num_attention_heads", c.num_attention_heads);
  check_size(config, "intermediate_size", c.intermediate_size);
  check_size(config, "max_position_embeddings", c.max_position_embeddings);
  check_size(config, "type_vocab_size", c.type_vocab_size);
  if (c.num_labels != 0) check_size(config, "num_labels", c.num_labels);  // 0: without a head
  if (c.hidden_size % c.num_attention_heads != 0) {
    fail(ErrorKind::kInvalidArgument,
         "[config] {}: hidden_size {} is not a multiple of num_attention_heads {}", config.where(),
         c.hidden_size, c.num_attention_heads);
  }
  return c;
}

Tensor embeddings(Scope m, const ModelInputs& in, const BertConfig& c) {
  ir::Graph& g = m.graph();
  const Dim length = in.input_ids.shape()[1];
  if (const auto symbol = length.as_symbol())  // the table of positions is as long as it is
    g.set_range(*symbol, {.min = 1, .max = c.max_position_embeddings});
  const Tensor positions =
      in.position_ids ? in.position_ids : ir::unsqueeze(ir::iota(g, length), {0});  // [B or 1, S]
  const Tensor types =
      in.token_type_ids ? in.token_type_ids : ir::full(g, DType::kI64, 0, {1, length});
  Tensor x = embedding(m / "word_embeddings", in.input_ids, c.vocab_size, c.hidden_size);
  x = x + embedding(m / "token_type_embeddings", types, c.type_vocab_size, c.hidden_size);
  x = x + embedding(m / "position_embeddings", positions, c.max_position_embeddings, c.hidden_size);
  return layer_norm(m / "LayerNorm", x, c.layer_norm_eps);
}

/// dense, residual sum, norm: how both halves of a layer end.
Tensor output(Scope m, Tensor y, Tensor residual, const BertConfig& c) {
  return layer_norm(m / "LayerNorm", linear(m / "dense", y, c.hidden_size, true) + residual,
                    c.layer_norm_eps);
}

Tensor layer(Scope m, Tensor x, const BertConfig& c, const AttentionOptions& options) {
  const Scope self = m / "attention" / "self";
  const int64_t head_dim = c.hidden_size / c.num_attention_heads;
  const Tensor q = heads(self / "query", x, c.num_attention_heads, head_dim, true);  // [B, H, S, D]
  const Tensor k = heads(self / "key", x, c.num_attention_heads, head_dim, true);
  const Tensor v = heads(self / "value", x, c.num_attention_heads, head_dim, true);
  x = output(m / "attention" / "output", merge_heads(attention(self, q, k, v, options)), x, c);
  const Tensor y =
      activate(c.hidden_act, linear(m / "intermediate" / "dense", x, c.intermediate_size, true));
  return output(m / "output", y, x, c);
}

/// -> hidden states [B, S, hidden].
Tensor encoder(Scope m, const ModelInputs& in, const BertConfig& c) {
  Tensor x = embeddings(m / "embeddings", in, c);
  const AttentionOptions options = {
      .scale = 1 / std::sqrt(double(c.hidden_size / c.num_attention_heads)),
      .key_mask = key_mask_of(in.attention_mask)};
  for (int64_t i = 0; i < c.num_hidden_layers; ++i)
    x = layer(m / "encoder" / "layer" / i, x, c, options);
  return x;
}

/// The first token's state, through a dense layer and tanh: [B, hidden].
Tensor pooler(Scope m, Tensor x, const BertConfig& c) {
  const Tensor first = ir::squeeze(ir::slice(x, 1, 0, 1), {1});
  return ir::unary(ir::UnaryKind::kTanh, linear(m / "dense", first, c.hidden_size, true));
}

ModelOutputs model(Scope m, const ModelInputs& in, const Config& config) {
  const BertConfig c = read(config);
  const Scope bert = m.base("bert", false);
  const Tensor x = encoder(bert, in, c);
  ModelOutputs out = {"BaseModelOutputWithPoolingAndCrossAttentions", {{"last_hidden_state", x}}};
  if ((bert / "pooler" / "dense").has("weight", true))
    out.values.emplace_back("pooler_output", pooler(bert / "pooler", x, c));
  return out;
}

ModelOutputs for_masked_lm(Scope m, const ModelInputs& in, const Config& config) {
  const BertConfig c = read(config);
  const Scope bert = m.base("bert", true), head = m / "cls" / "predictions";
  if (c.tie_word_embeddings) {
    (head / "decoder").tie("weight", bert / "embeddings" / "word_embeddings", "weight");
    (head / "decoder").tie("bias", head, "bias");
  }
  Tensor x = activate(c.hidden_act, linear(head / "transform" / "dense", encoder(bert, in, c),
                                           c.hidden_size, true));
  x = layer_norm(head / "transform" / "LayerNorm", x, c.layer_norm_eps);
  return {"MaskedLMOutput", {{"logits", linear(head / "decoder", x, c.vocab_size, true)}}};
}

ModelOutputs for_sequence_classification(Scope m, const ModelInputs& in, const Config& config) {
  const BertConfig c = read(config);
  const Scope bert = m.base("bert", true);
  const Tensor pooled = pooler(bert / "pooler", encoder(bert, in, c), c);
  return {"SequenceClassifierOutput",
          {{"logits", linear(m / "classifier", pooled, c.num_labels, true)}}};
}

ModelOutputs for_token_classification(Scope m, const ModelInputs& in, const Config& config) {
  const BertConfig c = read(config);
  return {"TokenClassifierOutput",
          {{"logits",
            linear(m / "classifier", encoder(m.base("bert", true), in, c), c.num_labels, true)}}};
}

ModelOutputs for_question_answering(Scope m, const ModelInputs& in, const Config& config) {
  const BertConfig c = read(config);
  const Tensor spans = linear(m / "qa_outputs", encoder(m.base("bert", true), in, c), c.num_labels,
                              true);  // [B, S, 2]
  if (c.num_labels != 2) {
    fail(ErrorKind::kInvalidArgument,
         "[config] {}: BertForQuestionAnswering needs 2 labels, found {}", config.where(),
         c.num_labels);
  }
  return {"QuestionAnsweringModelOutput",
          {{"start_logits", ir::squeeze(ir::slice(spans, 2, 0, 1), {2})},
           {"end_logits", ir::squeeze(ir::slice(spans, 2, 1, 2), {2})}}};
}

}  // namespace

const Family& bert() {
  static const Family family = {
      .model_type = "bert",
      .architectures = {{"BertModel", model},
                        {"BertForMaskedLM", for_masked_lm},
                        {"BertForSequenceClassification", for_sequence_classification},
                        {"BertForTokenClassification", for_token_classification},
                        {"BertForQuestionAnswering", for_question_answering}},
      .optional_inputs = {"attention_mask", "token_type_ids", "position_ids"},
      .has_cache = false,
      .ignorable = {"cls.", "classifier.", "qa_outputs.", "pooler.", "bert.pooler.",
                    ".position_ids"},
      .tiny_config =
          R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64})"};
  return family;
}

}  // namespace tranship::models

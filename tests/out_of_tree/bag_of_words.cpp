// A model that tranship does not know, added from outside: this file and nothing else
// (docs/extending.md). The mean of a text's embeddings, and a linear classifier on it.
#include "models/families.h"
#include "nn/decoder.h"

namespace tranship::models {
namespace {

using namespace nn;  // NOLINT: a definition is written in nn's words

ModelOutputs for_sequence_classification(Scope m, const ModelInputs& in, const Config& config) {
  ignore_common_keys(config);
  const int64_t vocab_size = config.integer("vocab_size"),
                hidden_size = config.integer("hidden_size");
  const Tensor x =
      embedding(m / "embed_tokens", in.input_ids, vocab_size, hidden_size);        // [B, S, hidden]
  const Tensor mask = ir::unsqueeze(ir::cast(in.attention_mask, m.dtype()), {2});  // [B, S, 1]
  const Tensor sum = ir::reduce(ir::ReduceKind::kSum, x * mask, {1}, false);       // [B, hidden]
  const Tensor mean = sum / ir::reduce(ir::ReduceKind::kSum, mask, {1}, false);
  return {"SequenceClassifierOutput",
          {{"logits", linear(m / "classifier", mean, read_num_labels(config), true)}}};
}

}  // namespace

const Family& bag_of_words() {
  static const Family family = {
      .model_type = "bag_of_words",
      .architectures = {{"BagOfWordsForSequenceClassification", for_sequence_classification}},
      .optional_inputs = {"attention_mask"},
      .has_cache = false,
      .ignorable = {},
      .tiny_config =
          R"({"model_type": "bag_of_words", "architectures": ["BagOfWordsForSequenceClassification"],
        "vocab_size": 20, "hidden_size": 8})"};
  return family;
}

}  // namespace tranship::models

// What tasks hand to a model, what a model gives back, and how a family of models introduces
// itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/config.h"
#include "nn/attention.h"

namespace tranship::nn {

/// Absent tensors: the graph has no such input, and the model's own default holds.
struct ModelInputs {
  Tensor input_ids;  // i64 [B, S]; absent where there are features
  Tensor features;   // what Family::main_input says, of the weights' dtype
  /// i64 [B, past + S]: 0 where there is no token; beside a decoder: [B, S]. With a cache of slots:
  /// bool [B, 1, S, slots]: which slots a query sees.
  Tensor attention_mask;
  Tensor token_type_ids;  // i64 [B, S]
  Tensor position_ids;    // i64 [B, S]
  // Of an encoder-decoder, whose encoder has the inputs above.
  Tensor decoder_input_ids;       // i64 [B, S']
  Tensor decoder_attention_mask;  // i64 [B, past + S'], or of slots as above
  Tensor encoder_hidden_states;   // [B, S, hidden]: what the encoder gave; absent: it is to be run

  Dim past = 0;                    // cached tokens before input_ids, or before decoder_input_ids
  Cache* cache = nullptr;          // decoders only
  bool last_token_logits = false;  // logits [B, 1, vocab], of each row's last token alone
};

/// In the order of the ModelOutput's fields; the cache, which stands between the two lists, is
/// added by the task.
struct ModelOutputs {
  std::string_view output_class;  // Transformers' name: "CausalLMOutputWithPast"
  std::vector<std::pair<std::string, Tensor>> values;
  std::vector<std::pair<std::string, Tensor>> after_cache = {};
};

/// A model: a function of a module's scope, inputs and configuration.
using Forward = ModelOutputs (*)(Scope m, const ModelInputs& in, const Config& config);

/// A class of Transformers.
struct Architecture {
  std::string_view name;  // "LlamaForCausalLM"
  Forward forward;
  bool generates = false;  // has prefill and decode
  /// Of an encoder-decoder: the encoder alone, which gives last_hidden_state.
  Forward encoder = nullptr;
  /// Besides the family's.
  std::vector<std::string_view> ignorable = {};
};

/// What a model takes that does not read text.
struct MainInput {
  std::string_view name;  // "input_features"
  Shape shape;            // with the symbol batch
};

/// What the file models/<model_type>.cpp defines.
struct Family {
  std::string_view model_type;
  std::vector<Architecture> architectures;  // the first is the default
  /// Inputs besides input_ids that a forward can take, in the order of Transformers' signature.
  /// Those of decoders beside an encoder begin with "decoder_"; decoder_input_ids is always there.
  std::vector<std::string_view> optional_inputs;
  bool has_cache = false;  // a decoder: forward gives past_key_values
  /// Tensors that a checkpoint may hold and a definition may leave: names, or "prefix." and
  /// ".suffix" parts.
  std::vector<std::string_view> ignorable;
  /// Instead of input_ids, for models of sound or images.
  MainInput (*main_input)(const Config& config) = nullptr;
  /// The name of a cache of states that do not grow ("cache_params"), for models without another
  /// one: their decode takes no attention_mask. Empty: the cache is what the exporter calls it.
  std::string_view state_cache = {};
  /// A small configuration for tests, as config.json text.
  std::string_view tiny_config;
};

}  // namespace tranship::nn

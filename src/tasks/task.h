// What a program takes and returns: a task makes a model's graphs, their inputs, outputs and
// caches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_data.h"
#include "ir/program.h"
#include "models/families.h"
#include "tranship/sink.h"

namespace tranship::tasks {

struct TaskOptions {
  DType dtype = DType::kF32;      // of weights and activations
  std::string architecture = {};  // a class of Transformers; empty: config.json's architectures[0],
                                  // else the family's first
  /// Optional inputs that the graphs take. In the model's order, whatever the order here. Absent:
  /// attention_mask, if the model takes one.
  std::optional<std::vector<std::string>> graph_inputs = {};
  /// What inputs and outputs of caches begin with: Transformers 5.23 says past_key_values, newer
  /// ones cache.
  std::string cache_name = "past_key_values";
  /// generation(): a cache of so many slots in place of one that grows ("static").
  std::optional<int64_t> max_cache_len = {};
  /// generation(): decode takes any number of tokens, as prefill does, and not one alone.
  bool multi_token_decode = false;
  /// generation(): logits [batch, 1, vocab], of each row's last token alone, and not of all.
  bool last_token_logits = false;
  /// Keys of config.json that may go unread (the caller takes the blame).
  std::vector<std::string> ignored_config_keys = {};
};

/// How a component looks to Transformers: what its loader needs to know.
struct Signature {
  std::string output_class;         // "CausalLMOutputWithPast"
  std::vector<std::string> fields;  // of the output, in order: "logits", "past_key_values"
  std::vector<std::string>
      arguments;      // of forward, in order: "input_ids", "attention_mask", "past_key_values"
  std::string cache;  // the field that is a cache; in decode, the argument too
  int64_t num_cache_layers = 0;  // 0: no cache
  int64_t conv_kernel_size = 0;  // over 0: a layer's cache is a window of that size and a state
  int64_t max_cache_len = 0;  // over 0: a layer's cache is a buffer of so many slots and a counter
  int64_t num_cross_layers = 0;  // of the encoder's keys and values; 0: there are none
  bool last_token_logits = false;
  /// Of the argument encoder_outputs, where there is one: "BaseModelOutput".
  std::string encoder_output_class;
};

struct TaskProgram {
  std::string model_type;
  std::string architecture;
  ir::Program program;
  std::vector<Signature> signatures;  // one a component
  /// Sizes that axes have unless somebody says otherwise: cache_length, the slots of a cache.
  std::map<std::string, int64_t> sizes = {};
};

/// What model(**inputs) computes: one component "model". A decoder gives its cache too, unless
/// use_cache is false. The axes are batch, sequence, and decoder_sequence beside an encoder.
/// Errors: unsupported for an unknown model_type or architecture, or unknown config keys; corrupt
/// for missing tensors and other shapes; invalid_argument for tensors that nobody asked for. All of
/// a kind at once.
TaskProgram forward(const CheckpointData& checkpoint, const TaskOptions& options,
                    const Sink& sink = {});

/// Components "prefill" (the prompt; gives the cache) and "decode" (one token, with a growing cache
/// in and out). With max_cache_len the cache has slots (its axis is cache_length), and the mask is
/// bool [batch, 1, queries, slots]: which slots each query sees (of an encoder-decoder, the mask of
/// its decoder). An encoder-decoder has an "encoder" before them, whose states both take; the keys
/// and values that prefill makes of these go into decode and come out unchanged. With
/// last_token_logits the mask says which token is a row's last: padding may stand on either side.
/// Errors: those of forward(); unsupported for an architecture that does not generate, and for a
/// cache of slots where layers keep something else than keys and values.
TaskProgram generation(const CheckpointData& checkpoint, const TaskOptions& options,
                       const Sink& sink = {});

/// The architecture that options and config name. Errors: unsupported.
struct Selected {
  const nn::Family* family;
  const nn::Architecture* architecture;
  /// The family's, as far as the architecture takes them.
  std::vector<std::string_view> optional_inputs() const;
};
Selected select(const Config& config, const std::string& architecture);

}  // namespace tranship::tasks

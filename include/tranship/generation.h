// Text from an exported model: the decode loop over its components "prefill" and "decode", and an
// "encoder" where there is one.
//
//   tranship::Generator generator = tranship::Generator::open("smollm2-onnx");
//   tranship::GenerationConfig config = generator.generation_config();
//   config.max_new_tokens = 100;
//   tranship::GeneratedText answer = generator.chat({{"user", "Which way is north?"}}, config);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tranship/exporters.h"
#include "tranship/sink.h"
#include "tranship/tokenizer.h"

namespace tranship {

/// How to choose tokens and when to stop: Transformers' names and defaults (5.23), and a seed.
struct GenerationConfig {
  /// At most so many new tokens a sequence. Wins over max_length.
  std::optional<int64_t> max_new_tokens = {};
  /// At most so many tokens with the prompt, padding included. With neither: 20 new tokens, but no
  /// more than the model has positions.
  std::optional<int64_t> max_length = {};
  /// No EOS before so many new tokens, or before so many tokens with the prompt.
  std::optional<int64_t> min_new_tokens = {};
  std::optional<int64_t> min_length = {};

  bool do_sample = false;    // false: the most likely token, the lowest id among equals
  double temperature = 1.0;  // with do_sample: logits are divided by it
  int64_t top_k = 50;        // with do_sample: only the k most likely tokens; 0: all
  double top_p = 1.0;        // with do_sample: only the most likely ones that have this probability
  /// Over 1: tokens of the prompt and of the text so far become less likely.
  double repetition_penalty = 1.0;
  /// Where draws begin. Absent: somewhere else each time (GenerationResult::seed says where). The
  /// numbers are not those of PyTorch: with one seed, ours repeat themselves, but are not
  /// Transformers'.
  std::optional<uint64_t> seed = {};

  std::vector<int64_t> eos_token_id = {};      // each of them ends a sequence
  std::optional<int64_t> pad_token_id = {};    // absent: the first EOS token
  std::optional<int64_t> bos_token_id = {};    // what an empty prompt becomes
  std::vector<std::string> stop_strings = {};  // each of them ends a sequence; needs the tokenizer

  std::optional<int64_t> forced_bos_token_id = {};  // the token after a prompt of one token
  std::vector<int64_t> forced_eos_token_id = {};    // one of these is the last token there may be
  std::vector<int64_t> suppress_tokens = {};        // never chosen
  std::vector<int64_t> begin_suppress_tokens = {};  // not chosen as the first token
  /// What the decoder of an encoder-decoder begins with; absent: the BOS token.
  std::optional<int64_t> decoder_start_token_id = {};
  /// A prompt is read at most so many tokens at a time, if decode takes several
  /// (multi_token_decode): a long one then needs less memory. Absent: 512. It does not change what
  /// is computed.
  std::optional<int64_t> prefill_chunk_size = {};
  /// Of a model of speech (Whisper): the code of the language that is spoken ("en"); empty: the
  /// model finds out. And "transcribe" or "translate"; empty: as the artifact says.
  std::string language = {};
  std::string task = {};

  /// Reads a generation_config.json; where it has no eos_token_id, pad_token_id, bos_token_id
  /// or decoder_start_token_id, config.json's serve. Without one (empty text) all is read from
  /// config.json, as Transformers does. Unknown keys are ignored. Errors: corrupt for a wrong type;
  /// unsupported, naming all keys, if one that changes what is generated, and that is not among the
  /// fields above, has a value that does so (num_beams 4).
  static GenerationConfig from_json(std::string_view generation_config_json,
                                    std::string_view config_json);
};

enum class FinishReason {
  kEos,         // an EOS token came; it is the last id
  kStopString,  // the last id completed a stop string
  kLength,      // max_new_tokens or max_length was reached
  kCallback,    // the callback said so
};
/// "eos", "stop_string", "length", "callback".
std::string_view name(FinishReason reason);

/// What the process has in memory (Linux; 0 elsewhere).
struct MemoryUse {
  int64_t peak_bytes = 0;  // the most it ever had
  int64_t anonymous_bytes =
      0;                     // of its own: the most after loading, the prompt, and the last token
  int64_t mapped_bytes = 0;  // of files, which it shares: the same
};

struct GenerationStats {
  double load_seconds = 0;     // of opening the generator
  double prefill_seconds = 0;  // until the first new token
  double decode_seconds = 0;   // from there to the end
  double runtime_seconds = 0;  // of these two: what the runtime took; the rest is the loop's
  int64_t prompt_tokens = 0;   // padding not counted
  int64_t cached_tokens = 0;   // those of them that an earlier turn had read
  int64_t new_tokens = 0;      // of all sequences
  int64_t decoded_tokens = 0;  // those of them that came after the first one of their sequence
  int64_t cache_bytes = 0;     // of keys and values at the end, with the room for more
  MemoryUse memory = {};

  /// Of the tokens that were read.
  double prefill_tokens_per_second() const;
  double decode_tokens_per_second() const;
};

struct GeneratedSequence {
  std::vector<int64_t> new_ids;  // without the prompt; with the EOS token or stop string
  FinishReason finish_reason = FinishReason::kLength;
};

struct GenerationResult {
  std::vector<GeneratedSequence> sequences;  // one a prompt
  GenerationStats stats;
  uint64_t seed = 0;
};

struct GeneratedText {
  std::vector<int64_t> prompt_ids;
  std::vector<int64_t> new_ids;  // as in GeneratedSequence
  /// The new ids as text, without special tokens, cut before the stop string (Transformers leaves
  /// that in).
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  GenerationStats stats;
  uint64_t seed = 0;
};

/// Told of each new token of each sequence, in order. Returns whether the sequence goes on.
using OnToken = std::function<bool(size_t sequence, int64_t id)>;
/// Told of text as it becomes certain; the pieces put together are GeneratedText::text. Returns
/// whether to go on.
using OnText = std::function<bool(std::string_view text)>;

struct GeneratorImpl;

/// A model that generates: its components are loaded. May be moved. For one thread at a time.
class Generator {
 public:
  /// Opens what export_for_generation() saved (ours, or Transformers', which
  /// has its encoder, if it needs one, as an export of its own in the folder "encoder" inside).
  /// prefill is not loaded if decode reads prompts too (multi_token_decode). Errors: as
  /// ExportedModel::from_pretrained; invalid_argument if there are no components prefill and
  /// decode; unsupported if they take inputs that the loop cannot give; those of the runtime.
  static Generator open(const std::filesystem::path& directory, const RunOptions& options = {},
                        const Sink& sink = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  /// The artifact's own configuration. Errors: as GenerationConfig::from_json.
  GenerationConfig generation_config() const;
  /// The artifact's tokenizer, read when first asked for. Errors: as Tokenizer::open.
  const Tokenizer& tokenizer();

  /// Continues all prompts (token ids) as one batch: shorter ones are padded on the left, and a
  /// sequence that has ended is fed padding until all have. With an encoder, the prompts are what
  /// it reads, padded on the right, and the decoder begins with decoder_start_token_id. Errors:
  /// invalid_argument for a configuration that makes no sense (all of its faults), no prompts, an
  /// empty prompt without a BOS token, negative ids, a prompt that max_length does not hold, more
  /// tokens than a static cache has slots;
  /// unsupported if the model takes no attention_mask and the prompts differ in length; corrupt if
  /// the model's logits are not numbers; those of the runtime.
  GenerationResult generate(std::span<const std::vector<int64_t>> prompts,
                            const GenerationConfig& config, const OnToken& on_token = {});

  /// Generates from what an encoder reads, by the names of its inputs: "input_features" [batch,
  /// mel, frames], or "input_ids" with "attention_mask". "decoder_input_ids" [batch, n] among them
  /// is what the decoder begins with, after decoder_start_token_id. Errors: as generate();
  /// invalid_argument if the model has no encoder, or inputs do not fit.
  GenerationResult generate_from(const NamedTensors& inputs, const GenerationConfig& config,
                                 const OnToken& on_token = {});

  /// Continues a text; with an encoder: what the model makes of it. Errors: as generate() and
  /// Tokenizer::encode.
  GeneratedText generate_text(std::string_view prompt, const GenerationConfig& config,
                              const OnText& on_text = {});

  /// The text of the only row of generate_from(). Errors: as that, and Tokenizer::decode;
  /// invalid_argument for several rows.
  GeneratedText generate_text_from(const NamedTensors& inputs, const GenerationConfig& config,
                                   const OnText& on_text = {});

  /// Answers a conversation, written as the chat template says. Errors: as generate() and
  /// Tokenizer::apply_chat_template.
  GeneratedText chat(std::span<const ChatMessage> messages, const GenerationConfig& config,
                     const OnText& on_text = {});
  GeneratedText chat(std::initializer_list<ChatMessage> messages, const GenerationConfig& config,
                     const OnText& on_text = {}) {
    return chat(std::span(messages.begin(), messages.size()), config, on_text);
  }

  explicit Generator(std::unique_ptr<GeneratorImpl> impl);

 private:
  friend class Conversation;
  /// goes_on: what the model has read already of these ids need not be read again.
  GeneratedText continue_ids(std::vector<int64_t> prompt_ids, const GenerationConfig& config,
                             const OnText& on_text, bool goes_on = false);
  std::unique_ptr<GeneratorImpl> impl_;
};

/// A conversation that goes on. Each turn reads only what is new: the beginning that it shares with
/// what the model has read last stays in the cache. The new tokens are read in one call if decode
/// takes several (multi_token_decode), else one by one. Other calls to the generator in between are
/// allowed; the next turn then reads the conversation anew.
class Conversation {
 public:
  /// messages: what was said before, or a system message. The generator must outlive it.
  explicit Conversation(Generator& generator, std::vector<ChatMessage> messages = {})
      : generator_(&generator), messages_(std::move(messages)) {}

  /// The user says something -> the answer; both become part of the conversation, unless there is
  /// an error. Errors: as Generator::chat.
  GeneratedText say(std::string_view text, const GenerationConfig& config,
                    const OnText& on_text = {});
  const std::vector<ChatMessage>& messages() const { return messages_; }

 private:
  Generator* generator_;
  std::vector<ChatMessage> messages_;
};

}  // namespace tranship

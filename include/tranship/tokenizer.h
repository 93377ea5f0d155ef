// Text to ids and back, as Transformers' AutoTokenizer does it, from the files beside a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tranship/checkpoint.h"

namespace tranship {

struct TokenizerData;

enum class Side { kLeft, kRight };

/// How encode_batch() makes rows of one length.
struct BatchOptions {
  /// Where padding goes; by default the tokenizer's own side. Text generation wants kLeft.
  std::optional<Side> padding_side = {};
  bool add_special_tokens = true;
  /// At most so many ids a row, special ones included; longer texts lose ids at the tokenizer's
  /// truncation side.
  std::optional<int64_t> max_length_tokens = {};
  /// What to pad with; by default the tokenizer's pad token.
  std::optional<int64_t> pad_id = {};
};

/// A batch of texts: num_rows x num_columns, row-major.
struct Encoding {
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  std::vector<int64_t> ids;
  std::vector<int64_t> type_ids;
  std::vector<int64_t> attention_mask;  // 0 where padded
};

/// What somebody said, for a chat template.
struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  /// A JSON object of further fields ("tool_calls", "reasoning_content"); it may replace "content"
  /// by a list of parts, or by null, which is as if the field were not there. Empty: none.
  std::string fields_json = {};
};

/// A tokenizer.json with what the files around it say. Cheap to copy; may be used from several
/// threads. Settings for truncation and padding inside tokenizer.json do not act: each call says
/// what it wants. Errors of all readers: corrupt, with the file's name, for files that are not what
/// they claim to be.
class Tokenizer {
 public:
  /// Reads tokenizer.json, and where they exist tokenizer_config.json, special_tokens_map.json,
  /// config.json, chat_template.jinja, chat_templates/*.jinja and chat_template.json. Errors: io if
  /// there is no tokenizer.json, or unsupported if only older files (vocab.txt, tokenizer.model)
  /// are there: the message says how to make one.
  static Tokenizer open(const std::filesystem::path& directory);

  /// From text. An empty `tokenizer_config_json` is as an absent file.
  static Tokenizer from_json(std::string_view tokenizer_json,
                             std::string_view tokenizer_config_json);

  /// A checkpoint's own: the files beside it, or those inside a GGUF.
  static Tokenizer of(const Checkpoint& checkpoint);

  /// Errors: invalid_argument if `text` is not UTF-8.
  std::vector<int64_t> encode(std::string_view text, bool add_special_tokens = true) const;

  /// Errors: invalid_argument if a text is not UTF-8, if max_length_tokens does not hold the
  /// special tokens, or if the texts differ in length and there is nothing to pad with.
  Encoding encode_batch(std::span<const std::string> texts, const BatchOptions& options = {}) const;

  /// Ids that the vocabulary does not have give no text, as in Transformers.
  /// Errors: invalid_argument for an id that is negative or over 32 bits.
  std::string decode(std::span<const int64_t> ids, bool skip_special_tokens = true) const;

  std::optional<int64_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int64_t id) const;
  /// Tokens of the vocabulary and added ones.
  int64_t vocab_size() const;

  /// What the model takes of what a tokenizer makes: "input_ids", "attention_mask", perhaps
  /// "token_type_ids".
  const std::vector<std::string>& model_input_names() const;
  Side padding_side() const;

  std::optional<std::string> bos_token() const { return special_token("bos_token"); }
  std::optional<std::string> eos_token() const { return special_token("eos_token"); }
  std::optional<std::string> pad_token() const { return special_token("pad_token"); }
  std::optional<std::string> unk_token() const { return special_token("unk_token"); }
  std::optional<int64_t> bos_token_id() const { return special_token_id("bos_token"); }
  std::optional<int64_t> eos_token_id() const { return special_token_id("eos_token"); }
  std::optional<int64_t> pad_token_id() const { return special_token_id("pad_token"); }
  std::optional<int64_t> unk_token_id() const { return special_token_id("unk_token"); }
  /// By the key of tokenizer_config.json: also "cls_token", "sep_token", "mask_token", and a
  /// model's own ("image_token").
  std::optional<std::string> special_token(std::string_view key) const;
  std::optional<int64_t> special_token_id(std::string_view key) const;

  bool has_chat_template() const;

  /// Writes a conversation as the model was taught to read it. Encode the result without special
  /// tokens: the template has them. `tools_json`: a JSON array of tools; `variables_json`: a JSON
  /// object of further variables for the template
  /// ("enable_thinking"). Empty: none.
  /// Errors: invalid_argument if there is no template, no message, or if the template raises an
  /// error or cannot be read: then with its message.
  std::string apply_chat_template(std::span<const ChatMessage> messages,
                                  bool add_generation_prompt = true,
                                  std::string_view tools_json = {},
                                  std::string_view variables_json = {}) const;

  const TokenizerData& data() const { return *data_; }
  explicit Tokenizer(std::shared_ptr<const TokenizerData> data) : data_(std::move(data)) {}

 private:
  std::shared_ptr<const TokenizerData> data_;
};

/// Text from ids as they come. All that push() and flush() returned, put together, is decode() of
/// all ids.
class TokenStream {
 public:
  explicit TokenStream(Tokenizer tokenizer, bool skip_special_tokens = true);

  /// Takes the next id; returns the text that no later id can change (often none: half a
  /// character). Errors: as Tokenizer::decode.
  std::string push(int64_t id);
  /// The rest. The stream is then as new.
  std::string flush();

 private:
  void advance(const std::string& text);
  std::string settle(std::string_view text, bool last);

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::vector<int64_t> window_;  // the last ids: context, then those whose text is not settled
  size_t context_ = 0;  // how many ids of the window were settled when it was last looked at
  size_t emitted_ = 0;  // how many bytes of the window's text are out
  std::string held_;    // decoded, but the clean-up of spaces may still change it
};

}  // namespace tranship

// The Rust side as C++: owned values, and errors as exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/rust_abi.h"

namespace tranship::text {

struct EncodedText {
  std::vector<int64_t> ids;
  std::vector<int64_t> type_ids;
};

struct Token {
  std::string text;
  bool special;  // left out by decode() unless asked for
};

struct EncodeOptions {
  bool add_special_tokens = true;
  size_t max_length_tokens = SIZE_MAX;
  bool truncate_left = false;
};

/// Owns a tokenizer of the `tokenizers` crate. Const members may be called from several threads.
class RustTokenizer {
 public:
  /// Errors: corrupt, naming the file `where`.
  RustTokenizer(std::string_view where, std::string_view tokenizer_json);

  /// {"model": "BPE", "vocab_size", "decoder", "padding", "truncation", "added_tokens": [...]} as
  /// JSON.
  std::string describe() const;
  /// Replaces the file's steps by those of Transformers' LlamaTokenizer, if the model is BPE.
  void use_llama_steps(TranshipPrepend prepend);
  /// `tokens_json`: an array of objects as in tokenizer.json's "added_tokens". Errors: corrupt.
  void add_tokens(std::string_view tokens_json);
  void split_special_tokens();

  /// Errors: invalid_argument, from both: text that is not UTF-8, a length too short for the
  /// special tokens.
  EncodedText encode(std::string_view text, const EncodeOptions& options) const;
  std::string decode(std::span<const uint32_t> ids, bool skip_special_tokens) const;

  std::optional<int64_t> token_to_id(std::string_view token) const;
  std::optional<Token> id_to_token(uint32_t id) const;

 private:
  struct Deleter {
    void operator()(TranshipTokenizer* tokenizer) const { tranship_tokenizer_free(tokenizer); }
  };
  std::string where_;
  std::unique_ptr<TranshipTokenizer, Deleter> handle_;
};

/// Renders a Jinja template as Transformers does. `variables_json`: a JSON object.
/// Errors: invalid_argument with the template's own message.
std::string render_template(std::string_view source, std::string_view variables_json);

}  // namespace tranship::text

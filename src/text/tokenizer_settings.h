// What the files around a tokenizer.json say, put together as Transformers does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/rust_tokenizer.h"
#include "text/tokenizer_files.h"
#include "tranship/tokenizer.h"

namespace tranship::text {

struct TokenizerSettings {
  /// "bos_token" -> "<s>": those that there are.
  std::map<std::string, std::string> special_tokens;
  std::vector<std::string> model_input_names;
  Side padding_side = Side::kRight;
  Side truncation_side = Side::kRight;
  int64_t pad_type_id = 0;
  int64_t vocab_size = 0;
  /// Spaces before punctuation go after decoding.
  bool clean_up_spaces = false;
  /// By name; the usual one is "default".
  std::map<std::string, std::string> chat_templates;
  /// The decoder writes each token's text where it stands, so that a text can be decoded piece by
  /// piece.
  bool decodes_in_pieces = false;
  /// Tokens such as <0xE2> stand for bytes.
  bool byte_fallback = false;
};

/// Reads the settings, and gives `tokenizer` what they say: missing special tokens, Llama's own
/// steps. Errors: corrupt, with the file and the key.
TokenizerSettings apply_settings(const TokenizerFiles& files, RustTokenizer& tokenizer);

/// What the model takes of what the tokenizer makes, from tokenizer_config.json and config.json
/// alone. Errors: corrupt, with the file and the key.
std::vector<std::string> model_input_names(const TokenizerFiles& files);

}  // namespace tranship::text

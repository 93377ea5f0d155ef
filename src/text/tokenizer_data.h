// What a Tokenizer holds.
#pragma once

#include <span>
#include <string>

#include "text/rust_tokenizer.h"
#include "text/tokenizer_settings.h"

namespace tranship {

struct TokenizerData {
  text::RustTokenizer rust;
  text::TokenizerSettings settings;

  /// decode() before the clean-up of spaces.
  std::string decode_raw(std::span<const int64_t> ids, bool skip_special_tokens) const;
};

namespace text {

/// Takes away spaces before punctuation and contractions.
/// Source: tokenization_utils_base.py clean_up_tokenization (5.23).
std::string clean_up(std::string text);

/// An id as the vocabulary counts. Errors: invalid_argument if it is negative or over 32 bits.
uint32_t checked_id(int64_t id);

}  // namespace text
}  // namespace tranship

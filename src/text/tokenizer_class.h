// What Transformers' tokenizer classes know that no file says: default tokens, input names, the
// side of padding.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tranship/tokenizer.h"

namespace tranship::text {

struct TokenizerClass {
  std::string_view name;
  /// Special tokens where the files give none; empty: none.
  std::string_view bos = {}, eos = {}, unk = {}, sep = {}, pad = {}, cls = {}, mask = {};
  bool token_types = false;  // the model takes token_type_ids
  Side padding_side = Side::kRight;
};

/// The class that AutoTokenizer would take.
/// `declared`: tokenizer_class of tokenizer_config.json, else of config.json; `model_type`: of
/// config.json. `byte_level`: tokenizer.json speaks of "ByteLevel". A class without an entry here
/// is the general one, "". Source: transformers/models/auto/tokenization_auto.py (5.23).
const TokenizerClass& find_tokenizer_class(std::optional<std::string> declared,
                                           std::string_view model_type, bool byte_level);

}  // namespace tranship::text

// The files that make up a tokenizer, from a directory or from a checkpoint.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tranship/checkpoint.h"

namespace tranship::text {

struct TokenizerFiles {
  std::string where;  // the directory or file they are from, for messages
  /// By name within the directory ("tokenizer.json", "chat_templates/rag.jinja"): those that exist.
  std::map<std::string, std::string> texts;

  /// The text of a file, or empty.
  std::string_view text(const std::string& name) const;
};

/// Errors: as Tokenizer::open says, if there is no tokenizer.json.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& directory);
TokenizerFiles tokenizer_files_of(const Checkpoint& checkpoint);

}  // namespace tranship::text

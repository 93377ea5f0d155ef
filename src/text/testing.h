// The small tokenizers of tests/cases/tokenizer and what Transformers makes of them. For *_test.cpp
// files only.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"

namespace tranship::text {

inline const std::filesystem::path kTests = std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests";

/// tests/golden/tokenizer/NAME.json.
inline Json golden(const std::string& name) {
  const std::filesystem::path path = kTests / "golden" / "tokenizer" / (name + ".json");
  return parse_json("test", path.string(), read_text(path));
}

/// A file of tests/cases/.
inline std::string case_text(const std::string& name) { return read_text(kTests / "cases" / name); }

/// Where a tokenizer is; nothing for all-MiniLM-L6-v2 if the environment does not say.
inline std::optional<std::filesystem::path> folder_of(const std::string& name) {
  if (name != "minilm") return kTests / "cases" / "tokenizer" / name;
  const char* minilm = std::getenv("TRANSHIP_MINILM");
  if (minilm == nullptr || *minilm == '\0') return std::nullopt;
  return minilm;
}

}  // namespace tranship::text

#include "text/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "checkpoint/checkpoint_data.h"

namespace tranship::text {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLimitBytes = 512u << 20;

constexpr auto kRead = std::to_array<std::string_view>(
    {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json",
     "chat_template.jinja", "chat_template.json"});
// What a tokenizer can also be kept in; they cannot be read here.
constexpr auto kOlder = std::to_array<std::string_view>(
    {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "spiece.model",
     "sentencepiece.bpe.model", "tekken.json", "tiktoken.model"});

[[noreturn]] void fail_without_tokenizer(const std::string& where,
                                         const std::vector<std::string>& older) {
  const std::string looked = listed({kRead.begin(), kRead.end()});
  if (older.empty()) {
    fail(ErrorKind::kIo,
         "[tokenizer] '{}' has no tokenizer.json (looked for {}): is the download incomplete?",
         where, looked);
  }
  fail(ErrorKind::kUnsupported,
       "[tokenizer] '{}' has no tokenizer.json, only {}, of an older kind (looked for {}). Make "
       "one with Python: "
       "AutoTokenizer.from_pretrained('{}').save_pretrained('{}')",
       where, listed(older), looked, where, where);
}

std::vector<std::string> older_files(const fs::path& directory) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const std::string_view name : kOlder) {
    if (fs::is_regular_file(directory / name, ignored)) found.emplace_back(name);
  }
  return found;
}

void read_named_templates(const fs::path& directory, TokenizerFiles& files) {
  std::error_code none;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(directory / "chat_templates", none)) {
    if (entry.path().extension() != ".jinja") continue;
    files.texts["chat_templates/" + entry.path().filename().string()] = read_text(entry.path());
  }
}

}  // namespace

std::string_view TokenizerFiles::text(const std::string& name) const {
  const auto found = texts.find(name);
  return found == texts.end() ? std::string_view() : std::string_view(found->second);
}

TokenizerFiles read_tokenizer_files(const fs::path& directory) {
  TokenizerFiles files{directory.string(), {}};
  std::error_code ignored;
  for (const std::string_view name : kRead) {
    const fs::path path = directory / name;
    if (fs::is_regular_file(path, ignored)) files.texts.emplace(name, read_text(path, kLimitBytes));
  }
  if (!files.texts.contains("tokenizer.json"))
    fail_without_tokenizer(files.where, older_files(directory));
  read_named_templates(directory, files);
  return files;
}

TokenizerFiles tokenizer_files_of(const Checkpoint& checkpoint) {
  const CheckpointData& data = checkpoint.data();
  TokenizerFiles files{data.path.empty() ? "a synthetic checkpoint" : data.path.string(),
                       data.made_companions};
  std::vector<std::string> older;
  for (const auto& [name, path] : data.companions) {
    if (std::ranges::find(kRead, name) != kRead.end() || name.starts_with("chat_templates/"))
      files.texts.emplace(name, read_text(path, kLimitBytes));
    if (std::ranges::find(kOlder, name) != kOlder.end()) older.push_back(name);
  }
  if (!files.texts.contains("tokenizer.json")) fail_without_tokenizer(files.where, older);
  files.texts["config.json"] = checkpoint.config_json();
  return files;
}

}  // namespace tranship::text

#include "exporters/small_files.h"

#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"

namespace tranship::exporters {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kGenerationConfigFile = "generation_config.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Whether both are one file or folder, whatever they are called.
bool same_place(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return !a.empty() && fs::equivalent(a, b, ignored);
}

std::string read_if_there(const fs::path& path) {
  return is_file(path) ? read_text(path) : std::string();
}

/// config.json, generation_config.json and the made ones, by name.
std::map<std::string, std::string> all_texts(const SmallFiles& files) {
  std::map<std::string, std::string> texts = files.texts;
  if (!files.config.empty()) texts.emplace(kConfigFile, files.config);
  if (!files.generation_config.empty())
    texts.emplace(kGenerationConfigFile, files.generation_config);
  return texts;
}

void copy_file_bytes(const fs::path& from, const fs::path& to) {
  if (same_place(from, to)) return;
  const auto source = MappedFile::open(from);
  AtomicFile file(to);
  file.write_range(*source, 0, source->bytes().size());
  file.commit();
}

}  // namespace

std::string exported_config(const Config& config, const std::string& architecture, DType dtype) {
  Json json = parse_json("config", config.where(), config.to_json(), NonFinite::kAsPython);
  json["architectures"] = {architecture};
  const bool has_dtype = json.contains("dtype") || json.contains("torch_dtype");
  json.erase("torch_dtype");  // what Transformers 4 called it
  if (has_dtype) json["dtype"] = torch_name(dtype);
  return to_python_json(json, true) + "\n";
}

SmallFiles small_files_of(const CheckpointData& checkpoint, std::string config,
                          bool with_generation_config) {
  SmallFiles files;
  files.config = std::move(config);
  if (with_generation_config && checkpoint.generation_config) {
    files.generation_config = checkpoint.generation_config->to_json() + "\n";
  }
  files.texts = checkpoint.made_companions;
  files.copies = checkpoint.companions;
  std::error_code ignored;
  files.home =
      fs::is_directory(checkpoint.path, ignored) ? checkpoint.path : checkpoint.path.parent_path();
  for (const auto& [name, path] : checkpoint.companions) {
    if (path.filename() == name) files.home = path.parent_path();
  }
  return files;
}

std::string tokenizer_problem(const CheckpointData& checkpoint) {
  constexpr std::string_view kTokenizer = "tokenizer.json";
  if (checkpoint.made_companions.contains(std::string(kTokenizer))) return "";
  std::vector<std::string> vocabularies;
  for (const auto& [name, path] : checkpoint.companions) {
    if (name == kTokenizer) return "";
    const bool is_vocabulary = name.ends_with(".model") || name.starts_with("vocab.");
    if (is_vocabulary || name == "tekken.json") vocabularies.push_back(name);
  }
  if (vocabularies.empty()) {
    return fmt::format(
        "[export] '{}' has no tokenizer: the artifact takes and gives token ids, and `tranship "
        "generate` cannot use it. A tokenizer.json beside config.json goes along",
        checkpoint.path.string());
  }
  return fmt::format(
      "[export] '{}' has no tokenizer.json, only {}: it goes along, and Transformers reads it, but "
      "`tranship generate` does not. Python's AutoTokenizer.from_pretrained('{}')"
      ".save_pretrained('{}') makes one",
      checkpoint.path.string(), listed(vocabularies), checkpoint.path.string(),
      checkpoint.path.string());
}

SmallFiles small_files_in(const fs::path& directory) {
  SmallFiles files;
  files.config = read_if_there(directory / kConfigFile);
  files.generation_config = read_if_there(directory / kGenerationConfigFile);
  files.copies = companions_in(directory);
  if (is_file(directory / kGenaiConfigFile))
    files.copies.emplace(kGenaiConfigFile, directory / kGenaiConfigFile);
  files.home = directory;
  return files;
}

std::vector<ArtifactFile> list(const SmallFiles& files) {
  std::map<std::string, uint64_t> sizes;
  for (const auto& [name, text] : all_texts(files)) sizes[name] = text.size();
  for (const auto& [name, path] : files.copies) {
    std::error_code error;
    sizes[name] = fs::file_size(path, error);
    if (error) fail(ErrorKind::kIo, "[save] '{}': {}", path.string(), error.message());
  }
  std::vector<ArtifactFile> out;
  out.reserve(sizes.size());
  for (const auto& [name, size] : sizes) out.push_back({name, size});
  return out;
}

bool stays(const SmallFiles& files, const fs::path& directory, const std::string& name) {
  std::error_code ignored;
  return same_place(files.home, directory) &&
         fs::exists(fs::symlink_status(directory / name, ignored));
}

void write(const SmallFiles& files, const fs::path& directory) {
  for (const auto& [name, text] : all_texts(files)) {
    if (!stays(files, directory, name)) write_text(directory / name, text);
  }
  for (const auto& [name, path] : files.copies) {
    if (stays(files, directory, name)) continue;
    std::error_code ignored;  // then the copy says why
    fs::create_directories((directory / name).parent_path(), ignored);
    copy_file_bytes(path, directory / name);
  }
}

}  // namespace tranship::exporters

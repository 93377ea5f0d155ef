#include "tranship/checkpoint.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "checkpoint/checkpoint_data.h"
#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;

// What tokenizers and processors of Transformers read, whatever their age.
constexpr auto kCompanions = std::to_array<std::string_view>({"tokenizer.json",
                                                              "tokenizer_config.json",
                                                              "special_tokens_map.json",
                                                              "added_tokens.json",
                                                              "vocab.txt",
                                                              "vocab.json",
                                                              "merges.txt",
                                                              "tokenizer.model",
                                                              "spiece.model",
                                                              "sentencepiece.bpe.model",
                                                              "source.spm",
                                                              "target.spm",
                                                              "target_vocab.json",
                                                              "tekken.json",
                                                              "tiktoken.model",
                                                              "bpe.codes",
                                                              "normalizer.json",
                                                              "entity_vocab.json",
                                                              "chat_template.jinja",
                                                              "chat_template.json",
                                                              "preprocessor_config.json",
                                                              "video_preprocessor_config.json",
                                                              "processor_config.json"});

/// Whether a file or a link to one is there.
bool has_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_pickle(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt";
}

/// Names of the files in a folder that fit, in order of name.
template <class Fits>
std::vector<std::string> names_in(const fs::path& folder, Fits&& fits) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (fits(entry)) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> files_with_extension(const fs::path& folder, std::string_view extension) {
  return names_in(folder, [&](const fs::directory_entry& entry) {
    return has_file(entry.path()) && entry.path().extension() == extension;
  });
}

[[noreturn]] void fail_pickled(const fs::path& path, const std::vector<std::string>& names) {
  fail(
      ErrorKind::kUnsupported,
      "[open] '{}': the weights are pickled ({}), and tranship does not unpickle: that would run "
      "code of the file. "
      "Convert them with Python: `import transformers; model = "
      "transformers.AutoModelForCausalLM.from_pretrained(FROM); "
      "model.save_pretrained(TO)` writes model.safetensors (take the class that config.json names)",
      path.string(), listed(names));
}

/// "org/name", as models are called on the Hub.
bool looks_like_hub_id(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == 0 || slash == text.npos || slash + 1 == text.size() || text.starts_with('.'))
    return false;
  return std::ranges::all_of(text.substr(slash + 1), [](char c) { return c != '/'; });
}

[[noreturn]] void fail_absent(const fs::path& path) {
  const std::string text = path.string();
  if (!looks_like_hub_id(text)) fail(ErrorKind::kIo, "[open] '{}' does not exist", text);
  const auto slash = text.find('/');
  fail(ErrorKind::kIo,
       "[open] '{}' does not exist. If it is a model of the Hub: downloading is not built in. Give "
       "a directory: Python's "
       "`huggingface_hub.snapshot_download(\"{}\")` makes one and returns its path; one that is "
       "downloaded already is "
       "~/.cache/huggingface/hub/models--{}--{}",
       text, text, text.substr(0, slash), text.substr(slash + 1));
}

/// The snapshot of a model's directory in the Hub's cache ("models--org--name"): refs/main's, or
/// else the only one.
fs::path snapshot_of(const fs::path& folder) {
  const fs::path snapshots = folder / "snapshots";
  if (has_file(folder / "refs" / "main")) {
    std::string commit = read_text(folder / "refs" / "main", 4096);
    commit.erase(commit.find_last_not_of(" \r\n") + 1);
    const bool plain =
        !commit.empty() && commit.find('/') == commit.npos && !commit.starts_with('.');
    std::error_code ignored;
    if (plain && fs::is_directory(snapshots / commit, ignored)) return snapshots / commit;
  }
  const auto names =
      names_in(snapshots, [](const fs::directory_entry& entry) { return entry.is_directory(); });
  if (names.size() == 1) return snapshots / names[0];
  if (names.empty()) {
    fail(ErrorKind::kIo, "[open] '{}' has no snapshot: the download did not finish",
         snapshots.string());
  }
  fail(ErrorKind::kInvalidArgument,
       "[open] '{}' has several snapshots, and refs/main names none of them: give one: {}",
       snapshots.string(), listed(names));
}

[[noreturn]] void fail_without_weights(const fs::path& folder) {
  const auto pickles = names_in(folder, [](const fs::directory_entry& entry) {
    return has_file(entry.path()) && is_pickle(entry.path());
  });
  if (!pickles.empty()) fail_pickled(folder, pickles);
  const auto others = files_with_extension(folder, ".safetensors");
  const std::string hint =
      others.empty()
          ? ""
          : fmt::format(" (it has {}, which Transformers would not load either)", listed(others));
  fail(ErrorKind::kIo,
       "[open] '{}' holds no checkpoint: expected config.json with model.safetensors or "
       "model.safetensors.index.json, or "
       "a .gguf file{}",
       folder.string(), hint);
}

CheckpointData open_gguf_in(const fs::path& folder, const Sink& sink) {
  const auto files = files_with_extension(folder, ".gguf");
  if (files.empty()) fail_without_weights(folder);
  if (files.size() > 1) {
    fail(ErrorKind::kInvalidArgument, "[open] '{}' has several .gguf files: give one of them: {}",
         folder.string(), listed(files));
  }
  return open_gguf(folder / files[0], sink);
}

CheckpointData open_folder(const fs::path& folder, const Sink& sink) {
  // As Transformers: a single file comes before an index.
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  const bool has_single = has_file(single);
  if (!has_single && !has_file(index)) return open_gguf_in(folder, sink);

  const fs::path config = folder / "config.json";
  if (!has_file(config)) {
    fail(ErrorKind::kIo, "[open] '{}' has weights but no config.json: the checkpoint is not whole",
         folder.string());
  }
  CheckpointData data;
  data.kind = CheckpointKind::kSafetensors;
  data.config = Config::parse(config.string(), read_text(config));
  const fs::path generation = folder / "generation_config.json";
  if (has_file(generation))
    data.generation_config = Config::parse(generation.string(), read_text(generation));
  data.tensors = has_single ? open_safetensors(single).tensors : open_sharded_safetensors(index);
  data.companions = companions_in(folder);
  return data;
}

CheckpointData open_file(const fs::path& path, const Sink& sink) {
  if (path.extension() == ".gguf") return open_gguf(path, sink);
  if (is_pickle(path)) fail_pickled(path, {path.filename().string()});
  fail(ErrorKind::kInvalidArgument,
       "[open] '{}' is a file: expected a .gguf, or the directory that holds config.json and "
       "model.safetensors",
       path.string());
}

CheckpointData open_data(const fs::path& path, const Sink& sink) {
  const fs::file_status status = fs::status(path);
  if (!fs::exists(status)) fail_absent(path);
  if (!fs::is_directory(status)) return open_file(path, sink);
  return open_folder(fs::is_directory(path / "snapshots") ? snapshot_of(path) : path, sink);
}

}  // namespace

std::map<std::string, fs::path> companions_in(const fs::path& folder) {
  std::map<std::string, fs::path> found;
  for (const std::string_view name : kCompanions) {
    if (has_file(folder / name)) found.emplace(name, folder / name);
  }
  const std::string templates = "chat_templates";
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / templates, none)) {
    if (has_file(entry.path()) && entry.path().extension() == ".jinja")
      found.emplace(templates + "/" + entry.path().filename().string(), entry.path());
  }
  return found;
}

Checkpoint Checkpoint::open(const fs::path& path, const Sink& sink) {
  try {
    CheckpointData data = open_data(path, sink);
    data.path = path;
    return Checkpoint(std::make_shared<const CheckpointData>(std::move(data)));
  } catch (const fs::filesystem_error& error) {  // a folder that may not be read
    fail(ErrorKind::kIo, "[open] '{}': {}", error.path1().string(), error.code().message());
  }
}

Checkpoint Checkpoint::synthetic(std::string_view config_json) {
  CheckpointData data;
  data.config = Config::parse("config.json", config_json);
  return Checkpoint(std::make_shared<const CheckpointData>(std::move(data)));
}

std::string Checkpoint::config_json() const { return data_->config.to_json(); }

std::string Checkpoint::generation_config_json() const {
  return data_->generation_config ? data_->generation_config->to_json() : "";
}

}  // namespace tranship

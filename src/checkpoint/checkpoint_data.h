// What a Checkpoint holds, whatever it was read from.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "ir/tensor_source.h"
#include "tranship/checkpoint.h"

namespace tranship {

enum class CheckpointKind { kSafetensors, kGguf, kSynthetic };

struct CheckpointData {
  CheckpointKind kind = CheckpointKind::kSynthetic;
  std::filesystem::path path;  // as the user gave it; empty for a synthetic one
  Config config;               // config.json, or what stands for it
  std::optional<Config> generation_config;
  /// By Transformers' name. Empty for a synthetic checkpoint: ask find_tensor().
  std::map<std::string, TensorSourcePtr> tensors;
  /// Files that an artifact takes along unchanged, by their name below the checkpoint: those of
  /// companions_in().
  std::map<std::string, std::filesystem::path> companions;
  /// The same, made in memory (a GGUF's tokenizer): file name -> text.
  std::map<std::string, std::string> made_companions;

  /// The tensor of that name, or null. A synthetic checkpoint makes one of `shape` for any name
  /// (dtype: the config's, f32 by default).
  TensorSourcePtr find_tensor(const std::string& name, const std::vector<int64_t>& shape) const;
};

/// What tokenizers and processors of Transformers read of a folder: files that are there, by name,
/// with "chat_templates/NAME.jinja" for named templates.
std::map<std::string, std::filesystem::path> companions_in(const std::filesystem::path& folder);

/// Element i of the tensor `name` (hash weights, DESIGN.md): matrices and above uniform with
/// deviation 1/sqrt(fan_in), fan_in the product of all axes but the first; vectors named
/// "...weight" 1 +- 0.1; others +- 0.1.
TensorSourcePtr hash_source(std::string name, DType dtype, std::vector<int64_t> shape);

}  // namespace tranship

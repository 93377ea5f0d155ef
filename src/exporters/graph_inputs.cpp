#include "exporters/graph_inputs.h"

#include <algorithm>
#include <array>

#include "base/atomic_file.h"
#include "tasks/task.h"
#include "text/tokenizer_settings.h"

namespace tranship::exporters {
namespace {

constexpr std::string_view kConfigFile = "tokenizer_config.json";
// Any of these means that there is a tokenizer, if not one that can be read here.
constexpr auto kTokenizers = std::to_array<std::string_view>(
    {kConfigFile, "tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model",
     "sentencepiece.bpe.model", "tekken.json", "tiktoken.model"});

bool is_tokenizer(const std::string& name) {
  return std::ranges::find(kTokenizers, name) != kTokenizers.end();
}

/// What the tokenizer makes; empty if there is none.
std::vector<std::string> tokenizer_names(const Checkpoint& checkpoint) {
  const CheckpointData& data = checkpoint.data();
  text::TokenizerFiles files{data.path.string(), {{"config.json", checkpoint.config_json()}}};
  bool has_tokenizer = false;
  for (const auto& [name, text] : data.made_companions) {
    has_tokenizer |= is_tokenizer(name);
    if (name == kConfigFile) files.texts[name] = text;
  }
  for (const auto& [name, path] : data.companions) {
    has_tokenizer |= is_tokenizer(name);
    if (name == kConfigFile) files.texts[name] = read_text(path);
  }
  return has_tokenizer ? text::model_input_names(files) : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> choose_graph_inputs(const Checkpoint& checkpoint,
                                             const NamedTensors& sample_inputs,
                                             const OnnxConfig& config) {
  if (config.graph_inputs) return *config.graph_inputs;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : sample_inputs) names.push_back(name);
  if (!names.empty()) return names;
  names = tokenizer_names(checkpoint);
  names.emplace_back("attention_mask");
  const std::vector<std::string_view> known =
      tasks::select(checkpoint.data().config, config.architecture).optional_inputs();
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(known, name) == known.end();
  });
  return names;
}

}  // namespace tranship::exporters

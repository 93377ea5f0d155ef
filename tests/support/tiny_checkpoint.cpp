#include "support/tiny_checkpoint.h"

#include "base/atomic_file.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "tasks/task.h"

namespace tranship::testing {

CheckpointData tiny_checkpoint(std::string_view config_json, const std::string& architecture) {
  Json config = parse_json("test", "config.json", config_json);
  if (!architecture.empty()) config["architectures"] = {architecture};
  CheckpointData checkpoint = Checkpoint::synthetic(config.dump()).data();
  const tasks::TaskProgram all = tasks::forward(checkpoint, {});
  checkpoint.kind = CheckpointKind::kSafetensors;
  for (const auto& [name, source] : all.program.parameters)
    checkpoint.tensors.emplace(name, source);
  return checkpoint;
}

void write_checkpoint(const CheckpointData& checkpoint, const std::filesystem::path& folder) {
  NamedTensors tensors;
  for (const auto& [name, source] : checkpoint.tensors) tensors.emplace(name, read_all(*source));
  std::filesystem::create_directories(folder);
  write_safetensors(folder / "model.safetensors", tensors);
  write_text(folder / "config.json", checkpoint.config.to_json());
}

}  // namespace tranship::testing

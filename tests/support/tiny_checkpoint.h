// Small checkpoints with hash weights whose tensors are all there by name, as in files: to be
// changed, or written.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint_data.h"

namespace tranship::testing {

/// The synthetic checkpoint of a configuration. architecture: in place of the one that it names.
CheckpointData tiny_checkpoint(std::string_view config_json, const std::string& architecture = "");

/// Writes config.json and model.safetensors.
void write_checkpoint(const CheckpointData& checkpoint, const std::filesystem::path& folder);

}  // namespace tranship::testing

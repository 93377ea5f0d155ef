// The small files of an artifact: the model's configurations, and what a tokenizer needs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_data.h"
#include "tranship/exporters.h"

namespace tranship::exporters {

inline constexpr const char* kGenaiConfigFile = "genai_config.json";

struct SmallFiles {
  std::string config;                        // config.json; empty: there is none
  std::string generation_config;             // generation_config.json; empty: there is none
  std::map<std::string, std::string> texts;  // others, made in memory, by name
  std::map<std::string, std::filesystem::path> copies;  // others, taken along, by name
  /// Files that are here already are not touched: they are the checkpoint's.
  std::filesystem::path home;
};

/// config.json: the checkpoint's, with the class that was exported and the dtype that its weights
/// have now.
std::string exported_config(const Config& config, const std::string& architecture, DType dtype);

/// The files that go along with a checkpoint's export.
SmallFiles small_files_of(const CheckpointData& checkpoint, std::string config,
                          bool with_generation_config);
/// Those of a saved artifact.
SmallFiles small_files_in(const std::filesystem::path& directory);

/// What to say of a checkpoint whose text cannot be turned into ids here; empty if it can.
std::string tokenizer_problem(const CheckpointData& checkpoint);

/// Names and sizes as they will be written.
std::vector<ArtifactFile> list(const SmallFiles& files);
/// Whether `directory` has that file already and keeps it: in the checkpoint's own directory.
bool stays(const SmallFiles& files, const std::filesystem::path& directory,
           const std::string& name);
/// Errors: io.
void write(const SmallFiles& files, const std::filesystem::path& directory);

}  // namespace tranship::exporters

// Whether an artifact is as it was written. (Whether it computes what it should: compare.h.)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tranship/exporters.h"

namespace tranship::exporters {

/// What is known of one file of an artifact.
struct FileVerdict {
  enum class Kind { kSame, kWrong, kUnknown };
  std::string file;
  Kind kind = Kind::kSame;
  std::string text;  // what is wrong, or why it is not known
};

/// Reads every file of an artifact and compares it with what export.json recorded. All faults are
/// found, not the first. Of an artifact that Transformers wrote, nothing is recorded: then it is
/// checked that files are there, can be read, and hold the weights that the graphs point to.
/// Errors: io without an export.json.
std::vector<FileVerdict> check_files(const std::filesystem::path& directory, const Sink& sink = {});

}  // namespace tranship::exporters

// What a program's file says of itself, in any format.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "tranship/exporters.h"

namespace tranship::exporters {

struct ProgramSummary {
  ExportedProgram program;
  std::set<std::string> data_files;  // what its weights lie in, beside itself
};

/// Reads the file of a component; no weight is read.
/// Errors: unsupported for another format than onnx and dynamo; those of the format's reader.
ProgramSummary summarize_program(std::string_view export_format, const std::filesystem::path& file);

}  // namespace tranship::exporters

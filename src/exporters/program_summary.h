// What a program's file says of itself, in any format.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "tranship/exporters.h"

namespace tranship::exporters {

struct ProgramSummary {
  ExportedProgram program;
  /// What its weights lie in beside itself, and how many bytes of each they need.
  std::map<std::string, uint64_t> data_files;
  /// Inputs that the program can write where they are, with their outputs (onnx::ModelSummary).
  std::map<std::string, std::string> in_place = {};
};

/// Errors: unsupported for another format than onnx and dynamo. where: the artifact's directory.
void check_format(std::string_view export_format, const std::filesystem::path& where);

/// Reads the file of a component, of a format that can be read; no weight is read.
/// Errors: those of the format's reader.
ProgramSummary summarize_program(std::string_view export_format, const std::filesystem::path& file);

}  // namespace tranship::exporters

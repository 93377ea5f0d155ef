// Weights that stay in the checkpoint's own files: an artifact made with
// WeightsPlacement::kReference points into them, and must notice if somebody writes them anew.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tranship/exporters.h"

namespace tranship::exporters {

/// Puts hashes of samples (base/file_hash.h) to the files, all beside the artifact. Errors: io.
void record_referred(const std::filesystem::path& directory, std::vector<ArtifactFile>& files);

/// What is wrong with one: it is missing, or is not what was recorded; else empty.
std::string find_fault(const std::filesystem::path& directory, const ArtifactFile& referred);

/// Errors: corrupt with what find_fault() says, of all files; io if one is missing.
void check_referred(const std::filesystem::path& directory, const std::vector<ArtifactFile>& files);

}  // namespace tranship::exporters

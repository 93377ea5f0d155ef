#include "exporters/referred_files.h"

#include <fmt/core.h>

#include <system_error>

#include "base/error.h"
#include "base/file_hash.h"
#include "base/mapped_file.h"

namespace tranship::exporters {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

void record_referred(const fs::path& directory, std::vector<ArtifactFile>& files) {
  for (ArtifactFile& file : files)
    file.hash = hash_of_samples(*MappedFile::open(directory / file.name));
}

std::string find_fault(const fs::path& directory, const ArtifactFile& referred) {
  if (!is_there(directory / referred.name)) return "is missing; weights of the artifact lie in it";
  const auto file = MappedFile::open(directory / referred.name);
  if (file->bytes().size() != referred.size_bytes) {
    return fmt::format("has {} bytes now, and had {} at the export", file->bytes().size(),
                       referred.size_bytes);
  }
  if (referred.hash.empty() || hash_of_samples(*file) == referred.hash) return "";
  return "was written anew after the export: its bytes are others";
}

void check_referred(const fs::path& directory, const std::vector<ArtifactFile>& files) {
  std::string faults;
  bool all_there = true;
  for (const ArtifactFile& file : files) {
    const std::string fault = find_fault(directory, file);
    all_there &= is_there(directory / file.name);
    if (!fault.empty())
      faults += fmt::format("{}'{}' {}", faults.empty() ? "" : "; ", file.name, fault);
  }
  if (faults.empty()) return;
  fail(all_there ? ErrorKind::kCorrupt : ErrorKind::kIo,
       "[load] '{}' points into its checkpoint's weights (--weights reference), which are not what "
       "they were: {}. Export the checkpoint again, or bring the files back",
       directory.string(), faults);
}

}  // namespace tranship::exporters

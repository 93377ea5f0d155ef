// A private folder that goes away with the object.
#pragma once

#include <filesystem>

namespace tranship::exporters {

class TemporaryFolder {
 public:
  /// Errors: io if the system's folder for temporary files cannot be written to.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tranship::exporters

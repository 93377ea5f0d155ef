// A file mapped read-only into memory: nothing is read until it is touched.
#pragma once

#include <filesystem>
#include <memory>

#include "base/bytes.h"

namespace tranship {

/// Owns the mapping. Shared by every tensor that points into it.
class MappedFile {
 public:
  /// Errors: io if the file cannot be opened or mapped, invalid_argument if it is not a regular
  /// file (links are followed).
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  /// Bytes in memory, which must outlive the object, as if a file of that name had them.
  static std::shared_ptr<const MappedFile> of_memory(std::filesystem::path path, Bytes bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  Bytes bytes() const { return bytes_; }
  /// The open file, for copy_file_range; valid as long as the object. -1 for bytes in memory.
  int descriptor() const { return descriptor_; }
  /// Tells the system that a range will not be needed again, so that its pages can go.
  void release(size_t offset, size_t size) const;

 private:
  MappedFile(std::filesystem::path path, int descriptor, Bytes bytes)
      : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}
  std::filesystem::path path_;
  int descriptor_;
  Bytes bytes_;
};

}  // namespace tranship

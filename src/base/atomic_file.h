// A file that is whole or absent: written beside its name, and renamed when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/bytes.h"
#include "base/mapped_file.h"

namespace tranship {

/// Writes `path` by way of a temporary file in the same folder. Destroyed without commit(), it
/// leaves nothing. Errors: io with the system's reason, from every member function.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  uint64_t position_bytes() const { return position_; }
  void write(Bytes bytes);
  void write(std::string_view text) { write(as_bytes(text)); }
  /// Zeros up to the next multiple of `alignment`.
  void pad_to(size_t alignment);
  /// Appends bytes of another file, by the kernel where it can.
  void write_range(const MappedFile& file, size_t offset, size_t size);
  /// Sets the final length at once, so that a full disk is noticed before the first byte.
  void reserve(uint64_t size_bytes);
  /// Writes at an offset within the reserved length; may be called from several threads.
  void write_at(uint64_t offset, Bytes bytes);
  /// Makes the file visible under its name, replacing an older one.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  uint64_t position_ = 0;
};

/// Removes temporary files that killed writers of `path` left. The caller holds the directory's
/// lock.
void remove_leftovers(const std::filesystem::path& path);

/// Whether a file's name is that of one which is being written, or which a killed writer left.
bool is_leftover(const std::filesystem::path& path);

/// The whole of a small text file. Errors: io; invalid_argument if it is larger than `limit_bytes`.
std::string read_text(const std::filesystem::path& path, uint64_t limit_bytes = 64u << 20);
/// Writes a small file, whole or not at all.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace tranship

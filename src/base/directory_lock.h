// One writer a directory: whoever holds the lock may write there.
#pragma once

#include <filesystem>

namespace tranship {

/// Held from construction to destruction, or until the process ends, however it ends. Leaves no
/// file behind. Errors: io if another process holds it (it says what to do), or if the directory
/// cannot be opened.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace tranship

// What fuzz targets share. A target gives a reader bytes of a stranger: it may refuse them with an
// Error, and do nothing else wrong.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "tranship/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tranship::fuzz {

/// Ends the program unless a claim about what was read holds.
inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

/// Runs a reader: whether it took the bytes. An Error is an answer, but for one that says that
/// tranship has a bug. Any other exception is a finding.
template <class Reader>
bool accepts(Reader&& reader) {
  try {
    std::forward<Reader>(reader)();
    return true;
  } catch (const Error& error) {
    require(error.kind() != ErrorKind::kInternal, error.what());
    return false;
  }
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A file that lies in memory, for readers that want a path. Nothing may hold its bytes when it is
/// written again.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", 0)) {
    require(descriptor_ >= 0, "memfd_create failed");
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::filesystem::path& write(const uint8_t* data, size_t size) const {
    require(::ftruncate(descriptor_, static_cast<off_t>(size)) == 0, "ftruncate failed");
    require(::pwrite(descriptor_, data, size, 0) == static_cast<ssize_t>(size), "pwrite failed");
    return path_;
  }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

}  // namespace tranship::fuzz

// What fuzz targets share. A target gives a reader bytes of a stranger: it may refuse them with an
// Error, and do nothing else wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
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

/// The bytes as a file, for readers that want one: the sanitizer sees each read past their end.
inline std::shared_ptr<const MappedFile> file_of(const uint8_t* data, size_t size) {
  return MappedFile::of_memory("fuzz", as_bytes(text_of(data, size)));
}

}  // namespace tranship::fuzz

#include "generation/process_memory.h"

#include <algorithm>
#include <charconv>

#include "base/atomic_file.h"
#include "base/error.h"

namespace tranship::generation {
namespace {

constexpr int64_t kKib = 1024;

/// The number behind "VmHWM:", in bytes; 0 if there is none.
int64_t bytes_behind(std::string_view status, std::string_view key) {
  const size_t at = status.find(key);
  if (at == std::string_view::npos) return 0;
  status.remove_prefix(at + key.size());
  status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
  int64_t kib = 0;
  std::from_chars(status.data(), status.data() + status.size(), kib);
  return kib * kKib;
}

}  // namespace

MemoryUse read_memory_use(std::string_view status) {
  return {.peak_bytes = bytes_behind(status, "VmHWM:"),
          .anonymous_bytes = bytes_behind(status, "RssAnon:"),
          .mapped_bytes = bytes_behind(status, "RssFile:")};
}

MemoryUse memory_use() {
  try {
    return read_memory_use(read_text("/proc/self/status"));
  } catch (const Error&) {
    return {};
  }
}

MemoryUse most_of(const MemoryUse& a, const MemoryUse& b) {
  return {.peak_bytes = std::max(a.peak_bytes, b.peak_bytes),
          .anonymous_bytes = std::max(a.anonymous_bytes, b.anonymous_bytes),
          .mapped_bytes = std::max(a.mapped_bytes, b.mapped_bytes)};
}

}  // namespace tranship::generation

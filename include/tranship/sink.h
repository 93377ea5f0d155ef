// Where warnings and progress go: the library itself never prints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tranship {

/// Passed to whatever may take long or may have something to say. An empty function means: not
/// interested.
struct Sink {
  /// One paragraph for a person, without a line's end.
  std::function<void(std::string_view)> warning;
  /// Bytes done and to do, and what is being done ("writing model.onnx.data").
  std::function<void(uint64_t done_bytes, uint64_t total_bytes, std::string_view what)> progress;

  void warn(std::string_view message) const {
    if (warning) warning(message);
  }
  void report(uint64_t done_bytes, uint64_t total_bytes, std::string_view what) const {
    if (progress) progress(done_bytes, total_bytes, what);
  }
};

}  // namespace tranship

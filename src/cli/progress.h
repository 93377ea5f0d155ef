// The line that says how far a long job is.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tranship::cli {

/// "writing model.onnx.data  [=====>     ]  312 MiB of 513 MiB  1.20 GiB/s  1.3 s left", at most
/// `width` columns: the bar goes first, then what is being done is cut.
std::string progress_line(std::string_view what, uint64_t done_bytes, uint64_t total_bytes,
                          double seconds, size_t width);

/// Draws that line on standard error, over the one before. May be called from several threads.
class ProgressBar {
 public:
  /// If not `shown`, it does nothing.
  explicit ProgressBar(bool shown) : shown_(shown) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(uint64_t done_bytes, uint64_t total_bytes, std::string_view what);
  /// Removes the line, so that something else can be written there.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  const bool shown_;
  std::mutex mutex_;
  bool drawn_ = false;
  bool running_ = false;
  uint64_t last_done_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  Clock::time_point begun_;
  Clock::time_point drawn_at_;
};

}  // namespace tranship::cli

#include "cli/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "cli/console.h"
#include "cli/format.h"

namespace tranship::cli {
namespace {

constexpr size_t kWidestBar = 24;
constexpr size_t kNarrowestBar = 6;
constexpr size_t kSmallestWidth = 20;

std::string bar(double fraction, size_t size) {
  const auto full = static_cast<size_t>(fraction * static_cast<double>(size));
  std::string out(full, '=');
  if (full < size) out += '>';
  out.resize(size, ' ');
  return "[" + out + "]";
}

std::string cut(std::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  return width < 4 ? std::string() : std::string(text.substr(0, width - 3)) + "...";
}

}  // namespace

std::string progress_line(std::string_view what, uint64_t done_bytes, uint64_t total_bytes,
                          double seconds, size_t width) {
  const double done = static_cast<double>(done_bytes);
  const double total = static_cast<double>(total_bytes);
  const double fraction = total_bytes == 0 ? 1 : std::min(done / total, 1.0);
  std::string numbers =
      fmt::format("{} of {}", format_bytes(done_bytes), format_bytes(total_bytes));
  if (seconds > 0 && done_bytes > 0) {
    const double rate = done / seconds;
    numbers += fmt::format("  {}/s", format_bytes(static_cast<uint64_t>(rate)));
    if (fraction < 1) numbers += fmt::format("  {} left", format_duration((total - done) / rate));
  }
  const size_t taken = display_width(what) + numbers.size() + 6;  // spaces and brackets
  if (taken + kNarrowestBar <= width) {
    const size_t size = std::min(width - taken, kWidestBar);
    return fmt::format("{}  {}  {}", what, bar(fraction, size), numbers);
  }
  const size_t room = width > numbers.size() + 2 ? width - numbers.size() - 2 : 0;
  const std::string head = cut(what, room);
  return cut(head.empty() ? numbers : head + "  " + numbers, std::max(width, kSmallestWidth));
}

void ProgressBar::update(uint64_t done_bytes, uint64_t total_bytes, std::string_view what) {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (!running_ || total_bytes != total_bytes_ || done_bytes < last_done_bytes_) begun_ = now;
  running_ = true;
  last_done_bytes_ = done_bytes;
  total_bytes_ = total_bytes;
  if (drawn_ && now - drawn_at_ < std::chrono::milliseconds(100)) return;
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  const std::string line =
      progress_line(printable(what), done_bytes, total_bytes, seconds, terminal_width() - 1);
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
  drawn_at_ = now;
}

void ProgressBar::clear() {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  running_ = false;
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace tranship::cli

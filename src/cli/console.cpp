#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "cli/format.h"
#include "cli/interrupt.h"

namespace tranship::cli {
namespace {

constexpr size_t kDefaultWidth = 80;
constexpr size_t kNarrowestWidth = 20;
constexpr size_t kPipeWidth = 100;
constexpr size_t kWidestText = 120;  // longer lines are hard to read

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

bool has_cursor() {
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) != "dumb";
}

std::string_view code(Tint tint) {
  switch (tint) {
    case Tint::kNone:
      return "";
    case Tint::kBold:
      return "\x1b[1m";
    case Tint::kRed:
      return "\x1b[1;31m";
    case Tint::kYellow:
      return "\x1b[1;33m";
    case Tint::kGreen:
      return "\x1b[1;32m";
    case Tint::kDim:
      return "\x1b[2m";
  }
  return "";
}

}  // namespace

size_t terminal_width() {
  for (const int descriptor : {STDERR_FILENO, STDOUT_FILENO}) {
    winsize size = {};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowestWidth)
      return size.ws_col;
  }
  return kDefaultWidth;
}

Console::Console()
    : terminal_out_(::isatty(STDOUT_FILENO) == 1),
      terminal_error_(::isatty(STDERR_FILENO) == 1),
      color_out_(terminal_out_ && wants_color()),
      color_error_(terminal_error_ && wants_color()),
      progress_(terminal_error_ && has_cursor()) {}

size_t Console::width() const {
  return terminal_out_ ? std::min(terminal_width(), kWidestText) : kPipeWidth;
}

void Console::print(std::string_view text) {
  progress_.clear();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    fail(ErrorKind::kIo, "[print] cannot write to standard output: {}", std::strerror(errno));
  }
}

void Console::print_live(std::string_view text) {
  print(terminal_out_ ? printable(text) : std::string(text));
  flush();
}

void Console::flush() {
  if (std::fflush(stdout) != 0) {
    fail(ErrorKind::kIo, "[print] cannot write to standard output: {}", std::strerror(errno));
  }
}

std::string Console::tint_if(bool colored, Tint tint, std::string_view text) {
  if (!colored || tint == Tint::kNone) return std::string(text);
  return std::string(code(tint)) + std::string(text) + "\x1b[0m";
}

void Console::paragraph(Tint tint, std::string_view label, std::string_view message) {
  progress_.clear();
  std::fflush(stdout);
  const size_t width = terminal_error_ ? std::min(terminal_width(), kWidestText) : 0;
  const std::string body = wrap(std::string(label) + " " + printable(message), width, 2);
  const std::string text = tint_if(color_error_, tint, label) + body.substr(label.size()) + "\n";
  std::fputs(text.c_str(), stderr);
}

void Console::ask(std::string_view text) {
  if (quiet_) return;
  progress_.clear();
  const std::string tinted = tint_if(color_error_, Tint::kBold, text);
  std::fputs(tinted.c_str(), stderr);
}

void Console::note(std::string_view text) {
  if (quiet_) return;
  progress_.clear();
  std::fflush(stdout);
  std::fputs((printable(text) + "\n").c_str(), stderr);
}

void Console::warn(std::string_view message) {
  if (!quiet_) paragraph(Tint::kYellow, "warning:", message);
}

void Console::error(std::string_view message) { paragraph(Tint::kRed, "error:", message); }

Sink Console::sink() {
  return {.warning = [this](std::string_view message) { warn(message); },
          .progress =
              [this](uint64_t done_bytes, uint64_t total_bytes, std::string_view what) {
                check_interrupt();
                if (!quiet_) progress_.update(done_bytes, total_bytes, what);
              }};
}

}  // namespace tranship::cli

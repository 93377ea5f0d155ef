#include "cli/talk.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"

namespace tranship::cli {
namespace {

constexpr std::string_view kHelp =
    "A line is said to the model; \\ at its end goes on in the next one. Ctrl-C ends an answer.\n"
    "/clear  forgets what was said\n"
    "/bye    ends, as Ctrl-D does";

/// Lines of standard input, as they come.
class Lines {
 public:
  /// Nothing at the end. Errors: io.
  std::optional<std::string> next() {
    for (;;) {
      const size_t end = held_.find('\n');
      if (end != std::string::npos) {
        std::string line = held_.substr(0, end);
        held_.erase(0, end + 1);
        return line;
      }
      if (!read_more()) break;
    }
    if (held_.empty()) return std::nullopt;
    return std::exchange(held_, {});
  }

 private:
  bool read_more() {
    std::array<char, 4096> block;
    for (;;) {
      const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        fail(ErrorKind::kIo, "[read] cannot read standard input: {}", std::strerror(errno));
      held_.append(block.data(), static_cast<size_t>(count));
      return count > 0;
    }
  }

  std::string held_;
};

/// Lines up to one that does not go on.
std::optional<std::string> read_turn(Lines& lines, bool is_terminal, Console& console) {
  std::string text;
  for (const char* sign = "> ";; sign = ". ") {
    if (is_terminal) console.ask(sign);
    const std::optional<std::string> line = lines.next();
    if (!line) return text.empty() ? std::nullopt : std::optional(text);
    text += *line;
    if (!text.ends_with('\\')) return text;
    text.back() = '\n';
  }
}

}  // namespace

void talk(const Talk& talk, Console& console) {
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  if (is_terminal) console.note("/help says what else there is than talking.");
  Lines lines;
  for (;;) {
    const std::optional<std::string> text = read_turn(lines, is_terminal, console);
    if (!text || *text == "/bye") return;
    if (text->empty()) continue;
    if (*text == "/help") {
      console.note(kHelp);
    } else if (*text == "/clear") {
      talk.clear();
    } else if (!is_terminal) {
      talk.answer(*text);
    } else {
      try {
        talk.answer(*text);
      } catch (const Error& error) {
        console.error(error.what());
      }
    }
  }
}

}  // namespace tranship::cli

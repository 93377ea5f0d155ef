// Numbers and text as a person reads them in a terminal. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tranship::cli {

/// "0 B", "1023 B", "1.50 KiB", "131 MiB": three digits, in powers of 1024.
std::string format_bytes(uint64_t bytes);
/// "999", "12.3 K", "135 M", "405 B": three digits, in powers of 1000.
std::string format_count(uint64_t count);
/// "134,515,008".
std::string format_exact(uint64_t count);
/// "84 ms", "1.32 s", "12.3 s", "2 min 5 s", "1 h 4 min".
std::string format_duration(double seconds);

/// How many columns UTF-8 text takes, a code point each.
size_t display_width(std::string_view text);
/// Text that is safe for a terminal: control characters and what is not UTF-8 become \xNN. Line
/// ends and tabs stay.
std::string printable(std::string_view text);
/// Breaks text at spaces into lines of at most `width` columns (0: no limit); all lines but the
/// first begin with `indent` spaces, which count. A line end in the text stays one; a longer word
/// gets a line of its own.
std::string wrap(std::string_view text, size_t width, size_t indent = 0);

/// Columns of text, two spaces apart. Cells of right-aligned columns end at one place.
class Table {
 public:
  /// A header ">size" is right-aligned, "name" left-aligned. Empty headers: no line for them.
  explicit Table(std::vector<std::string> headers);
  /// As many cells as headers.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Lines with line ends, each indented; without trailing spaces.
  std::string text(size_t indent = 2) const;

 private:
  std::vector<std::string> headers_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tranship::cli

#include "cli/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/utf8.h"

namespace tranship::cli {
namespace {

/// Three digits of a number that is at least 1 and less than `base`.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

template <size_t kCount>
std::string scaled(uint64_t number, double base,
                   const std::array<std::string_view, kCount>& units) {
  if (static_cast<double>(number) < base) return fmt::format("{}{}", number, units[0]);
  double value = static_cast<double>(number);
  size_t unit = 0;
  // What would be rounded up to `base` belongs to the next unit.
  while (value >= base - 0.5 && unit + 1 < kCount) {
    value /= base;
    ++unit;
  }
  return three_digits(value) + std::string(units[unit]);
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 2)
    return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return character.size() == 1 && (first < 0x20 || first == 0x7F) && first != '\n' && first != '\t';
}

std::string wrap_line(std::string_view line, size_t width, size_t indent) {
  std::string out;
  size_t column = 0;
  bool begins = true;
  while (!line.empty()) {
    const size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', spaces), line.size());
    const std::string_view word = line.substr(spaces, end - spaces);
    const size_t needed = display_width(word);
    if (!begins && width > 0 && column + spaces + needed > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      out += std::string(spaces, ' ');
      column += spaces;
    }
    out += word;
    column += needed;
    begins = false;
    line.remove_prefix(end);
  }
  return out;
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  return scaled(
      bytes, 1024,
      std::to_array<std::string_view>({" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"}));
}

std::string format_count(uint64_t count) {
  return scaled(count, 1000,
                std::to_array<std::string_view>({"", " K", " M", " B", " T", " P", " E"}));
}

std::string format_exact(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string format_duration(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", std::max(seconds, 0.0) * 1000);
  if (seconds < 59.95) return fmt::format("{} s", three_digits(seconds));
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = code_point_bytes(text);
    if (length == 0 || is_control(text.substr(0, length))) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::string wrap(std::string_view text, size_t width, size_t indent) {
  std::string out;
  while (true) {
    const size_t end = text.find('\n');
    out += wrap_line(text.substr(0, end), width, indent);
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
    out += '\n';
    if (!text.empty() && text.front() != '\n') out += std::string(indent, ' ');
  }
}

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {
  for (std::string& header : headers_) {
    right_.push_back(header.starts_with('>'));
    if (right_.back()) header.erase(0, 1);
  }
}

std::string Table::text(size_t indent) const {
  std::vector<std::vector<std::string>> lines;
  if (std::ranges::any_of(headers_, [](const std::string& h) { return !h.empty(); }))
    lines.push_back(headers_);
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<size_t> widths(headers_.size(), 0);
  for (const auto& line : lines) {
    check(line.size() == widths.size(),
          "a row of a table has as many cells as the table has columns");
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], display_width(line[i]));
  }
  std::string out;
  for (const auto& line : lines) {
    std::string row(indent, ' ');
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - display_width(line[i]), ' ');
      row += (i == 0 ? "" : "  ") + (right_[i] ? padding + line[i] : line[i] + padding);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

}  // namespace tranship::cli

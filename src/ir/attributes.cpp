#include "ir/attributes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace tranship::ir {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class T>
std::string number_text(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

std::string_view inside(std::string_view text, char open, char close) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != open || text.back() != close) {
    fail_word(text, fmt::format("a list in {} {}", open, close));
  }
  return text.substr(1, text.size() - 2);
}

std::string element_text(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kI64) return fmt::format("{}", t.i64()[static_cast<size_t>(i)]);
  if (t.dtype() == DType::kF64) return number_text(t.at(i));
  if (is_floating(t.dtype())) return number_text(static_cast<float>(t.at(i)));
  return fmt::format("{}", static_cast<int64_t>(t.at(i)));
}

}  // namespace

void fail_word(std::string_view found, std::string_view expected) {
  fail(ErrorKind::kInvalidArgument, "[ir text] expected {}, found '{}'", expected, found);
}

std::string format_attribute(int64_t value) { return std::to_string(value); }
std::string format_attribute(double value) { return number_text(value); }
std::string format_attribute(bool value) { return value ? "true" : "false"; }
std::string format_attribute(DType value) { return std::string(name(value)); }
std::string format_attribute(const Dim& value) { return value.text(); }
std::string format_attribute(const Shape& value) { return value.text(); }

std::string format_attribute(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string format_attribute(const std::vector<int64_t>& value) {
  return fmt::format("{}", Shape::of(value).text());
}

std::string format_attribute(const std::vector<double>& value) {
  std::string text;
  for (const double number : value) text += (text.empty() ? "" : ", ") + number_text(number);
  return "[" + text + "]";
}

std::string format_attribute(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "none";
}

std::string format_attribute(const Tensor& value) {
  std::string text = std::string(name(value.dtype())) + Shape::of(value.shape()).text() + "(";
  for (int64_t i = 0; i < value.num_elements(); ++i)
    text += (i > 0 ? ", " : "") + element_text(value, i);
  return text + ")";
}

size_t find_outside(std::string_view text, std::string_view mark, size_t begin) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;  // the next character is meant as it is
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && depth == 0 && text.substr(i, mark.size()) == mark) {
      return i;
    } else if (!quoted && std::string_view("([{").find(c) != std::string_view::npos) {
      ++depth;
    } else if (!quoted && std::string_view(")]}").find(c) != std::string_view::npos) {
      --depth;
    }
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  for (size_t comma = find_outside(text, ","); comma != std::string_view::npos;
       comma = find_outside(text, ",")) {
    items.push_back(trimmed(text.substr(0, comma)));
    text.remove_prefix(comma + 1);
  }
  const std::string_view last = trimmed(text);
  if (!last.empty() || !items.empty()) items.push_back(last);
  return items;
}

void parse_attribute(std::string_view text, int64_t& value) {
  text = trimmed(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) fail_word(text, "an integer");
}

void parse_attribute(std::string_view text, double& value) {
  text = trimmed(text);
  if (text == "inf" || text == "-inf") {
    value = (text[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
    return;
  }
  if (text == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) fail_word(text, "a number");
}

void parse_attribute(std::string_view text, bool& value) {
  text = trimmed(text);
  if (text != "true" && text != "false") fail_word(text, "true or false");
  value = text == "true";
}

void parse_attribute(std::string_view text, std::string& value) {
  const std::string_view quoted = inside(text, '"', '"');
  value.clear();
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      value += quoted[i];
    } else if (++i < quoted.size()) {
      value += quoted[i] == 'n' ? '\n' : quoted[i];
    }
  }
}

void parse_attribute(std::string_view text, DType& value) {
  const auto dtype = find_dtype(trimmed(text));
  if (!dtype) fail_word(text, "a dtype");
  value = *dtype;
}

void parse_attribute(std::string_view text, Dim& value) { value = Dim::parse(trimmed(text)); }

void parse_attribute(std::string_view text, Shape& value) {
  value.dims.clear();
  for (const std::string_view item : split_list(inside(text, '[', ']')))
    value.dims.push_back(Dim::parse(item));
}

namespace {

template <class T>
void parse_list(std::string_view text, std::vector<T>& value) {
  value.clear();
  for (const std::string_view item : split_list(inside(text, '[', ']'))) {
    T number = 0;
    parse_attribute(item, number);
    value.push_back(number);
  }
}

}  // namespace

void parse_attribute(std::string_view text, std::vector<int64_t>& value) {
  parse_list(text, value);
}

void parse_attribute(std::string_view text, std::vector<double>& value) { parse_list(text, value); }

void parse_attribute(std::string_view text, std::optional<int64_t>& value) {
  if (trimmed(text) == "none") {
    value = std::nullopt;
    return;
  }
  int64_t number = 0;
  parse_attribute(text, number);
  value = number;
}

namespace {

/// An element that its dtype holds. Source of the limit for unsigned 64 bits: element_text().
double parse_element(std::string_view text, DType dtype) {
  double number = 0;
  parse_attribute(text, number);
  if (is_floating(dtype) || dtype == DType::kBool) return number;
  const bool is_unsigned =
      dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32 || dtype == DType::kU64;
  const int bits = 8 * static_cast<int>(size_bytes(dtype));
  const double end = std::ldexp(1.0, is_unsigned ? std::min(bits, 63) : bits - 1);
  if (!(number >= (is_unsigned ? 0 : -end) && number < end && number == std::trunc(number)))
    fail_word(text, fmt::format("an element of {}", name(dtype)));
  return number;
}

}  // namespace

void parse_attribute(std::string_view text, Tensor& value) {
  text = trimmed(text);
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    fail_word(text, "a tensor such as f32[2](1, 2)");
  }
  DType dtype = DType::kF32;
  parse_attribute(text.substr(0, open), dtype);
  std::vector<int64_t> sizes;
  parse_attribute(text.substr(open, close - open + 1), sizes);
  const std::vector<std::string_view> items = split_list(inside(text.substr(close + 1), '(', ')'));
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      fail_word(text, "sizes that are not negative");
  }
  if (static_cast<size_t>(count) != items.size()) {
    fail_word(text, fmt::format("{} elements, as the shape says", count));
  }
  Tensor tensor(dtype, sizes);
  for (size_t i = 0; i < items.size(); ++i) {
    if (dtype == DType::kI64) {
      parse_attribute(items[i], tensor.i64()[i]);
    } else {
      tensor.set(static_cast<int64_t>(i), parse_element(items[i], dtype));
    }
  }
  value = std::move(tensor);
}

}  // namespace tranship::ir

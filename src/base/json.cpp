#include "base/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace tranship {
namespace {

constexpr size_t kMaxDepth = 256;

struct Place {
  size_t line;
  size_t column;
};

Place place_of(std::string_view text, size_t offset) {
  Place place{1, 1};
  for (size_t i = 0; i + 1 < offset && i < text.size(); ++i) {
    place = text[i] == '\n' ? Place{place.line + 1, 1} : Place{place.line, place.column + 1};
  }
  return place;
}

/// What nlohmann was reading, in its words, and what may stand there.
struct Expected {
  std::string_view reading;
  std::string_view what;
};

// The first that its message has.
constexpr auto kExpected = std::to_array<Expected>({
    {"invalid string: missing closing quote", "a string that ends with '\"'"},
    {"invalid string: control character",
     "no control character in a string (\\n for a line's end)"},
    {"invalid string: ill-formed UTF-8", "UTF-8"},
    {"invalid string", "an escape that JSON has"},
    {"invalid number", "a digit"},
    {"number overflow", "a number that 64 bits hold"},
    {"while parsing object key", "a key in double quotes, or '}'"},
    {"while parsing object separator", "':'"},
    {"while parsing object", "',' or '}'"},
    {"while parsing array", "',' or ']'"},
    {"; expected end of input", "nothing more"},
    {"while parsing value", "a value (an object, a list, a string, a number, true, false, null)"},
});

/// Printable text at an offset, or what else is there.
std::string found_at(std::string_view text, size_t offset) {
  constexpr size_t kMost = 20;
  if (offset >= text.size()) return "the end of the text";
  size_t size = 0;
  while (size < kMost && offset + size < text.size() && text[offset + size] > ' ' &&
         text[offset + size] < 0x7f)
    ++size;
  if (size > 0) return fmt::format("'{}'", text.substr(offset, size));
  return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(text[offset]));
}

/// Where the token begins that was read up to `last`: a string or a word is read to its end before
/// it is found to be wrong.
size_t begin_of_token(std::string_view text, size_t last) {
  constexpr std::string_view kMarks = ",:[]{}\"";
  if (last >= text.size() || text[last] <= ' ') return last;
  if (text[last] == '"') {
    const size_t open = last > 0 ? text.rfind('"', last - 1) : text.npos;
    return open == text.npos ? last : open;
  }
  while (last > 0 && kMarks.find(text[last]) == kMarks.npos && text[last - 1] > ' ' &&
         kMarks.find(text[last - 1]) == kMarks.npos)
    --last;
  return last;
}

/// A text whose Infinity, -Infinity and NaN are numbers that JSON has, of the same length; and what
/// they stand for, by their place among the numbers of the text.
struct Replaced {
  std::string text;
  std::map<size_t, double> numbers;
};

/// The end of a string that begins at `begin`, or of the text.
size_t end_of_string(std::string_view text, size_t begin) {
  size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

Replaced replace_non_finite(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<std::string_view, double> words[] = {
      {"Infinity", kInfinity}, {"-Infinity", -kInfinity}, {"NaN", std::nan("")}};
  Replaced out{std::string(text), {}};
  size_t count = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      i = end_of_string(text, i);
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \t\r\n,:[]{}\"", i), text.size());
    const std::string_view token = text.substr(i, end - i);
    for (const auto& [word, value] : words) {
      if (token != word) continue;
      out.text.replace(i, token.size(), "0." + std::string(token.size() - 2, '0'));
      out.numbers.emplace(count, value);
    }
    const bool is_number =
        !token.empty() && (token[0] == '-' || token[0] == 'I' || token[0] == 'N' ||
                           (token[0] >= '0' && token[0] <= '9'));
    count += is_number ? 1 : 0;
    i = std::max(end, i + 1);
  }
  return out;
}

/// Makes the document of what the parser meets. nlohmann's own way compares each key with all
/// before it, which takes minutes for an object of a hundred thousand keys, and copies what is
/// nested.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  struct Document {
    std::string_view operation;
    std::string_view where;
    std::string_view text;
    const std::map<size_t, double>& non_finite;  // by their place among the numbers
  };

  explicit Builder(Document document) : document_(document) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add_number(value); }
  bool number_unsigned(number_unsigned_t value) override { return add_number(value); }
  bool number_float(number_float_t value, const string_t&) override { return add_number(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }

  bool key(string_t& key) override {
    check_depth();
    if (!open_.back().names.insert(key).second) {
      fail(ErrorKind::kCorrupt, "[{}] '{}': the key '{}' stands twice in one object",
           document_.operation, document_.where, key);
    }
    open_.back().keys.push_back(std::move(key));
    return true;
  }

  bool end_object() override {
    Open done = close();
    Json::object_t object;
    object.reserve(done.keys.size());
    for (size_t i = 0; i < done.keys.size(); ++i)
      object.emplace_back(std::move(done.keys[i]), std::move(done.values[i]));
    return add(std::move(object));
  }

  bool end_array() override { return add(close().values); }

  bool parse_error(size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) {
      const std::string_view message = error.what();
      const size_t quote = std::min(message.find('\''), message.size());
      fail(ErrorKind::kCorrupt, "[{}] '{}': a number is too large: {}", document_.operation,
           document_.where, message.substr(quote, 40));
    }
    const Place place = place_of(document_.text, byte);
    fail(ErrorKind::kCorrupt, "[{}] '{}': line {}, column {} is not JSON: {}", document_.operation,
         document_.where, place.line, place.column,
         syntax_problem(document_.text, byte, error.what()));
  }

  Json take() { return std::move(root_); }

 private:
  /// An object or a list that has not ended.
  struct Open {
    std::vector<std::string> keys;
    std::unordered_set<std::string> names;  // the keys again
    std::vector<Json> values;
  };

  void check_depth() const {
    if (open_.size() <= kMaxDepth) return;
    fail(ErrorKind::kCorrupt, "[{}] '{}': nested more than {} levels deep", document_.operation,
         document_.where, kMaxDepth);
  }

  template <class Value>
  bool add(Value&& value) {
    check_depth();
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
    } else {
      open_.back().values.emplace_back(std::forward<Value>(value));
    }
    return true;
  }

  template <class Number>
  bool add_number(Number value) {
    const auto found = document_.non_finite.find(count_++);
    return found == document_.non_finite.end() ? add(value) : add(found->second);
  }

  bool open() {
    check_depth();
    open_.emplace_back();
    return true;
  }

  Open close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    return done;
  }

  Document document_;
  std::vector<Open> open_;
  size_t count_ = 0;  // of the numbers so far
  Json root_;
};

std::string python_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::string text = fmt::format("{}", value);  // shortest form that reads back, as repr() has it
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct PythonStyle {
  bool sorted;
  bool one_line;
};

using Items = std::vector<std::pair<std::string, const Json*>>;

/// The entries of an object, or the elements of a list under empty keys.
Items items_of(const Json& value, bool sorted) {
  Items items;
  for (auto it = value.begin(); it != value.end(); ++it)
    items.emplace_back(value.is_object() ? it.key() : std::string(), &it.value());
  if (value.is_object() && sorted) std::sort(items.begin(), items.end());
  return items;
}

void append_python(const Json& value, PythonStyle style, size_t depth, std::string& out);

/// Errors: corrupt for text that JSON cannot hold.
void append_text(const std::string& text, PythonStyle style, std::string& out) {
  const size_t place = find_invalid_utf8(text);
  if (place != text.npos) {
    fail(ErrorKind::kCorrupt, "[json] a text is not UTF-8: byte {:#04x} at {} of {}",
         static_cast<unsigned char>(text[place]), place, text.size());
  }
  out += Json(text).dump(-1, ' ', style.one_line);
}

void append_items(const Json& value, PythonStyle style, size_t depth, std::string& out) {
  const auto line_break = [&](size_t levels) {
    if (!style.one_line) out += "\n" + std::string(2 * levels, ' ');
  };
  const Items items = items_of(value, style.sorted);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += style.one_line ? ", " : ",";
    line_break(depth + 1);
    if (value.is_object()) {
      append_text(items[i].first, style, out);
      out += ": ";
    }
    append_python(*items[i].second, style, depth + 1, out);
  }
  if (!items.empty()) line_break(depth);
}

void append_python(const Json& value, PythonStyle style, size_t depth, std::string& out) {
  if (value.is_number_float()) {
    out += python_float(value.get<double>());
  } else if (value.is_string()) {
    append_text(value.get_ref<const std::string&>(), style, out);
  } else if (!value.is_structured()) {
    out += value.dump(-1, ' ', style.one_line);
  } else {
    out += value.is_object() ? "{" : "[";
    append_items(value, style, depth, out);
    out += value.is_object() ? "}" : "]";
  }
}

}  // namespace

std::string syntax_problem(std::string_view text, size_t byte, std::string_view message) {
  const auto* expected = std::ranges::find_if(
      kExpected, [&](const Expected& e) { return message.find(e.reading) != message.npos; });
  return fmt::format("expected {}, found {}", expected == kExpected.end() ? "JSON" : expected->what,
                     found_at(text, begin_of_token(text, byte > 0 ? byte - 1 : 0)));
}

Json parse_json(std::string_view operation, std::string_view where, std::string_view text,
                NonFinite non_finite) {
  const size_t zero = text.find('\0');  // nlohmann takes it for the end of the text
  if (zero != text.npos) {
    const Place place = place_of(text, zero + 1);
    fail(ErrorKind::kCorrupt, "[{}] '{}': line {}, column {} is not JSON: a zero byte", operation,
         where, place.line, place.column);
  }
  Replaced replaced;
  const bool has_words = text.find("Infinity") != text.npos || text.find("NaN") != text.npos;
  if (non_finite == NonFinite::kAsPython && has_words) {
    replaced = replace_non_finite(text);
    text = replaced.text;
  }
  Builder builder({operation, where, text, replaced.numbers});
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string to_python_json(const Json& value, bool sorted) {
  std::string out;
  append_python(value, {.sorted = sorted, .one_line = false}, 0, out);
  return out;
}

std::string to_python_json_line(const Json& value) {
  std::string out;
  append_python(value, {.sorted = false, .one_line = true}, 0, out);
  return out;
}

}  // namespace tranship

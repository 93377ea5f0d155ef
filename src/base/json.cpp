#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

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

// Watches the parser: how deep it is, and which keys each open object has had.
struct Guard {
  std::string_view operation;
  std::string_view where;
  std::vector<std::set<std::string>> keys;

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (static_cast<size_t>(depth) > kMaxDepth) {
      fail(ErrorKind::kCorrupt, "[{}] '{}': nested more than {} levels deep", operation, where,
           kMaxDepth);
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.get<std::string>()).second) {
      fail(ErrorKind::kCorrupt, "[{}] '{}': the key '{}' stands twice in one object", operation,
           where, parsed.get<std::string>());
    }
    return true;
  }
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

void append_items(const Json& value, PythonStyle style, size_t depth, std::string& out) {
  const auto line_break = [&](size_t levels) {
    if (!style.one_line) out += "\n" + std::string(2 * levels, ' ');
  };
  const Items items = items_of(value, style.sorted);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += style.one_line ? ", " : ",";
    line_break(depth + 1);
    if (value.is_object()) out += Json(items[i].first).dump(-1, ' ', style.one_line) + ": ";
    append_python(*items[i].second, style, depth + 1, out);
  }
  if (!items.empty()) line_break(depth);
}

void append_python(const Json& value, PythonStyle style, size_t depth, std::string& out) {
  if (value.is_number_float()) {
    out += python_float(value.get<double>());
  } else if (!value.is_structured()) {
    out += value.dump(-1, ' ', style.one_line);
  } else {
    out += value.is_object() ? "{" : "[";
    append_items(value, style, depth, out);
    out += value.is_object() ? "}" : "]";
  }
}

}  // namespace

Json parse_json(std::string_view operation, std::string_view where, std::string_view text) {
  const size_t zero = text.find('\0');  // nlohmann takes it for the end of the text
  if (zero != text.npos) {
    const Place place = place_of(text, zero + 1);
    fail(ErrorKind::kCorrupt, "[{}] '{}': line {}, column {} is not JSON: a zero byte", operation,
         where, place.line, place.column);
  }
  Guard guard{operation, where, {}};
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      return guard(depth, event, parsed);
    });
  } catch (const nlohmann::json::parse_error& error) {
    const Place place = place_of(text, error.byte);
    fail(ErrorKind::kCorrupt, "[{}] '{}': line {}, column {} is not JSON: {}", operation, where,
         place.line, place.column, error.what());
  } catch (const nlohmann::json::out_of_range& error) {
    fail(ErrorKind::kCorrupt, "[{}] '{}': a number is too large: {}", operation, where,
         error.what());
  }
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

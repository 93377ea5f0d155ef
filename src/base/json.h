// JSON from strangers: parsed with limits, duplicate keys refused, errors with line and column.
// Includes a heavy header: for .cpp files only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tranship {

using Json = nlohmann::ordered_json;

/// Whether Infinity, -Infinity and NaN are numbers: JSON has none of them, but Python writes them,
/// and config.json files hold them.
enum class NonFinite { kRefused, kAsPython };

/// Parses one JSON document. `operation` and `where` (a file's name) open the error messages.
/// Errors: corrupt for bad syntax, depth over 256, a duplicate key in one object, invalid UTF-8,
/// text after the end, a number that no f64 holds.
Json parse_json(std::string_view operation, std::string_view where, std::string_view text,
                NonFinite non_finite = NonFinite::kRefused);

/// What is wrong where nlohmann's parser stopped: "expected ',' or '}', found 'x'". `byte`: how
/// many it has read; `message`: what it says.
std::string syntax_problem(std::string_view text, size_t byte, std::string_view message);

/// As Python's json.dumps(indent=2, ensure_ascii=False) lays it out; `sorted` = sort_keys.
/// Floats are written as Python writes them ("1e-05", "10000.0"); infinities and NaN as Infinity,
/// -Infinity, NaN.
std::string to_python_json(const Json& value, bool sorted = false);
/// As json.dumps(value): on one line, with ", " and ": ", and in ASCII.
std::string to_python_json_line(const Json& value);

}  // namespace tranship

// How attributes look in the text form: one pair of functions a type, format and parse.
// Internal to ir/: op.cpp writes, parse.cpp reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace tranship::ir {

std::string format_attribute(int64_t value);
std::string format_attribute(double value);
std::string format_attribute(bool value);
std::string format_attribute(const std::string& value);
std::string format_attribute(DType value);
std::string format_attribute(const Dim& value);
std::string format_attribute(const Shape& value);
std::string format_attribute(const std::vector<int64_t>& value);
std::string format_attribute(const std::vector<double>& value);
std::string format_attribute(const std::optional<int64_t>& value);
std::string format_attribute(const Tensor& value);
template <class E>
  requires std::is_enum_v<E>
std::string format_attribute(E value) {
  return std::string(names_of(value)[static_cast<size_t>(value)]);
}

/// A list of names as an error shows it.
[[noreturn]] void fail_word(std::string_view found, std::string_view expected);

void parse_attribute(std::string_view text, int64_t& value);
void parse_attribute(std::string_view text, double& value);
void parse_attribute(std::string_view text, bool& value);
void parse_attribute(std::string_view text, std::string& value);
void parse_attribute(std::string_view text, DType& value);
void parse_attribute(std::string_view text, Dim& value);
void parse_attribute(std::string_view text, Shape& value);
void parse_attribute(std::string_view text, std::vector<int64_t>& value);
void parse_attribute(std::string_view text, std::vector<double>& value);
void parse_attribute(std::string_view text, std::optional<int64_t>& value);
void parse_attribute(std::string_view text, Tensor& value);
template <class E>
  requires std::is_enum_v<E>
void parse_attribute(std::string_view text, E& value) {
  const auto names = names_of(value);
  std::string known;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) {
      value = static_cast<E>(i);
      return;
    }
    known += (i > 0 ? ", " : "") + std::string(names[i]);
  }
  fail_word(text, known);
}

/// Where `mark` first stands outside brackets and quotes, from `begin` on; npos if nowhere.
size_t find_outside(std::string_view text, std::string_view mark, size_t begin = 0);
/// Splits at commas that stand outside brackets and quotes; trims.
std::vector<std::string_view> split_list(std::string_view text);

}  // namespace tranship::ir

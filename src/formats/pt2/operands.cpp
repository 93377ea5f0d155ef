#include "formats/pt2/operands.h"

#include <fmt/format.h>

#include <cmath>

#include "formats/pt2/tensor_meta.h"

namespace tranship::pt2 {
namespace {

std::string join(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ","));
}

/// Infinities and NaN are texts; a whole number keeps its point.
std::string number(double value) {
  if (std::isnan(value)) return R"("NaN")";
  if (std::isinf(value)) return value > 0 ? R"("Infinity")" : R"("-Infinity")";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

}  // namespace

std::string as_none() { return R"({"as_none":true})"; }

std::string as_tensor(std::string_view name) {
  return fmt::format(R"({{"as_tensor":{{"name":"{}"}}}})", name);
}

std::string as_tensors(const std::vector<std::string>& names) {
  std::vector<std::string> items;
  for (const std::string& name : names) items.push_back(fmt::format(R"({{"name":"{}"}})", name));
  return fmt::format(R"({{"as_tensors":[{}]}})", join(items));
}

std::string as_optional_tensors(const std::vector<std::string>& names) {
  std::vector<std::string> items;
  for (const std::string& name : names) items.push_back(name.empty() ? as_none() : as_tensor(name));
  return fmt::format(R"({{"as_optional_tensors":[{}]}})", join(items));
}

std::string as_int(int64_t value) { return fmt::format(R"({{"as_int":{}}})", value); }

std::string as_ints(const std::vector<int64_t>& values) {
  return fmt::format(R"({{"as_ints":[{}]}})", fmt::join(values, ","));
}

std::string as_float(double value) { return fmt::format(R"({{"as_float":{}}})", number(value)); }

std::string as_floats(const std::vector<double>& values) {
  std::vector<std::string> items;
  for (const double value : values) items.push_back(number(value));
  return fmt::format(R"({{"as_floats":[{}]}})", join(items));
}

std::string as_bool(bool value) { return fmt::format(R"({{"as_bool":{}}})", value); }

std::string as_string(std::string_view text) {
  return fmt::format(R"({{"as_string":{}}})", json_text(text));
}

std::string as_dtype(DType dtype) {
  return fmt::format(R"({{"as_scalar_type":{}}})", scalar_type(dtype));
}

std::string as_cpu() { return R"({"as_device":{"type":"cpu","index":null}})"; }

std::string as_scalar(const Tensor& value) {
  if (value.dtype() == DType::kI64) return as_int(value.i64()[0]);
  const double element = value.at(0);
  if (value.dtype() == DType::kBool) return as_bool(element != 0);
  return is_integer(value.dtype()) ? as_int(static_cast<int64_t>(element)) : as_float(element);
}

}  // namespace tranship::pt2

// The arguments of an ATen operator as model.json has them: each function gives a piece of JSON.
// Source: torch/_export/serde/schema.py (2.13).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tranship/tensor.h"

namespace tranship::pt2 {

/// An argument by its name in the operator's schema.
struct Operand {
  std::string name;
  std::string json;
  /// The schema has it behind the '*', or an earlier optional argument is left out.
  bool keyword = false;
};

std::string as_none();
std::string as_tensor(std::string_view name);
std::string as_tensors(const std::vector<std::string>& names);
/// An empty name is None.
std::string as_optional_tensors(const std::vector<std::string>& names);
std::string as_int(int64_t value);
std::string as_ints(const std::vector<int64_t>& values);
std::string as_float(double value);
std::string as_floats(const std::vector<double>& values);
std::string as_bool(bool value);
std::string as_string(std::string_view text);
std::string as_dtype(DType dtype);
std::string as_cpu();
/// The only element of a tensor as a Scalar of its dtype's kind.
std::string as_scalar(const Tensor& value);

}  // namespace tranship::pt2

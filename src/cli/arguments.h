// Values of options: sizes, ranges, and small tensors written by hand. Pure functions.
// Errors of all: UsageError, with the option, what was found, and an example of what is right.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tranship/exporters.h"
#include "tranship/tensor.h"

namespace tranship::cli {

/// "batch=1", "sequence=128" -> sizes by name. A name stands once; sizes are 1 to 2^31 - 1.
std::map<std::string, int64_t> parse_sizes(const std::vector<std::string>& items);

/// "sequence=1:2048" -> a range. "sequence=16:" has no upper end, "sequence=:2048" begins at 1.
/// A range may begin at 0 (past).
DynamicDim parse_range(std::string_view text);
/// Ranges by name. A name stands once.
std::map<std::string, DynamicDim> parse_ranges(const std::vector<std::string>& items);

/// "name=value", cut at the first "=".
struct Assignment {
  std::string name;
  std::string value;
};
Assignment parse_assignment(std::string_view option, std::string_view text);

/// "[[1, 2, 3]]" -> i64 [1, 3]. Whole numbers are i64, with a point or an exponent f32, true and
/// false bool; a single value is a scalar. Lists of one depth have one length. `name` is for
/// messages, and so is `source`: where the text comes from, if not from the line ("@x.json").
Tensor parse_tensor(std::string_view name, std::string_view text, std::string_view source = "");

}  // namespace tranship::cli

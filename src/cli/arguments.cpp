#include "cli/arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/json.h"
#include "cli/usage.h"

namespace tranship::cli {
namespace {

constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();  // of one axis

int64_t parse_size(std::string_view option, std::string_view whole, std::string_view digits,
                   int64_t least = 1) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (is_number && size >= least && size <= kMostElements) return size;
  throw UsageError(fmt::format("{} '{}': '{}' is not a size: a whole number from {} to {}", option,
                               whole, digits, least, kMostElements));
}

/// Text for a message, which may be that of a whole file.
std::string shortened(std::string_view text) {
  constexpr size_t kMost = 60;
  return text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "...";
}

/// Collects the leaves of nested lists, and checks that they make a tensor.
class Literal {
 public:
  Literal(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  Tensor tensor(const Json& value) {
    measure(value);
    visit(value, 0);
    if (leaves_.empty())
      error("an empty list says nothing of its dtype: pass it in a .safetensors file");
    const bool any_bool =
        std::ranges::any_of(leaves_, [](const Json* v) { return v->is_boolean(); });
    const bool any_float =
        std::ranges::any_of(leaves_, [](const Json* v) { return v->is_number_float(); });
    if (any_bool && !std::ranges::all_of(leaves_, [](const Json* v) { return v->is_boolean(); })) {
      error("numbers and booleans are mixed");
    }
    Tensor out(any_bool ? DType::kBool : any_float ? DType::kF32 : DType::kI64, shape_);
    for (size_t i = 0; i < leaves_.size(); ++i) store(out, static_cast<int64_t>(i), *leaves_[i]);
    return out;
  }

 private:
  [[noreturn]] void error(std::string_view what) const {
    throw UsageError(fmt::format("--input {}={}: {}", name_, shortened(text_), what));
  }

  /// The shape, from the first element at each depth.
  void measure(const Json& value) {
    const Json* v = &value;
    while (v->is_array()) {
      shape_.push_back(static_cast<int64_t>(v->size()));
      if (v->empty()) return;
      v = &v->front();
    }
  }

  void visit(const Json& value, size_t depth) {
    if (depth < shape_.size()) {
      if (!value.is_array() || static_cast<int64_t>(value.size()) != shape_[depth]) {
        error("all lists of one depth must have one length");
      }
      for (const Json& item : value) visit(item, depth + 1);
      return;
    }
    if (value.is_array()) error("all lists of one depth must have one length");
    if (!value.is_number() && !value.is_boolean())
      error("only numbers, true and false make a tensor");
    leaves_.push_back(&value);
  }

  void store(Tensor& out, int64_t i, const Json& leaf) const {
    if (leaf.is_boolean()) {
      out.set(i, leaf.get<bool>() ? 1 : 0);
    } else if (out.dtype() == DType::kF32) {
      out.set(i, leaf.get<double>());
    } else {
      if (leaf.is_number_unsigned() && leaf.get<uint64_t>() > INT64_MAX)
        error("a number does not fit 64 bits");
      out.i64()[static_cast<size_t>(i)] = leaf.get<int64_t>();
    }
  }

  std::string_view name_;
  std::string_view text_;
  std::vector<int64_t> shape_;
  std::vector<const Json*> leaves_;
};

}  // namespace

Assignment parse_assignment(std::string_view option, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageError(fmt::format("{} '{}': expected NAME=VALUE", option, text));
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::map<std::string, int64_t> parse_sizes(const std::vector<std::string>& items) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& item : items) {
    const Assignment assignment = parse_assignment("--static", item);
    const int64_t size = parse_size("--static", item, assignment.value);
    if (!sizes.emplace(assignment.name, size).second) {
      throw UsageError(
          fmt::format("--static: '{}' has two sizes; write it once, as in batch=1,sequence=128",
                      assignment.name));
    }
  }
  return sizes;
}

DynamicDim parse_range(std::string_view text) {
  const Assignment assignment = parse_assignment("--dim", text);
  const std::string_view range = assignment.value;
  const size_t colon = range.find(':');
  if (colon == range.npos || range.size() == 1) {
    throw UsageError(fmt::format("--dim '{}': expected NAME=MIN:MAX, as in sequence=1:2048", text));
  }
  DynamicDim dim{.name = assignment.name};
  if (colon > 0) dim.min = parse_size("--dim", text, range.substr(0, colon), 0);
  if (colon + 1 < range.size()) dim.max = parse_size("--dim", text, range.substr(colon + 1));
  if (dim.max && *dim.max < dim.min) {
    throw UsageError(fmt::format("--dim '{}': the least size, {}, is over the greatest, {}", text,
                                 dim.min, *dim.max));
  }
  return dim;
}

std::map<std::string, DynamicDim> parse_ranges(const std::vector<std::string>& items) {
  std::map<std::string, DynamicDim> ranges;
  for (const std::string& item : items) {
    DynamicDim dim = parse_range(item);
    const std::string name = dim.name;
    if (!ranges.emplace(name, std::move(dim)).second)
      throw UsageError(fmt::format("--dim: '{}' has two ranges", name));
  }
  return ranges;
}

Tensor parse_tensor(std::string_view name, std::string_view text, std::string_view source) {
  const std::string_view shown = source.empty() ? text : source;
  Json value;
  try {
    value = parse_json("--input", name, text);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    const size_t place = message.find("line ");  // of a file it says where
    throw UsageError(fmt::format(
        "--input {}={}: expected a number, true, false, or nested lists of them, as in [[1, 2, "
        "3]]; or @FILE.safetensors{}",
        name, shortened(shown),
        source.empty() || place == message.npos ? ""
                                                : fmt::format(" ({})", message.substr(place))));
  }
  return Literal(name, shown).tensor(value);
}

}  // namespace tranship::cli

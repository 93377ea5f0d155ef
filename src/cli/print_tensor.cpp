#include "cli/print_tensor.h"

#include <fmt/core.h>

#include "cli/format.h"

namespace tranship::cli {
namespace {

constexpr int64_t kShown = 3;                 // at each end of a long axis
constexpr int64_t kLongest = 2 * kShown + 1;  // longer axes are cut

std::string element(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kBool) return tensor.at(i) != 0 ? "true" : "false";
  if (tensor.dtype() == DType::kI64) return std::to_string(tensor.i64()[static_cast<size_t>(i)]);
  if (is_integer(tensor.dtype())) return fmt::format("{:.0f}", tensor.at(i));
  return fmt::format("{:.6g}", tensor.at(i));
}

/// The elements below `axis` that begin at `first`.
std::string elements(const Tensor& tensor, size_t axis, int64_t first, int64_t stride,
                     size_t indent) {
  const std::vector<int64_t>& shape = tensor.shape();
  if (axis == shape.size()) return element(tensor, first);
  const bool is_row = axis + 1 == shape.size();
  const std::string between = is_row ? ", " : ",\n" + std::string(indent + 1, ' ');
  const int64_t size = shape[axis];
  const int64_t step = size > 0 ? stride / size : 0;
  std::string out = "[";
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) out += between;
    if (size > kLongest && i == kShown) {
      out += "...";
      i = size - kShown - 1;
      continue;
    }
    out += elements(tensor, axis + 1, first + i * step, step, indent + 1);
  }
  return out + "]";
}

}  // namespace

std::string describe_tensor(std::string_view name, const Tensor& tensor) {
  std::string shape;
  for (const int64_t size : tensor.shape())
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  return fmt::format("{} {}[{}]\n  {}\n", printable(name), tranship::name(tensor.dtype()), shape,
                     elements(tensor, 0, 0, tensor.num_elements(), 2));
}

}  // namespace tranship::cli

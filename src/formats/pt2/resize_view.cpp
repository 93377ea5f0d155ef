#include "formats/pt2/resize_view.h"

#include "formats/pt2/expression.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;

std::optional<std::vector<Dim>> strides_of(const TensorMeta* meta) {
  if (meta == nullptr) return std::nullopt;
  std::vector<Dim> out;
  for (const Size& stride : meta->strides) {
    const auto* expression = std::get_if<Expression>(&stride);
    const std::optional<Dim> dim =
        expression == nullptr ? Dim(std::get<int64_t>(stride)) : read_expression(expression->text);
    if (!dim) return std::nullopt;
    out.push_back(*dim);
  }
  return out;
}

/// Without max(1, size): PyTorch writes a stride behind an axis that might be empty so.
bool same_stride(const Dim& stride, const Dim& expected) {
  if (stride == expected) return true;
  const std::vector<Dim::Term> terms = stride.terms();
  if (terms.size() != 1) return false;
  Dim product = terms[0].coefficient;
  for (const Dim::Factor& factor : terms[0].factors) {
    const bool of_one = factor.kind == Dim::Factor::Kind::kMax;
    const Dim one(1);
    if (of_one && factor.arguments[0] == one) {
      product = product * factor.arguments[1];
    } else if (of_one && factor.arguments[1] == one) {
      product = product * factor.arguments[0];
    } else {
      product = product * Dim::parse(factor.text);
    }
  }
  return product == expected;
}

}  // namespace

Shape resolved_shape(Call& call, const Shape& from, const std::vector<Dim>& sizes) {
  Shape to(sizes);
  Dim rest = 1;
  int64_t open = -1;
  for (int64_t i = 0; i < to.rank(); ++i) {
    if (!(to[i] == Dim(-1))) {
      rest = rest * to[i];
    } else if (open < 0) {
      open = i;
    } else {
      call.corrupt("two sizes are -1");
    }
  }
  if (open < 0) return to;
  const Dim elements = from.num_elements();
  const bool divides = !(rest == Dim(0));
  if (divides) to[open] = floor_div(elements, rest);
  if (divides && to[open] * rest == elements) return to;
  const auto said = call.output_sizes();
  if (static_cast<size_t>(open) < said.size() && said[static_cast<size_t>(open)])
    to[open] = *said[static_cast<size_t>(open)];
  return to;
}

bool is_contiguous(const TensorMeta* meta, const Shape& shape) {
  const std::optional<std::vector<Dim>> strides = strides_of(meta);
  if (!strides || std::ssize(*strides) != shape.rank()) return false;
  Dim expected = 1;
  for (int64_t i = shape.rank(); i-- > 0;) {
    if (shape[i] == Dim(1)) continue;
    if (!same_stride((*strides)[static_cast<size_t>(i)], expected)) return false;
    expected = expected * shape[i];
  }
  return true;
}

bool is_viewable(const TensorMeta* meta, const Shape& from, const Shape& to) {
  if (is_contiguous(meta, from)) return true;
  const std::optional<std::vector<Dim>> strides = strides_of(meta);
  if (!strides || std::ssize(*strides) != from.rank() || from.rank() == 0) return false;
  const auto stride = [&](int64_t i) { return (*strides)[static_cast<size_t>(i)]; };
  int64_t view = to.rank() - 1;
  Dim base = stride(from.rank() - 1), elements = 1, seen = 1;
  for (int64_t i = from.rank() - 1; i >= 0; --i) {
    elements = elements * from[i];
    const bool goes_on =
        i > 0 && (from[i - 1] == Dim(1) || same_stride(stride(i - 1), elements * base));
    if (goes_on) continue;
    while (view >= 0 && (!(seen == elements) || to[view] == Dim(1))) seen = seen * to[view--];
    if (!(seen == elements)) return false;
    if (i > 0) base = stride(i - 1);
    elements = 1;
    seen = 1;
  }
  return view < 0;
}

}  // namespace tranship::pt2

#include "formats/pt2/bounds.h"

#include <algorithm>

namespace tranship::pt2 {
namespace {

using ir::Dim;
using End = std::optional<int64_t>;

End add(End a, End b) {
  int64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return std::nullopt;
  return sum;
}

End multiply(End a, End b) {
  int64_t product = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product)) return std::nullopt;
  return product;
}

/// Of factors that are not negative; others have no known product.
Interval multiply(const Interval& a, const Interval& b) {
  const bool known = a.min && *a.min >= 0 && b.min && *b.min >= 0;
  if (!known) return {};
  return {multiply(a.min, b.min), multiply(a.max, b.max)};
}

Interval scale(const Interval& a, int64_t coefficient) {
  const End low = multiply(a.min, coefficient), high = multiply(a.max, coefficient);
  return coefficient >= 0 ? Interval{low, high} : Interval{high, low};
}

template <class F>
End both(End a, End b, F&& f) {
  if (!a || !b) return std::nullopt;
  return f(*a, *b);
}

/// The end that is there decides: min(x, 5) is at most 5.
template <class F>
End either(End a, End b, F&& f) {
  if (!a) return b;
  if (!b) return a;
  return f(*a, *b);
}

constexpr auto kSmaller = [](int64_t a, int64_t b) { return std::min(a, b); };
constexpr auto kLarger = [](int64_t a, int64_t b) { return std::max(a, b); };

}  // namespace

Interval Bounds::of(const Dim::Factor& factor) const {
  if (factor.kind == Dim::Factor::Kind::kSymbol) {
    const auto it = symbols_.find(factor.symbol);
    return it == symbols_.end() ? Interval{0, std::nullopt} : it->second;
  }
  const Interval a = of(factor.arguments[0]), b = of(factor.arguments[1]);
  switch (factor.kind) {
    case Dim::Factor::Kind::kFloorDiv:
      if (!a.min || *a.min < 0 || !b.min || *b.min < 1) return {};
      return {b.max ? *a.min / *b.max : 0, a.max ? End(*a.max / *b.min) : std::nullopt};
    case Dim::Factor::Kind::kMod:
      if (!b.min || *b.min < 1) return {};
      return {0, b.max ? End(*b.max - 1) : std::nullopt};
    case Dim::Factor::Kind::kMin:
      return {both(a.min, b.min, kSmaller), either(a.max, b.max, kSmaller)};
    case Dim::Factor::Kind::kMax:
      return {either(a.min, b.min, kLarger), both(a.max, b.max, kLarger)};
    case Dim::Factor::Kind::kSymbol:
      break;
  }
  return {};
}

Interval Bounds::of(const Dim& dim) const {
  Interval sum{0, 0};
  for (const Dim::Term& term : dim.terms()) {
    Interval product{1, 1};
    for (const Dim::Factor& factor : term.factors) product = multiply(product, of(factor));
    if (term.factors.size() == 1) product = of(term.factors[0]);
    product = scale(product, term.coefficient);
    sum = {add(sum.min, product.min), add(sum.max, product.max)};
  }
  return sum;
}

bool Bounds::is_known_le(const Dim& a, const Dim& b) const {
  const Interval difference = of(b - a);
  return difference.min && *difference.min >= 0;
}

Dim Bounds::smaller(const Dim& a, const Dim& b) const {
  if (is_known_le(a, b)) return a;
  if (is_known_le(b, a)) return b;
  return min(a, b);
}

Dim Bounds::larger(const Dim& a, const Dim& b) const {
  if (is_known_le(a, b)) return b;
  if (is_known_le(b, a)) return a;
  return max(a, b);
}

Dim Bounds::clamp(const Dim& index, const Dim& size) const {
  const Interval interval = of(index);
  const bool from_end = interval.max && *interval.max < 0;
  if (!from_end && !(interval.min && *interval.min >= 0)) {
    // Of unknown sign: negative ones gain a size, and end at 0 at the least.
    const Dim wrapped = max(index + size, 0);
    const Dim is_negative = min(max(-1 * index, 0), 1);
    return smaller(is_negative * wrapped + (1 - is_negative) * max(index, 0), size);
  }
  if (from_end) return larger(index + size, 0);
  return smaller(larger(index, 0), size);
}

}  // namespace tranship::pt2

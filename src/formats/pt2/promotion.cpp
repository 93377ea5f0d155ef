#include "formats/pt2/promotion.h"

#include "base/error.h"

namespace tranship::pt2 {
namespace {

int category(DType dtype) { return dtype == DType::kBool ? 0 : is_integer(dtype) ? 1 : 2; }

bool is_small_float(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }

DType promote_integers(DType a, DType b) {
  const auto wide_unsigned = [](DType t) {
    return t == DType::kU16 || t == DType::kU32 || t == DType::kU64;
  };
  if (wide_unsigned(a) || wide_unsigned(b)) {
    fail(ErrorKind::kUnsupported, "promotion of {} and {}", name(a), name(b));
  }
  if (a == DType::kU8 || b == DType::kU8) {
    const DType other = a == DType::kU8 ? b : a;
    return other == DType::kI8 ? DType::kI16 : other;
  }
  return size_bytes(a) >= size_bytes(b) ? a : b;
}

void widen(std::optional<DType>& to, DType dtype) { to = to ? promote(*to, dtype) : dtype; }

/// `higher` decides, but for a category that only `lower` has.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher) return lower;
  if (!lower || category(*higher) >= category(*lower)) return higher;
  return promote(*higher, *lower);
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_small_float(a) || is_small_float(b))
    fail(ErrorKind::kUnsupported, "promotion of {} and {}", name(a), name(b));
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 1) return promote_integers(a, b);
  if (size_bytes(a) == 2 && size_bytes(b) == 2) return DType::kF32;  // f16 and bf16
  return size_bytes(a) > size_bytes(b) ? a : b;
}

Promotion& Promotion::add(const ir::Value& tensor) {
  if (tensor) widen(tensor.rank() > 0 ? with_axes_ : without_axes_, tensor.dtype());
  return *this;
}

Promotion& Promotion::add(const Number& number) {
  switch (kind_of(number)) {
    case NumberKind::kBool:
      widen(number_, DType::kBool);
      break;
    case NumberKind::kInt:
      widen(number_, DType::kI64);
      break;
    case NumberKind::kFloat:
      widen(number_, DType::kF32);  // PyTorch's default dtype
      break;
  }
  return *this;
}

DType Promotion::result() const {
  const std::optional<DType> dtype = combine(combine(with_axes_, without_axes_), number_);
  check(dtype.has_value(), "promotion of nothing");
  return *dtype;
}

}  // namespace tranship::pt2

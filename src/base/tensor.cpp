#include "tranship/tensor.h"

#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"
#include "base/half.h"

namespace tranship {
namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) {
    if (d < 0) fail(ErrorKind::kInvalidArgument, "[tensor] a dimension is negative: {}", d);
    if (__builtin_mul_overflow(n, d, &n)) {
      fail(ErrorKind::kInvalidArgument, "[tensor] the number of elements does not fit in 64 bits");
    }
  }
  return n;
}

size_t total_bytes(DType dtype, int64_t elements) {
  size_t bytes = 0;
  if (!multiply(static_cast<size_t>(elements), size_bytes(dtype), &bytes)) {
    fail(ErrorKind::kInvalidArgument, "[tensor] the number of bytes does not fit in 64 bits");
  }
  return bytes;
}

template <class T>
Tensor copied(std::span<const T> values, DType dtype, std::vector<int64_t> shape) {
  Tensor t(dtype, std::move(shape));
  if (static_cast<size_t>(t.num_elements()) != values.size()) {
    fail(ErrorKind::kInvalidArgument, "[tensor] {} values for a shape of {} elements",
         values.size(), t.num_elements());
  }
  if (!values.empty()) std::memcpy(t.bytes().data(), values.data(), values.size_bytes());
  return t;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

void require_dtype(DType found, DType expected) {
  if (found != expected) {
    fail(ErrorKind::kInvalidArgument, "[tensor] read as {}, but its dtype is {}", name(expected),
         name(found));
  }
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      num_elements_(product(shape_)),
      bytes_(total_bytes(dtype, num_elements_)) {}

Tensor Tensor::of(std::span<const float> values, std::vector<int64_t> shape) {
  return copied(values, DType::kF32, std::move(shape));
}
Tensor Tensor::of(std::span<const int64_t> values, std::vector<int64_t> shape) {
  return copied(values, DType::kI64, std::move(shape));
}
Tensor Tensor::of_bool(const std::vector<bool>& values, std::vector<int64_t> shape) {
  std::vector<uint8_t> bytes(values.begin(), values.end());
  return copied(std::span<const uint8_t>(bytes), DType::kBool, std::move(shape));
}

std::span<float> Tensor::f32() {
  require_dtype(dtype_, DType::kF32);
  return {reinterpret_cast<float*>(bytes_.data()), static_cast<size_t>(num_elements_)};
}
std::span<const float> Tensor::f32() const { return const_cast<Tensor*>(this)->f32(); }
std::span<int64_t> Tensor::i64() {
  require_dtype(dtype_, DType::kI64);
  return {reinterpret_cast<int64_t*>(bytes_.data()), static_cast<size_t>(num_elements_)};
}
std::span<const int64_t> Tensor::i64() const { return const_cast<Tensor*>(this)->i64(); }

double Tensor::at(int64_t i) const {
  check(i >= 0 && i < num_elements_, "tensor index out of range");
  const std::byte* p = bytes_.data() + static_cast<size_t>(i) * size_bytes(dtype_);
  switch (dtype_) {
    case DType::kF64:
      return load<double>(p);
    case DType::kF32:
      return load<float>(p);
    case DType::kF16:
      return f16_to_f32(load<uint16_t>(p));
    case DType::kBF16:
      return bf16_to_f32(load<uint16_t>(p));
    case DType::kF8E4M3:
      return f8_e4m3_to_f32(load<uint8_t>(p));
    case DType::kF8E5M2:
      return f8_e5m2_to_f32(load<uint8_t>(p));
    case DType::kI64:
      return static_cast<double>(load<int64_t>(p));
    case DType::kI32:
      return load<int32_t>(p);
    case DType::kI16:
      return load<int16_t>(p);
    case DType::kI8:
      return load<int8_t>(p);
    case DType::kU64:
      return static_cast<double>(load<uint64_t>(p));
    case DType::kU32:
      return load<uint32_t>(p);
    case DType::kU16:
      return load<uint16_t>(p);
    case DType::kU8:
      return load<uint8_t>(p);
    case DType::kBool:
      return load<uint8_t>(p) != 0 ? 1 : 0;
  }
  return 0;
}

void Tensor::set(int64_t i, double value) {
  check(i >= 0 && i < num_elements_, "tensor index out of range");
  std::byte* p = bytes_.data() + static_cast<size_t>(i) * size_bytes(dtype_);
  switch (dtype_) {
    case DType::kF64:
      return store(p, value);
    case DType::kF32:
      return store(p, static_cast<float>(value));
    case DType::kF16:
      return store(p, f32_to_f16(static_cast<float>(value)));
    case DType::kBF16:
      return store(p, f32_to_bf16(static_cast<float>(value)));
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      fail(ErrorKind::kUnsupported, "[tensor] {} values cannot be made", name(dtype_));
    case DType::kI64:  // the largest i64 is a double that is one too large
      return store(
          p, value >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(value));
    case DType::kI32:
      return store(p, static_cast<int32_t>(value));
    case DType::kI16:
      return store(p, static_cast<int16_t>(value));
    case DType::kI8:
      return store(p, static_cast<int8_t>(value));
    case DType::kU64:
      return store(p, static_cast<uint64_t>(value));
    case DType::kU32:
      return store(p, static_cast<uint32_t>(value));
    case DType::kU16:
      return store(p, static_cast<uint16_t>(value));
    case DType::kU8:
      return store(p, static_cast<uint8_t>(value));
    case DType::kBool:
      return store(p, static_cast<uint8_t>(value != 0));
  }
}

}  // namespace tranship

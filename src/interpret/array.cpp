#include "interpret/array.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/half.h"

namespace tranship {

int64_t product(const Sizes& sizes, int64_t begin, int64_t end) {
  int64_t n = 1;
  for (int64_t i = begin; i < end; ++i) n *= sizes[static_cast<size_t>(i)];
  return n;
}
int64_t product(const Sizes& sizes) {
  return product(sizes, 0, static_cast<int64_t>(sizes.size()));
}
int64_t axis_of(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

Array::Array(DType d, Sizes s)
    : dtype(d), shape(std::move(s)), data(static_cast<size_t>(product(shape))) {}

Array Array::of(const Tensor& tensor) {
  Array a(tensor.dtype(), tensor.shape());
  for (int64_t i = 0; i < a.size(); ++i) a[i] = tensor.at(i);
  return a;
}

Tensor Array::to_tensor() const {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < size(); ++i) t.set(i, (*this)[i]);
  return t;
}

void Array::round() {
  for (double& v : data) {
    switch (dtype) {
      case DType::kF64:
        break;
      case DType::kF32:
        v = static_cast<float>(v);
        break;
      case DType::kF16:
        v = f16_to_f32(f32_to_f16(static_cast<float>(v)));
        break;
      case DType::kBF16:
        v = bf16_to_f32(f32_to_bf16(static_cast<float>(v)));
        break;
      case DType::kBool:
        v = v != 0 ? 1 : 0;
        break;
      default:
        v = std::trunc(v);
    }
  }
}

Sizes broadcast_shape(const Sizes& a, const Sizes& b) {
  Sizes out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      fail(ErrorKind::kInvalidArgument, "[interpret] sizes {} and {} do not broadcast", x, y);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::vector<int64_t> broadcast_index(const Sizes& shape, const Sizes& operand) {
  std::vector<int64_t> strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < operand.size(); ++i) {
    const int64_t size = operand[operand.size() - 1 - i];
    if (size != 1) strides[shape.size() - 1 - i] = stride;
    stride *= size;
  }
  std::vector<int64_t> index(static_cast<size_t>(product(shape)));
  Sizes at(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t& entry : index) {
    entry = offset;
    for (size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return index;
}

}  // namespace tranship

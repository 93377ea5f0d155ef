// A tensor as the interpreter computes with it: all numbers as double, with the dtype that they are
// rounded to.
#pragma once

#include <cstdint>
#include <vector>

#include "tranship/tensor.h"

namespace tranship {

using Sizes = std::vector<int64_t>;

struct Array {
  DType dtype = DType::kF32;
  Sizes shape;
  std::vector<double> data;

  Array() = default;
  Array(DType d, Sizes s);
  static Array of(const Tensor& tensor);
  Tensor to_tensor() const;
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  double& operator[](int64_t i) { return data[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return data[static_cast<size_t>(i)]; }
  /// Rounds all elements to the dtype.
  void round();
};

int64_t product(const Sizes& sizes);
int64_t product(const Sizes& sizes, int64_t begin, int64_t end);
/// A negative axis counts from the end.
int64_t axis_of(int64_t axis, int64_t rank);
Sizes broadcast_shape(const Sizes& a, const Sizes& b);

/// Walks all positions of `shape` in order and gives, for an operand that broadcasts to it, the
/// operand's index.
std::vector<int64_t> broadcast_index(const Sizes& shape, const Sizes& operand);

}  // namespace tranship

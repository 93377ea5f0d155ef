// A tensor in host memory: what goes into a program and what comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tranship/dtype.h"

namespace tranship {

/// Owns its bytes: row-major, dense, little-endian. A scalar has an empty shape.
class Tensor {
 public:
  /// A zeroed tensor. Errors: invalid_argument for a negative or overflowing size.
  Tensor(DType dtype, std::vector<int64_t> shape);
  Tensor() : Tensor(DType::kF32, {0}) {}

  /// Copies values. Errors: invalid_argument if their number is not the product of the shape.
  static Tensor of(std::span<const float> values, std::vector<int64_t> shape);
  static Tensor of(std::span<const int64_t> values, std::vector<int64_t> shape);
  static Tensor of_bool(const std::vector<bool>& values, std::vector<int64_t> shape);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// The elements as a C++ array. Errors: invalid_argument if the dtype is another one.
  std::span<float> f32();
  std::span<const float> f32() const;
  std::span<int64_t> i64();
  std::span<const int64_t> i64() const;

  /// Element `i` of any dtype, as a number (bool: 0 or 1).
  double at(int64_t i) const;
  /// Stores a number as the tensor's dtype (floats: round to nearest even).
  void set(int64_t i, double value);

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t num_elements_;
  std::vector<std::byte> bytes_;
};

/// Tensors by name, in order of name.
using NamedTensors = std::map<std::string, Tensor>;

}  // namespace tranship

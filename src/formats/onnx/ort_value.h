// A tensor as ONNX Runtime holds it: in its memory, or over the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tranship/dtype.h"
#include "tranship/tensor.h"

namespace tranship::onnx {

class OrtLibrary;
struct OrtMemoryInfo;
struct OrtTensorInfo;
struct OrtValue;

/// Owns a tensor of ONNX Runtime, or a claim on one that several hold: a value that is bound, or
/// that came out of a binding, lives as long as anyone needs it, the session included. Values over
/// the caller's memory do not own that.
class Value {
 public:
  /// Adopts an OrtValue. Errors: unsupported if it is not a tensor of a known element type.
  Value(const OrtLibrary& library, OrtValue* value);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  /// Whether its memory can be read by the processor; that of a GPU cannot.
  bool on_host() const { return on_host_; }

  size_t size_bytes() const { return size_bytes_; }

  /// The elements, row-major. Errors: unsupported if they are not in host memory.
  std::span<std::byte> bytes();
  std::span<const std::byte> bytes() const;
  /// A copy. Errors: as bytes().
  Tensor to_tensor() const;

  OrtValue* handle() const { return value_.get(); }

 private:
  struct Release {
    const OrtLibrary* library = nullptr;
    void operator()(OrtValue* value) const noexcept;
  };
  std::unique_ptr<OrtValue, Release> value_;
  DType dtype_ = DType::kF32;
  std::vector<int64_t> shape_;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  bool on_host_ = true;
};

/// What a tensor takes. Errors: invalid_argument for a negative or overflowing size.
size_t bytes_of(DType dtype, const std::vector<int64_t>& shape);

/// A tensor of the given shape in ONNX Runtime's host memory; its elements are not set.
/// Errors: invalid_argument for a negative or overflowing size.
Value allocate_value(const OrtLibrary& library, DType dtype, const std::vector<int64_t>& shape);

/// A tensor over the caller's memory, which must outlive it and every run it takes part in.
/// Errors: invalid_argument if `bytes` is not exactly what dtype and shape need.
Value value_over(const OrtLibrary& library, DType dtype, const std::vector<int64_t>& shape,
                 std::span<std::byte> bytes);

/// A tensor, or a graph's input or output, as ONNX Runtime describes it.
struct OrtTensorType {
  int element_type = 0;
  std::vector<int64_t> shape;          // -1 where a dimension is symbolic or unknown
  std::vector<std::string> dim_names;  // empty where a dimension has a number or no name
};
OrtTensorType read_tensor_type(const OrtLibrary& library, const OrtTensorInfo* info);

/// ONNX's number of an element type, and back; nothing for one that tranship has no name for.
int ort_element_type(DType dtype);
std::optional<DType> find_ort_dtype(int element_type);

/// "f32[2, sequence, ?]": for messages. `dim_names` may be empty.
std::string describe(DType dtype, const std::vector<int64_t>& shape,
                     const std::vector<std::string>& dim_names);

}  // namespace tranship::onnx

// Where a parameter's numbers come from: a promise, read in blocks when an artifact is written and
// not before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "tranship/tensor.h"

namespace tranship {

/// Bytes of a mapped file.
struct FileRange {
  std::shared_ptr<const MappedFile> file;
  size_t offset = 0;
  size_t size = 0;
  Bytes bytes() const { return file->bytes().subspan(offset, size); }
};

/// A static tensor that can be read piece by piece, from several threads at once.
class TensorSource {
 public:
  /// `name` is for messages: the tensor's name in the checkpoint.
  TensorSource(std::string name, DType dtype, std::vector<int64_t> shape);
  virtual ~TensorSource() = default;

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  size_t size_bytes() const {
    return static_cast<size_t>(num_elements_) * tranship::size_bytes(dtype_);
  }

  /// Writes elements [first, first + count) in row-major order to `out`, count *
  /// size_bytes(dtype()) bytes. Fast when `first` is a multiple of 256.  Errors: what the kernel
  /// says (a cast that overflows).
  virtual void read(int64_t first, int64_t count, std::span<std::byte> out) const = 0;

  /// The range of a file that holds exactly these bytes, if there is one: then they can be copied
  /// or referred to.
  virtual std::optional<FileRange> file_range() const { return std::nullopt; }

  /// What this is a cast of, if it is one: for formats that can store one dtype and compute in
  /// another.
  virtual std::shared_ptr<const TensorSource> uncast() const { return nullptr; }

 private:
  std::string name_;
  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t num_elements_;
};

using TensorSourcePtr = std::shared_ptr<const TensorSource>;

// The closed list of kernels.

/// As the bytes lie in a file. Errors: internal if dtype * shape is not the range's size.
TensorSourcePtr range_source(std::string name, DType dtype, std::vector<int64_t> shape,
                             FileRange range);
/// As a tensor in memory.
TensorSourcePtr memory_source(std::string name, Tensor tensor);
/// Another dtype; as `source` if it has it already.
/// Reading fails with invalid_argument, naming the tensor, if a finite number becomes infinite or
/// an integer does not fit.
TensorSourcePtr cast_source(TensorSourcePtr source, DType dtype);
/// The same elements in another shape.
TensorSourcePtr reshape_source(TensorSourcePtr source, std::vector<int64_t> shape);
/// The elements of `parts`, one after another, in `shape`. Errors: internal if there are none, if
/// their dtypes differ, or they do not fill the shape.
TensorSourcePtr concat_source(std::string name, std::vector<TensorSourcePtr> parts,
                              std::vector<int64_t> shape);
/// Row r of the result is row row_of(r) of `source`; a row is all but the first axis.
TensorSourcePtr permute_rows_source(TensorSourcePtr source, std::function<int64_t(int64_t)> row_of);
/// Transposes the two axes of a matrix, block by block.
TensorSourcePtr transpose_source(TensorSourcePtr source);

/// A view of a storage: element (i, j, ...) stands at offset + i * strides[0] + j * strides[1] +
/// ... All numbers are elements, none is negative.
struct StridedLayout {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  /// How many elements the storage must have; nothing if that does not fit in 63 bits.
  std::optional<int64_t> needed_elements() const;
  /// Row-major without gaps.
  bool is_contiguous() const;
};
/// A view of the elements that lie in a range of a file; its bytes as they lie if it is contiguous.
/// Errors: internal if it reaches outside.
TensorSourcePtr strided_source(std::string name, DType dtype, StridedLayout layout,
                               FileRange storage);
/// Copies elements first, first + 1, ... of a view, in row-major order, until `out` is full.
void copy_strided(Bytes storage, const StridedLayout& layout, size_t element_bytes, int64_t first,
                  std::span<std::byte> out);

/// All of a (small) tensor at once.
Tensor read_all(const TensorSource& source);

}  // namespace tranship

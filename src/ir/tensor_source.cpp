#include "ir/tensor_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/half.h"

namespace tranship {
namespace {

constexpr int64_t kCastBlockElements = 65536;
constexpr size_t kTransposeBufferBytes = 1048576;
constexpr size_t kTransposeTile = 32;  // squared, of 8 bytes: both sides stay in the first cache

int64_t product(const std::string& name, const std::vector<int64_t>& shape, size_t element_bytes) {
  int64_t elements = 1;
  int64_t bytes = 0;
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(elements, dimension, &elements)) {
      fail(ErrorKind::kInvalidArgument,
           "[tensor] '{}': its shape is negative or its size does not fit in 64 bits", name);
    }
  }
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(element_bytes), &bytes)) {
    fail(ErrorKind::kInvalidArgument,
         "[tensor] '{}': the number of its bytes does not fit in 64 bits", name);
  }
  return elements;
}

void check_read(const TensorSource& source, int64_t first, int64_t count,
                std::span<const std::byte> out) {
  check(first >= 0 && count >= 0 && first <= source.num_elements() &&
            count <= source.num_elements() - first,
        "a tensor is read past its end");
  check(out.size() == static_cast<size_t>(count) * size_bytes(source.dtype()),
        "a tensor's buffer has another size");
}

class RangeSource final : public TensorSource {
 public:
  RangeSource(std::string name, DType dtype, std::vector<int64_t> shape, FileRange range)
      : TensorSource(std::move(name), dtype, std::move(shape)), range_(std::move(range)) {
    const size_t available = range_.file->bytes().size();
    check(range_.size == size_bytes(), "a range of a file and its tensor have different sizes");
    check(range_.offset <= available && range_.size <= available - range_.offset,
          "a tensor lies outside its file");
  }

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check_read(*this, first, count, out);
    if (out.empty()) return;
    const size_t begin = static_cast<size_t>(first) * tranship::size_bytes(dtype());
    std::memcpy(out.data(), range_.bytes().subspan(begin, out.size()).data(), out.size());
  }

  std::optional<FileRange> file_range() const override { return range_; }

 private:
  FileRange range_;
};

class MemorySource final : public TensorSource {
 public:
  MemorySource(std::string name, Tensor tensor)
      : TensorSource(std::move(name), tensor.dtype(), tensor.shape()), tensor_(std::move(tensor)) {}

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check_read(*this, first, count, out);
    if (out.empty()) return;
    const size_t begin = static_cast<size_t>(first) * tranship::size_bytes(dtype());
    std::memcpy(out.data(), tensor_.bytes().subspan(begin, out.size()).data(), out.size());
  }

 private:
  Tensor tensor_;
};

class CastSource final : public TensorSource {
 public:
  CastSource(TensorSourcePtr source, DType dtype)
      : TensorSource(source->name(), dtype, source->shape()), source_(std::move(source)) {}

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check_read(*this, first, count, out);
    if (cast(first, count, out) > 0) fail_lossy();
  }

  TensorSourcePtr uncast() const override { return source_; }

 private:
  size_t cast(int64_t first, int64_t count, std::span<std::byte> out) const {
    const size_t from_bytes = tranship::size_bytes(source_->dtype());
    const size_t to_bytes = tranship::size_bytes(dtype());
    std::vector<std::byte> buffer(static_cast<size_t>(std::min(count, kCastBlockElements)) *
                                  from_bytes);
    size_t lost = 0;
    for (int64_t done = 0; done < count; done += kCastBlockElements) {
      const auto n = static_cast<size_t>(std::min(count - done, kCastBlockElements));
      const std::span<std::byte> block = std::span(buffer).first(n * from_bytes);
      source_->read(first + done, static_cast<int64_t>(n), block);
      const auto target = out.subspan(static_cast<size_t>(done) * to_bytes, n * to_bytes);
      lost += convert(source_->dtype(), block, dtype(), target, n);
    }
    return lost;
  }

  /// Counts over the whole tensor, so that the message does not depend on how it was read.
  [[noreturn]] void fail_lossy() const {
    std::vector<std::byte> buffer(
        static_cast<size_t>(std::min(num_elements(), kCastBlockElements)) *
        tranship::size_bytes(dtype()));
    size_t lost = 0;
    for (int64_t first = 0; first < num_elements(); first += kCastBlockElements) {
      const int64_t n = std::min(num_elements() - first, kCastBlockElements);
      lost += cast(first, n,
                   std::span(buffer).first(static_cast<size_t>(n) * tranship::size_bytes(dtype())));
    }
    if (is_floating(source_->dtype())) {
      fail(ErrorKind::kInvalidArgument,
           "[cast] tensor '{}': {} of its {} {} values do not fit in {} and would become infinite: "
           "export with "
           "--dtype f32 or bf16",
           name(), lost, num_elements(), tranship::name(source_->dtype()), tranship::name(dtype()));
    }
    fail(ErrorKind::kInvalidArgument, "[cast] tensor '{}': {} of its {} {} values do not fit in {}",
         name(), lost, num_elements(), tranship::name(source_->dtype()), tranship::name(dtype()));
  }

  TensorSourcePtr source_;
};

class ReshapeSource final : public TensorSource {
 public:
  ReshapeSource(TensorSourcePtr source, std::vector<int64_t> shape)
      : TensorSource(source->name(), source->dtype(), std::move(shape)),
        source_(std::move(source)) {
    check(num_elements() == source_->num_elements(),
          "a tensor is reshaped to another number of elements");
  }

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    source_->read(first, count, out);
  }
  std::optional<FileRange> file_range() const override { return source_->file_range(); }

 private:
  TensorSourcePtr source_;
};

class ConcatSource final : public TensorSource {
 public:
  ConcatSource(std::string name, std::vector<TensorSourcePtr> parts, std::vector<int64_t> shape)
      : TensorSource(std::move(name), parts.front()->dtype(), std::move(shape)),
        parts_(std::move(parts)) {
    int64_t end = 0;
    for (const TensorSourcePtr& part : parts_) {
      check(part->dtype() == dtype(), "parts of a tensor have several dtypes");
      ends_.push_back(end += part->num_elements());
    }
    check(end == num_elements(), "parts do not fill a tensor");
  }

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check_read(*this, first, count, out);
    auto at = std::upper_bound(ends_.begin(), ends_.end(), first);
    for (const int64_t end = first + count; first < end; ++at) {
      const TensorSource& part = *parts_[static_cast<size_t>(at - ends_.begin())];
      const int64_t begin = *at - part.num_elements(), n = std::min(*at, end) - first;
      const size_t bytes = static_cast<size_t>(n) * tranship::size_bytes(dtype());
      part.read(first - begin, n, out.first(bytes));
      out = out.subspan(bytes);
      first += n;
    }
  }

 private:
  std::vector<TensorSourcePtr> parts_;
  std::vector<int64_t> ends_;  // where each part ends
};

class PermuteRowsSource final : public TensorSource {
 public:
  PermuteRowsSource(TensorSourcePtr source, std::function<int64_t(int64_t)> row_of)
      : TensorSource(source->name(), source->dtype(), source->shape()),
        source_(std::move(source)),
        row_of_(std::move(row_of)) {
    check(!shape().empty(), "the rows of a scalar are permuted");
  }

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check_read(*this, first, count, out);
    if (count == 0) return;
    const int64_t row_elements = num_elements() / shape()[0];
    const size_t element_bytes = tranship::size_bytes(dtype());
    for (const int64_t end = first + count; first < end;) {
      const int64_t within = first % row_elements;
      const int64_t n = std::min(row_elements - within, end - first);
      const int64_t row = row_of_(first / row_elements);
      check(row >= 0 && row < shape()[0], "a permutation of rows leaves the tensor");
      source_->read(row * row_elements + within, n,
                    out.first(static_cast<size_t>(n) * element_bytes));
      out = out.subspan(static_cast<size_t>(n) * element_bytes);
      first += n;
    }
  }

 private:
  TensorSourcePtr source_;
  std::function<int64_t(int64_t)> row_of_;
};

/// Part of a matrix in memory: rows x columns, `stride` elements from one row to the next.
template <class Pointer>
struct Block {
  Pointer data;
  size_t stride;
};

template <size_t kBytes>
void transpose_elements(Block<const std::byte*> in, size_t rows, size_t columns,
                        Block<std::byte*> out) {
  for (size_t row = 0; row < rows; row += kTransposeTile) {
    for (size_t column = 0; column < columns; column += kTransposeTile) {
      const size_t row_end = std::min(rows, row + kTransposeTile);
      const size_t column_end = std::min(columns, column + kTransposeTile);
      for (size_t c = column; c < column_end; ++c) {
        for (size_t r = row; r < row_end; ++r) {
          std::memcpy(out.data + (c * out.stride + r) * kBytes,
                      in.data + (r * in.stride + c) * kBytes, kBytes);
        }
      }
    }
  }
}

void transpose_block(size_t element_bytes, Block<const std::byte*> in, size_t rows, size_t columns,
                     Block<std::byte*> out) {
  switch (element_bytes) {
    case 1:
      return transpose_elements<1>(in, rows, columns, out);
    case 2:
      return transpose_elements<2>(in, rows, columns, out);
    case 4:
      return transpose_elements<4>(in, rows, columns, out);
    case 8:
      return transpose_elements<8>(in, rows, columns, out);
    default:
      check(false, "an element has a size that no dtype has");
  }
}

/// Result [columns, rows] of a source [rows, columns]. Where the source lies in a file it is read
/// in place; otherwise through a buffer of a megabyte.
class TransposeSource final : public TensorSource {
 public:
  explicit TransposeSource(TensorSourcePtr source)
      : TensorSource(source->name(), source->dtype(), swapped(source->shape())),
        source_(std::move(source)),
        rows_(static_cast<size_t>(source_->shape()[0])),
        columns_(static_cast<size_t>(source_->shape()[1])) {}

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check_read(*this, first, count, out);
    auto position = static_cast<size_t>(first);
    for (auto left = static_cast<size_t>(count); left > 0;) {
      const size_t row = position % rows_;
      const size_t column = position / rows_;
      const bool whole = row == 0 && left >= rows_;
      const size_t num_rows = whole ? rows_ : std::min(rows_ - row, left);
      const size_t num_columns = whole ? left / rows_ : 1;
      read_part({row, column, num_rows, num_columns}, out.data());
      out = out.subspan(num_rows * num_columns * element_bytes());
      position += num_rows * num_columns;
      left -= num_rows * num_columns;
    }
  }

 private:
  struct Part {
    size_t row;
    size_t column;
    size_t num_rows;
    size_t num_columns;
  };

  static std::vector<int64_t> swapped(const std::vector<int64_t>& shape) {
    check(shape.size() == 2, "what is transposed is not a matrix");
    return {shape[1], shape[0]};
  }

  size_t element_bytes() const { return tranship::size_bytes(dtype()); }

  /// Writes columns of the source as rows, densely: num_columns x num_rows elements.
  void read_part(const Part& part, std::byte* out) const {
    if (const auto range = source_->file_range()) {
      const size_t begin = (part.row * columns_ + part.column) * element_bytes();
      transpose_block(element_bytes(), {range->bytes().data() + begin, columns_}, part.num_rows,
                      part.num_columns, {out, part.num_rows});
      return;
    }
    const size_t limit = kTransposeBufferBytes / element_bytes();
    const size_t width = std::min(part.num_columns, limit);
    const size_t height = std::clamp<size_t>(limit / width, 1, part.num_rows);
    std::vector<std::byte> buffer(width * height * element_bytes());
    for (size_t r = 0; r < part.num_rows; r += height) {
      for (size_t c = 0; c < part.num_columns; c += width) {
        const Part tile{part.row + r, part.column + c, std::min(height, part.num_rows - r),
                        std::min(width, part.num_columns - c)};
        fill(tile, buffer);
        transpose_block(element_bytes(), {buffer.data(), tile.num_columns}, tile.num_rows,
                        tile.num_columns,
                        {out + (c * part.num_rows + r) * element_bytes(), part.num_rows});
      }
    }
  }

  /// Reads a tile of the source, in one go where its rows follow each other.
  void fill(const Part& tile, std::span<std::byte> buffer) const {
    const bool joined = tile.num_columns == columns_;
    const size_t run = joined ? tile.num_columns * tile.num_rows : tile.num_columns;
    const size_t num_runs = joined ? 1 : tile.num_rows;
    for (size_t i = 0; i < num_runs; ++i) {
      source_->read(static_cast<int64_t>((tile.row + i) * columns_ + tile.column),
                    static_cast<int64_t>(run),
                    buffer.subspan(i * run * element_bytes(), run * element_bytes()));
    }
  }

  TensorSourcePtr source_;
  size_t rows_;
  size_t columns_;
};

}  // namespace

TensorSource::TensorSource(std::string name, DType dtype, std::vector<int64_t> shape)
    : name_(std::move(name)),
      dtype_(dtype),
      shape_(std::move(shape)),
      num_elements_(product(name_, shape_, tranship::size_bytes(dtype))) {}

TensorSourcePtr range_source(std::string name, DType dtype, std::vector<int64_t> shape,
                             FileRange range) {
  return std::make_shared<RangeSource>(std::move(name), dtype, std::move(shape), std::move(range));
}

TensorSourcePtr memory_source(std::string name, Tensor tensor) {
  return std::make_shared<MemorySource>(std::move(name), std::move(tensor));
}

TensorSourcePtr cast_source(TensorSourcePtr source, DType dtype) {
  if (source->dtype() == dtype) return source;
  try {
    convert(source->dtype(), {}, dtype, {},
            0);  // refuses now, not when the artifact is half written
  } catch (const Error&) {
    fail(ErrorKind::kUnsupported, "[cast] tensor '{}' is {} and there is no conversion to {}",
         source->name(), name(source->dtype()), name(dtype));
  }
  return std::make_shared<CastSource>(std::move(source), dtype);
}

TensorSourcePtr reshape_source(TensorSourcePtr source, std::vector<int64_t> shape) {
  if (source->shape() == shape) return source;
  return std::make_shared<ReshapeSource>(std::move(source), std::move(shape));
}

TensorSourcePtr concat_source(std::string name, std::vector<TensorSourcePtr> parts,
                              std::vector<int64_t> shape) {
  check(!parts.empty(), "a tensor is made of no parts");
  return std::make_shared<ConcatSource>(std::move(name), std::move(parts), std::move(shape));
}

TensorSourcePtr permute_rows_source(TensorSourcePtr source,
                                    std::function<int64_t(int64_t)> row_of) {
  return std::make_shared<PermuteRowsSource>(std::move(source), std::move(row_of));
}

TensorSourcePtr transpose_source(TensorSourcePtr source) {
  return std::make_shared<TransposeSource>(std::move(source));
}

Tensor read_all(const TensorSource& source) {
  Tensor tensor(source.dtype(), source.shape());
  source.read(0, source.num_elements(), tensor.bytes());
  return tensor;
}

}  // namespace tranship

// Tensors that are views of a storage: transposed, sliced, expanded.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "ir/tensor_source.h"

namespace tranship {
namespace {

class StridedSource final : public TensorSource {
 public:
  StridedSource(std::string name, DType dtype, StridedLayout layout, FileRange storage)
      : TensorSource(std::move(name), dtype, layout.shape),
        layout_(std::move(layout)),
        storage_(std::move(storage)) {}

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check(first >= 0 && count >= 0 && first <= num_elements() && count <= num_elements() - first,
          "a strided tensor is read past its end");
    copy_strided(storage_.bytes(), layout_, tranship::size_bytes(dtype()), first, out);
  }

 private:
  StridedLayout layout_;
  FileRange storage_;
};

}  // namespace

std::optional<int64_t> StridedLayout::needed_elements() const {
  check(shape.size() == strides.size(), "a layout has a stride for each axis");
  int64_t last = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach = 0;
    if (shape[i] == 0) return 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  if (__builtin_add_overflow(last, 1, &last)) return std::nullopt;
  return last;
}

bool StridedLayout::is_contiguous() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

void copy_strided(Bytes storage, const StridedLayout& layout, size_t element_bytes, int64_t first,
                  std::span<std::byte> out) {
  const size_t rank = layout.shape.size();
  std::vector<int64_t> index(rank);
  int64_t at = layout.offset;
  for (size_t i = rank; i-- > 0 && !out.empty();) {
    index[i] = first % layout.shape[i];
    first /= layout.shape[i];
    at += index[i] * layout.strides[i];
  }
  while (!out.empty()) {
    const bool rows = rank > 0 && layout.strides[rank - 1] == 1;
    const auto left = static_cast<int64_t>(out.size() / element_bytes);
    const int64_t run = rows ? std::min(left, layout.shape[rank - 1] - index[rank - 1]) : 1;
    const size_t run_bytes = static_cast<size_t>(run) * element_bytes;
    std::memcpy(out.data(),
                storage.subspan(static_cast<size_t>(at) * element_bytes, run_bytes).data(),
                run_bytes);
    out = out.subspan(run_bytes);
    for (size_t i = rank; i-- > 0;) {
      const int64_t step = i + 1 == rank ? run : 1;
      index[i] += step;
      at += step * layout.strides[i];
      if (index[i] < layout.shape[i]) break;
      at -= index[i] * layout.strides[i];
      index[i] = 0;
    }
  }
}

TensorSourcePtr strided_source(std::string name, DType dtype, StridedLayout layout,
                               FileRange storage) {
  const size_t element_bytes = size_bytes(dtype);
  const std::optional<int64_t> needed = layout.needed_elements();
  check(needed && static_cast<size_t>(*needed) <= storage.size / element_bytes,
        "a view reaches outside of its storage");
  if (!layout.is_contiguous()) {
    return std::make_shared<StridedSource>(std::move(name), dtype, std::move(layout),
                                           std::move(storage));
  }
  size_t bytes = element_bytes;
  for (const int64_t size : layout.shape) bytes *= static_cast<size_t>(size);
  const size_t skipped = bytes == 0 ? 0 : static_cast<size_t>(layout.offset) * element_bytes;
  return range_source(std::move(name), dtype, std::move(layout.shape),
                      {std::move(storage.file), storage.offset + skipped, bytes});
}

}  // namespace tranship

#include "generation/token_mask.h"

#include <algorithm>

#include "base/error.h"

namespace tranship::generation {

void TokenMask::clear(int64_t num_rows) {
  num_rows_ = num_rows;
  length_ = 0;
  present_.clear();
  one_slots_ = 0;
}

void TokenMask::append(std::span<const int64_t> columns, int64_t count) {
  check(std::ssize(columns) == num_rows_ * count, "a mask has a place for each token");
  const int64_t longer = length_ + count;
  present_.resize(static_cast<size_t>(num_rows_ * longer));
  for (int64_t row = num_rows_; row-- > 0;) {  // rows move apart, the last one first
    const auto from = present_.begin() + row * length_, to = present_.begin() + row * longer;
    if (row > 0) std::copy_backward(from, from + length_, to + length_);
    std::copy_n(columns.begin() + row * count, count, to + length_);
  }
  length_ = longer;
}

void TokenMask::cut(int64_t length) {
  check(num_rows_ == 1 && length <= length_, "a mask of one row is cut");
  present_.resize(static_cast<size_t>(length));
  length_ = length;
  one_slots_ = 0;
}

onnx::Value TokenMask::of_tokens(const onnx::Session& session) {
  return session.over(DType::kI64, {num_rows_, length_},
                      std::as_writable_bytes(std::span(present_)));
}

onnx::Value TokenMask::of_slots(const onnx::Session& session, int64_t count, int64_t num_slots) {
  check(count <= length_ && length_ <= num_slots, "there is a slot for each token");
  if (count == 1) {
    fill_one(num_slots);
  } else {
    fill_several(count, num_slots);
  }
  return session.over(DType::kBool, {num_rows_, 1, count, num_slots},
                      std::as_writable_bytes(std::span(seen_)));
}

void TokenMask::fill_one(int64_t num_slots) {
  if (one_slots_ != num_slots) {
    seen_.assign(static_cast<size_t>(num_rows_ * num_slots), 0);
    one_slots_ = num_slots;
    one_filled_ = 0;
  }
  for (int64_t row = 0; row < num_rows_; ++row) {
    for (int64_t slot = one_filled_; slot < length_; ++slot) {
      seen_[static_cast<size_t>(row * num_slots + slot)] =
          present_[static_cast<size_t>(row * length_ + slot)] != 0;
    }
  }
  one_filled_ = length_;
}

void TokenMask::fill_several(int64_t count, int64_t num_slots) {
  one_slots_ = 0;
  seen_.assign(static_cast<size_t>(num_rows_ * count * num_slots), 0);
  for (int64_t row = 0; row < num_rows_; ++row) {
    const auto present = present_.begin() + row * length_;
    for (int64_t query = 0; query < count; ++query) {
      const auto seen = seen_.begin() + (row * count + query) * num_slots;
      std::transform(present, present + length_ - count + query + 1, seen,
                     [](int64_t there) { return there != 0; });
    }
  }
}

}  // namespace tranship::generation

#include "generation/kept_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tranship::generation {

int64_t KeptCache::bytes() const {
  int64_t sum = 0;
  for (const onnx::Value& value : values()) sum += static_cast<int64_t>(value.size_bytes());
  return sum;
}

void copy_tokens(const onnx::Value& from, int64_t num_tokens, onnx::Value& to) {
  if (num_tokens == 0) return;
  const std::vector<int64_t>& shape = from.shape();
  const size_t row = static_cast<size_t>(shape[3]) * size_bytes(from.dtype());
  const auto bytes = [&](int64_t tokens) { return static_cast<size_t>(tokens) * row; };
  for (int64_t head = 0; head < shape[0] * shape[1]; ++head) {
    std::memcpy(to.bytes().data() + bytes(head * to.shape()[2]),
                from.bytes().data() + bytes(head * shape[2]), bytes(num_tokens));
  }
}

void PassedCache::bind(std::vector<onnx::Value> values) {
  values_ = std::move(values);
  for (size_t i = 0; i < parts_.size(); ++i) {
    binding_->bind_input(parts_[i].decode_input, values_[i]);
    binding_->bind_output(parts_[i].decode_output, onnx::Place::kDevice);
  }
}

void PassedCache::begin(int64_t num_rows) {
  std::vector<onnx::Value> empty;
  for (const CachePart& part : parts_) {
    check(part.shape.size() == 4, "a cache that begins empty has four axes");
    empty.push_back(session_->allocate(part.dtype, {num_rows, part.shape[1], 0, part.shape[3]}));
  }
  bind(std::move(empty));
}

void PassedCache::take(Outputs& made, int64_t) {
  std::vector<onnx::Value> taken;
  for (const CachePart& part : parts_) taken.push_back(std::move(made.at(part.prefill_output)));
  bind(std::move(taken));
}

void PassedCache::settle() {
  Outputs made = binding_->outputs();
  std::vector<onnx::Value> taken;
  for (const CachePart& part : parts_) taken.push_back(std::move(made.at(part.decode_output)));
  bind(std::move(taken));
}

bool PassedCache::rewind(int64_t length) {
  const auto grows = [](const CachePart& part) {
    return part.shape.size() == 4 && part.shape[2] < 0;
  };
  const auto on_host = [](const onnx::Value& value) { return value.on_host(); };
  if (!std::ranges::all_of(parts_, grows) || !std::ranges::all_of(values_, on_host)) return false;
  std::vector<onnx::Value> shorter;
  for (const onnx::Value& value : values_) {
    std::vector<int64_t> shape = value.shape();
    if (length > shape[2]) return false;
    shape[2] = length;
    shorter.push_back(session_->allocate(value.dtype(), shape));
    copy_tokens(value, length, shorter.back());
  }
  bind(std::move(shorter));
  return true;
}

}  // namespace tranship::generation

#include "generation/cache_buffers.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tranship::generation {
namespace {

constexpr int64_t kStep = 256;  // tokens: a small model's cache is then some megabytes

/// Room for so many tokens: more by half, so that a long text is copied a few times only.
int64_t room_for(int64_t length) { return (length + length / 2 + kStep) / kStep * kStep; }

/// Copies the first tokens of each head.  from [B, K, *, D], to [B, K, *, D]
void copy_tokens(const onnx::Value& from, int64_t num_tokens, onnx::Value& to) {
  const std::vector<int64_t>& shape = from.shape();
  const size_t row = static_cast<size_t>(shape[3]) * size_bytes(from.dtype());
  const auto bytes = [&](int64_t tokens) { return static_cast<size_t>(tokens) * row; };
  for (int64_t head = 0; head < shape[0] * shape[1]; ++head) {
    std::memcpy(to.bytes().data() + bytes(head * to.shape()[2]),
                from.bytes().data() + bytes(head * shape[2]), bytes(num_tokens));
  }
}

}  // namespace

void CacheBuffers::move_to(int64_t capacity, const std::vector<const onnx::Value*>& from,
                           int64_t seen, onnx::Binding& decode) {
  std::vector<onnx::Value> made;
  for (const onnx::Value* value : from) {
    check(value->shape().size() == 4 && value->shape()[2] >= seen, "a cache has four axes");
    std::vector<int64_t> shape = value->shape();
    shape[2] = capacity;
    made.push_back(session_->allocate(value->dtype(), shape));
    copy_tokens(*value, seen, made.back());
  }
  values_ = std::move(made);
  capacity_ = capacity;
  for (size_t i = 0; i < parts_.size(); ++i) {
    decode.bind_input(parts_[i].decode_input, values_[i]);
    decode.bind_output(parts_[i].decode_output, values_[i]);
  }
}

void CacheBuffers::fill(const std::map<std::string, onnx::Value>& prefill_outputs, int64_t length,
                        onnx::Binding& decode) {
  std::vector<const onnx::Value*> from;
  for (const CachePart& part : parts_) from.push_back(&prefill_outputs.at(part.prefill_output));
  move_to(room_for(length), from, length, decode);
}

void CacheBuffers::reserve(int64_t length, int64_t seen, onnx::Binding& decode) {
  if (length <= capacity_) return;
  std::vector<const onnx::Value*> from;
  for (const onnx::Value& value : values_) from.push_back(&value);
  move_to(room_for(length), from, seen, decode);
}

}  // namespace tranship::generation

#include "generation/cache_buffers.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tranship::generation {
namespace {

constexpr int64_t kStep = 256;  // tokens: a small model's cache is then some megabytes
constexpr size_t kAlignment = 64;

/// Room for so many tokens: more by half, so that a long text is copied a few times only.
int64_t room_for(int64_t length) { return (length + length / 2 + kStep) / kStep * kStep; }

}  // namespace

ZeroedMemory::ZeroedMemory(size_t size_bytes) : memory_(std::calloc(size_bytes + kAlignment, 1)) {
  if (!memory_) fail(ErrorKind::kIo, "[generate] no memory for {} bytes of a cache", size_bytes);
  void* aligned = memory_.get();
  size_t space = size_bytes + kAlignment;
  check(std::align(kAlignment, size_bytes, aligned, space) != nullptr, "memory can be aligned");
  bytes_ = {static_cast<std::byte*>(aligned), size_bytes};
}

CacheBuffers::CacheBuffers(const onnx::Session& decode, onnx::Binding& binding, CacheParts parts,
                           BufferSize size)
    : session_(&decode), binding_(&binding), parts_(std::move(parts)), size_(size) {}

Room CacheBuffers::room() const {
  const std::optional<int64_t> total = size_.fixed ? size_.fixed : size_.most;
  return {.prompt = total, .total = total};
}

int64_t CacheBuffers::capacity_for(int64_t length) const {
  const std::optional<int64_t> most = room().total;
  if (most && length > *most) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] the cache is full: it has {} slots, and {} tokens are to be kept. Ask for "
         "fewer, or export it with more (--max-cache-len N)",
         *most, length);
  }
  return size_.fixed ? *size_.fixed : std::min(room_for(length), most.value_or(room_for(length)));
}

void CacheBuffers::bind() {
  for (size_t i = 0; i < parts_.kept.size(); ++i) {
    binding_->bind_input(parts_.kept[i].decode_input, values_[i]);
    binding_->bind_output(parts_.kept[i].decode_output, values_[i]);
  }
  const auto bytes = std::as_writable_bytes(std::span(taken_.get(), 1));
  for (const std::string& counter : parts_.counters)
    binding_->bind_input(counter, session_->over(DType::kI64, {}, bytes));
}

void CacheBuffers::move_to(int64_t capacity, int64_t seen) {
  std::vector<ZeroedMemory> memory;
  std::vector<onnx::Value> made;
  for (const onnx::Value& value : values_) {
    std::vector<int64_t> shape = value.shape();
    check(shape.size() == 4 && shape[2] >= seen, "a cache has four axes");
    shape[2] = capacity;
    memory.emplace_back(onnx::bytes_of(value.dtype(), shape));
    made.push_back(session_->over(value.dtype(), shape, memory.back().bytes()));
    copy_tokens(value, seen, made.back());
  }
  values_ = std::move(made);
  memory_ = std::move(memory);
  capacity_ = capacity;
  bind();
}

void CacheBuffers::begin(int64_t num_rows) {
  values_.clear();
  memory_.clear();
  for (const CachePart& part : parts_.kept) {
    check(part.shape.size() == 4, "a cache has four axes");
    values_.push_back(session_->allocate(part.dtype, {num_rows, part.shape[1], 0, part.shape[3]}));
  }
  capacity_ = seen_ = 0;
}

void CacheBuffers::take(Outputs& made, int64_t length) {
  std::vector<onnx::Value> taken;
  for (const CachePart& part : parts_.kept)
    taken.push_back(std::move(made.at(part.prefill_output)));
  values_ = std::move(taken);
  seen_ = length;
  const int64_t wanted = capacity_for(length), given = values_.front().shape()[2];
  const bool has_slots = !parts_.counters.empty(),
             fits = size_.fixed ? given == wanted : given <= wanted;
  if (!has_slots || !fits) return move_to(wanted, length);
  memory_.clear();
  capacity_ = given;
  bind();
}

void CacheBuffers::prepare(int64_t seen, int64_t added) {
  if (seen + added > capacity_) move_to(capacity_for(seen + added), seen);
  *taken_ = seen;
  seen_ = seen + added;
}

void CacheBuffers::reserve(int64_t num_tokens) {
  capacity_for(num_tokens);  // or an error
  if (num_tokens > capacity_) move_to(size_.fixed ? *size_.fixed : num_tokens, seen_);
}

}  // namespace tranship::generation

// Buffers for a cache, with room for more tokens than there are: decode writes into them, and
// nothing is copied from step to step.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "generation/kept_cache.h"

namespace tranship::generation {

/// How many tokens buffers may hold.
struct BufferSize {
  std::optional<int64_t> fixed = {};  // as the graph says
  std::optional<int64_t> most = {};   // as the export says
};

/// Memory that is zero; the kernel gives it when it is touched first.
class ZeroedMemory {
 public:
  explicit ZeroedMemory(size_t size_bytes);
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::span<std::byte> bytes_;
};

/// Parts [B, K, capacity, D] of one cache, each an input of decode and its output, in one place.
/// With counters the capacity is a number of slots, which masks know of, and what is not taken is
/// zero or something that was there before: never infinite.
class CacheBuffers : public KeptCache {
 public:
  CacheBuffers(const onnx::Session& decode, onnx::Binding& binding, CacheParts parts,
               BufferSize size);

  void begin(int64_t num_rows) override;
  void take(Outputs& made, int64_t length) override;
  void prepare(int64_t seen, int64_t added) override;
  void settle() override {}
  bool rewind(int64_t) override { return true; }
  int64_t num_slots() const override { return parts_.counters.empty() ? 0 : capacity_; }
  Room room() const override;
  std::span<const onnx::Value> values() const override { return values_; }

  int64_t capacity() const { return capacity_; }

 private:
  int64_t capacity_for(int64_t length) const;
  void move_to(int64_t capacity, int64_t seen);
  void bind();

  const onnx::Session* session_;
  onnx::Binding* binding_;
  CacheParts parts_;
  BufferSize size_;
  int64_t capacity_ = 0;
  std::vector<ZeroedMemory> memory_;  // under the values; none where they are prefill's
  std::vector<onnx::Value> values_;   // in the order of the parts
  std::unique_ptr<int64_t> taken_ = std::make_unique<int64_t>(0);  // under the counters
};

}  // namespace tranship::generation

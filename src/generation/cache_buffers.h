// Buffers for a cache that grows, with room for more tokens than there are: decode writes into
// them, and nothing is copied from step to step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/onnx/session.h"
#include "generation/onnx_parts.h"

namespace tranship::generation {

/// Parts [B, K, capacity, D] of one cache. The session must outlive them.
class CacheBuffers {
 public:
  CacheBuffers(const onnx::Session& decode, std::vector<CachePart> parts)
      : session_(&decode), parts_(std::move(parts)) {}

  /// Takes what prefill gave, `length` tokens, and makes room for more. Each part is then an input
  /// of decode and its output, in one place.
  void fill(const std::map<std::string, onnx::Value>& prefill_outputs, int64_t length,
            onnx::Binding& decode);
  /// Makes room for `length` tokens, where `seen` are kept.
  void reserve(int64_t length, int64_t seen, onnx::Binding& decode);

  int64_t capacity() const { return capacity_; }
  const std::vector<onnx::Value>& values() const { return values_; }

 private:
  void move_to(int64_t capacity, const std::vector<const onnx::Value*>& from, int64_t seen,
               onnx::Binding& decode);

  const onnx::Session* session_;
  std::vector<CachePart> parts_;
  std::vector<onnx::Value> values_;  // in the order of the parts
  int64_t capacity_ = 0;
};

}  // namespace tranship::generation

// Which of the tokens that a model has read are padding, in the form that a graph takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/onnx/session.h"

namespace tranship::generation {

/// The memory under what it gives is its own, and stays until the next call.
class TokenMask {
 public:
  /// Forgets all; so many rows follow.
  void clear(int64_t num_rows);
  /// Appends columns: [rows, count], 0 at padding.
  void append(std::span<const int64_t> columns, int64_t count);
  /// Keeps the first columns of the only row.
  void cut(int64_t length);
  int64_t length() const { return length_; }

  /// i64 [rows, length].
  onnx::Value of_tokens(const onnx::Session& session);
  /// bool [rows, 1, count, slots]: which slots each of the last `count` tokens sees: its own and
  /// those before it, padding apart.
  onnx::Value of_slots(const onnx::Session& session, int64_t count, int64_t num_slots);

 private:
  void fill_one(int64_t num_slots);
  void fill_several(int64_t count, int64_t num_slots);

  int64_t num_rows_ = 0, length_ = 0;
  std::vector<int64_t> present_;  // [rows, length]
  std::vector<uint8_t> seen_;     // what of_slots() gave last
  /// Of of_slots() for one token: how many slots, and how many of them are up to date. It changes
  /// by one from token to token.
  int64_t one_slots_ = 0, one_filled_ = 0;
};

}  // namespace tranship::generation

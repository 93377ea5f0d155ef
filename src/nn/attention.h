// Attention over heads, and the cache that it reads and writes.
#pragma once

#include <functional>
#include <optional>

#include "nn/layers.h"

namespace tranship::nn {

struct KeyValue {
  Tensor keys;    // [B, K, T, D]
  Tensor values;  // [B, K, T, D]
};

/// What happens to a layer's keys and values: the task decides. update() is called once a layer, in
/// order.
class Cache {
 public:
  virtual ~Cache() = default;
  /// New keys and values [B, K, S, D] of a layer -> all of them, [B, K, past + S, D].
  virtual KeyValue update(int64_t layer, Tensor keys, Tensor values) = 0;
  /// Of a cache with slots, which holds more keys than there are tokens: the slot of the first new
  /// token, i64 scalar. Absent: keys stand in the order of the tokens, the new ones last.
  virtual Tensor first_slot() { return {}; }
  /// How many keys update() gives, where there are slots.
  virtual Dim num_slots() const { return 0; }
  /// Keys and values of what an encoder gave, [B, K, T, D] = `shape`: `make` makes them in the
  /// first call, later ones have them in the cache.
  virtual KeyValue cross(int64_t layer, const Shape& shape,
                         const std::function<KeyValue()>& make) = 0;
  /// What a layer keeps of the past that does not grow with it ("conv_states.0"): absent in a first
  /// call, when it is zeros.
  virtual Tensor state(int64_t layer, std::string_view name, const ir::Type& type) = 0;
  /// What it keeps for the next call.
  virtual void keep(int64_t layer, std::string_view name, Tensor value) = 0;
};

/// x [B, S, in] -> [B, count, S, size].  Weights: weight [count * size, in], bias.
Tensor heads(Scope m, Tensor x, int64_t count, int64_t size, bool bias = false);
/// [B, S, count * size] -> [B, count, S, size], and back.
Tensor split_heads(Tensor x, int64_t count, int64_t size);
Tensor merge_heads(Tensor x);

struct AttentionOptions {
  double scale = 1;
  bool causal = false;
  std::optional<int64_t> window = {};
  Tensor key_mask = {};  // bool [B, T]: which keys there are; absent: all
  Tensor bias = {};  // [B or 1, H or 1, S, T]: added to the scores; of bool: which keys are seen
};
/// A mask of numbers as a key mask: i64 [B, T], 0 where there is no key -> bool. Absent stays
/// absent.
Tensor key_mask_of(Tensor attention_mask);
/// q [B, H, S, D], k and v [B, K, T, D] -> [B, H, S, D].
Tensor attention(Scope m, Tensor q, Tensor k, Tensor v, const AttentionOptions& options);

}  // namespace tranship::nn

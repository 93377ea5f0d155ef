// What the decode loop needs of a model, whatever runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tranship::generation {

/// Prompts as one batch: rows of one length, the shorter ones padded on the left. Row-major.
struct PromptBatch {
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  std::vector<int64_t> input_ids;
  std::vector<int64_t> attention_mask;  // 0 at padding
  std::vector<int64_t> position_ids;    // counted over the mask; 0 at padding

  bool is_padded() const;
};

/// Source: generation/utils.py _prepare_position_ids_for_generation (5.23).
PromptBatch pad_left(std::span<const std::vector<int64_t>> prompts, int64_t pad_id);

/// The logits at the last token of each row, where the runtime has them.
struct Logits {
  std::span<const float> values;
  int64_t stride = 0;  // from the logits of a row to those of the next
  int64_t vocab_size = 0;

  std::span<const float> row(int64_t index) const {
    return values.subspan(static_cast<size_t>(index * stride), static_cast<size_t>(vocab_size));
  }
};

/// How many tokens a model can keep; absent: any number.
struct Room {
  std::optional<int64_t> prompt;  // in the first call
  std::optional<int64_t> total;
};

/// What a model has taken so far.
struct Use {
  double run_seconds = 0;   // in the runtime
  int64_t cache_bytes = 0;  // of what is kept, with the room for more
};

/// A model with a cache of what it has read.
class CausalModel {
 public:
  virtual ~CausalModel() = default;
  /// Reads the prompts; what was read before is forgotten. The logits are valid until the next
  /// call. Errors: unsupported if it cannot take padding and there is some; invalid_argument if
  /// there is no room; those of the runtime.
  virtual Logits prefill(const PromptBatch& batch) = 0;
  /// Reads one more token of each row.
  virtual Logits decode(std::span<const int64_t> ids) = 0;
  /// Reads more tokens of its only row, after what it has read.
  virtual Logits extend(std::span<const int64_t> ids) = 0;
  /// Forgets all but the first `length` tokens of its only row, which has no padding. -> whether it
  /// could: a state that sums up the past cannot go back.
  virtual bool rewind(int64_t length) = 0;

  /// At most so many tokens are read at a time, where the model can go on with several.
  virtual void set_chunk_size(int64_t num_tokens) = 0;
  virtual Room room() const = 0;
  virtual Use use() const = 0;
};

}  // namespace tranship::generation

// The decode loop: prefill, then a token for each row until all have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "generation/causal_model.h"
#include "generation/generation_config.h"
#include "tranship/generation.h"

namespace tranship::generation {

/// Told of each new token; returns why its row ends with it, if it does.
using Watch = std::function<std::optional<FinishReason>(size_t row, int64_t id)>;

struct LoopOptions {
  GenerationConfig config;  // checked
  Limits limits;
  uint64_t seed = 0;
  Watch watch = {};
  /// The first tokens of the only prompt, which the model has read already: fewer than there are.
  int64_t num_cached = 0;
};

/// Continues the prompts, none of them empty. A row that has ended is fed padding until all have.
/// An EOS token is told to `watch` too, but is itself the reason then. Leaves load_seconds at 0.
/// A model that cannot go back to what is cached reads the prompt anew.
/// Errors: corrupt if logits are not numbers; those of the model.
/// Source: generation/utils.py _sample (5.23).
GenerationResult decode_loop(CausalModel& model, std::span<const std::vector<int64_t>> prompts,
                             const LoopOptions& options);

/// What rows are padded with: pad_token_id, else the first EOS token, else 0.
int64_t pad_id_of(const GenerationConfig& config);

}  // namespace tranship::generation

// Checks of a GenerationConfig against itself and against the prompts.
#pragma once

#include <cstdint>
#include <optional>

#include "tranship/generation.h"
#include "tranship/sink.h"

namespace tranship::generation {

/// Errors: invalid_argument, with all that makes no sense in it.
void check_config(const GenerationConfig& config);

/// How many new tokens a call may and must make.
struct Limits {
  int64_t max_new_tokens = 0;
  int64_t min_new_tokens = 0;
};

/// The limits for prompts of `prompt_length` tokens, padding included. `max_positions`: how many
/// the model has, if it says so. Warns of a minimum over the maximum.
/// Errors: invalid_argument if nothing may be generated.
/// Source: generation/utils.py _prepare_generated_length, _validate_generated_length (5.23).
Limits limits_of(const GenerationConfig& config, int64_t prompt_length,
                 std::optional<int64_t> max_positions, const Sink& sink);

}  // namespace tranship::generation

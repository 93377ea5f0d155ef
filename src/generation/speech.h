// Whisper's decoder is told by its first tokens which language it hears and what to do with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tranship/generation.h"

namespace tranship::generation {

/// What generation_config.json says of these tokens (config.json where it has no
/// forced_decoder_ids).
struct SpeechTokens {
  std::map<std::string, int64_t> lang_to_id;  // "<|en|>"
  std::map<std::string, int64_t> task_to_id;  // "transcribe", "translate"
  std::optional<int64_t> no_timestamps_token_id;
  bool is_multilingual = true;
  /// From the second token on; absent: the language is to be found out.
  std::vector<std::optional<int64_t>> forced;
};

/// Errors: corrupt for wrong types; unsupported for forced_decoder_ids with a gap.
SpeechTokens read_speech_tokens(std::string_view generation_config_json,
                                std::string_view config_json);

/// Whether the language has to be found out: from the tokens that the model thinks likely after the
/// first one, `lang_to_id`.
bool must_detect_language(const SpeechTokens& tokens, const GenerationConfig& config);

/// What the decoder begins with. `language`: as it was found out.
/// Errors: invalid_argument for a language or task that the model does not know, or any for a model
/// of English only.
/// Source: generation_whisper.py _retrieve_init_tokens (5.23), without timestamps.
std::vector<int64_t> speech_prompt(const SpeechTokens& tokens, const GenerationConfig& config,
                                   int64_t start, std::optional<int64_t> language);

/// max_length does not count the prompt, but the whole must fit the model's positions.
/// Errors: invalid_argument if max_new_tokens do not. Source: generation_whisper.py
/// _set_max_new_tokens_and_length (5.23).
GenerationConfig with_speech_limits(GenerationConfig config, int64_t prompt_length,
                                    int64_t max_positions);

}  // namespace tranship::generation

#include "generation/generation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config.h"

namespace tranship {
namespace {

constexpr int64_t kDefaultNewTokens = 20;

/// A key that changes what is generated and that is not honoured, with the value at which it
/// changes nothing (besides null, [] and {}).
struct Refused {
  std::string_view key;
  std::string_view neutral;
};

constexpr auto kRefused = std::to_array<Refused>({
    {"num_beams", "1"},
    {"num_beam_groups", "1"},
    {"num_return_sequences", "1"},
    {"penalty_alpha", "0"},
    {"dola_layers", "null"},
    {"constraints", "null"},
    {"force_words_ids", "null"},
    {"max_time", "null"},
    {"guidance_scale", "1"},
    {"sequence_bias", "null"},
    {"encoder_repetition_penalty", "1"},
    {"no_repeat_ngram_size", "0"},
    {"encoder_no_repeat_ngram_size", "0"},
    {"bad_words_ids", "null"},
    {"remove_invalid_values", "false"},
    {"exponential_decay_length_penalty", "null"},
    {"token_healing", "false"},
    {"top_h", "null"},
    {"min_p", "0"},
    {"typical_p", "1"},
    {"epsilon_cutoff", "0"},
    {"eta_cutoff", "0"},
    {"watermarking_config", "null"},
    {"return_timestamps", "false"},
    {"no_speech_threshold", "null"},
    {"logprob_threshold", "null"},
    {"compression_ratio_threshold", "null"},
});

/// Errors: unsupported, with all keys that would change what is generated.
void check_refused(std::string_view where, const Json& object) {
  std::vector<std::string> found;
  for (const Refused& refused : kRefused) {
    const auto value = object.find(std::string(refused.key));
    if (value == object.end() || value->is_null() || *value == Json::parse(refused.neutral))
      continue;
    if (value->is_structured() && value->empty()) continue;
    found.push_back(std::string(refused.key) + " = " + to_python_json_line(*value));
  }
  if (found.empty()) return;
  fail(ErrorKind::kUnsupported,
       "[generate] '{}' asks for what is not done: {}. Take it out of the file, or pass a "
       "configuration of your own",
       where, listed(found));
}

/// Transformers takes one string or a list of them.
std::vector<std::string> read_stop_strings(const Json& object, const Config& config) {
  constexpr const char* kKey = "stop_strings";
  const auto value = object.find(kKey);
  if (value != object.end() && value->is_string()) return {value->get<std::string>()};
  return config.texts(kKey);
}

GenerationConfig read_config(std::string_view where, std::string_view text) {
  const Config config = Config::parse(where, text);
  const Json object = parse_json("generate", where, text, NonFinite::kAsPython);
  check_refused(where, object);
  GenerationConfig out;
  out.max_new_tokens = config.find_integer("max_new_tokens");
  out.max_length = config.find_integer("max_length");
  out.min_new_tokens = config.find_integer("min_new_tokens");
  out.min_length = config.find_integer("min_length");
  out.do_sample = config.boolean("do_sample", out.do_sample);
  out.temperature = config.number("temperature", out.temperature);
  out.top_k = config.integer("top_k", out.top_k);
  out.top_p = config.number("top_p", out.top_p);
  out.repetition_penalty = config.number("repetition_penalty", out.repetition_penalty);
  out.eos_token_id = config.integers("eos_token_id");
  out.pad_token_id = config.find_integer("pad_token_id");
  out.bos_token_id = config.find_integer("bos_token_id");
  out.stop_strings = read_stop_strings(object, config);
  out.forced_bos_token_id = config.find_integer("forced_bos_token_id");
  out.forced_eos_token_id = config.integers("forced_eos_token_id");
  out.suppress_tokens = config.integers("suppress_tokens");
  out.begin_suppress_tokens = config.integers("begin_suppress_tokens");
  out.decoder_start_token_id = config.find_integer("decoder_start_token_id");
  out.prefill_chunk_size = config.find_integer("prefill_chunk_size");
  out.language = config.text("language", "");
  out.task = config.text("task", "");
  return out;
}

void take_missing_ids(GenerationConfig& out, const Config& config) {
  if (out.eos_token_id.empty()) out.eos_token_id = config.integers("eos_token_id");
  if (!out.pad_token_id) out.pad_token_id = config.find_integer("pad_token_id");
  if (!out.bos_token_id) out.bos_token_id = config.find_integer("bos_token_id");
  if (!out.decoder_start_token_id)
    out.decoder_start_token_id = config.find_integer("decoder_start_token_id");
}

}  // namespace

GenerationConfig GenerationConfig::from_json(std::string_view generation_config_json,
                                             std::string_view config_json) {
  constexpr std::string_view kModelFile = "config.json";
  GenerationConfig out;
  if (!generation_config_json.empty()) {
    out = read_config("generation_config.json", generation_config_json);
  } else if (!config_json.empty()) {
    out = read_config(kModelFile, config_json);
  }
  if (config_json.empty()) return out;
  const Config config = Config::parse(kModelFile, config_json);
  take_missing_ids(out, config);
  if (const std::optional<Config> text_config = config.find_object("text_config"))
    take_missing_ids(out, *text_config);
  return out;
}

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCallback:
      return "callback";
  }
  return "";
}

namespace generation {

void check_config(const GenerationConfig& config) {
  std::vector<std::string> faults;
  const auto expect = [&](bool holds, std::string_view what, auto value) {
    if (!holds) faults.push_back(fmt::format("{} (it is {})", what, value));
  };
  expect(config.max_new_tokens.value_or(1) > 0, "max_new_tokens must be at least 1",
         config.max_new_tokens.value_or(1));
  expect(config.max_length.value_or(0) >= 0, "max_length must not be negative",
         config.max_length.value_or(0));
  expect(config.min_new_tokens.value_or(0) >= 0, "min_new_tokens must not be negative",
         config.min_new_tokens.value_or(0));
  expect(config.min_length.value_or(0) >= 0, "min_length must not be negative",
         config.min_length.value_or(0));
  expect(config.temperature > 0,
         "temperature must be over 0: for the most likely tokens, set do_sample to false",
         config.temperature);
  expect(config.top_k >= 0, "top_k must be at least 1, or 0 for no limit", config.top_k);
  expect(config.top_p >= 0 && config.top_p <= 1, "top_p must lie between 0 and 1", config.top_p);
  expect(config.repetition_penalty > 0, "repetition_penalty must be over 0",
         config.repetition_penalty);
  expect(config.prefill_chunk_size.value_or(1) > 0, "prefill_chunk_size must be at least 1",
         config.prefill_chunk_size.value_or(1));
  for (const int64_t id : config.eos_token_id)
    expect(id >= 0, "eos_token_id must not be negative", id);
  expect(config.pad_token_id.value_or(0) >= 0, "pad_token_id must not be negative",
         config.pad_token_id.value_or(0));
  expect(config.bos_token_id.value_or(0) >= 0, "bos_token_id must not be negative",
         config.bos_token_id.value_or(0));
  expect(config.decoder_start_token_id.value_or(0) >= 0,
         "decoder_start_token_id must not be negative", config.decoder_start_token_id.value_or(0));
  const bool all_stops = std::ranges::none_of(config.stop_strings, &std::string::empty);
  expect(all_stops, "stop_strings must have text", "\"\"");
  if (faults.empty()) return;
  fail(ErrorKind::kInvalidArgument, "[generate] the configuration makes no sense: {}",
       fmt::join(faults, "; "));
}

Limits limits_of(const GenerationConfig& config, int64_t prompt_length,
                 std::optional<int64_t> max_positions, const Sink& sink) {
  Limits limits;
  if (config.max_new_tokens) {
    limits.max_new_tokens = *config.max_new_tokens;
  } else if (config.max_length) {
    limits.max_new_tokens = *config.max_length - prompt_length;
  } else {
    limits.max_new_tokens = kDefaultNewTokens;
    if (max_positions)
      limits.max_new_tokens =
          std::min(limits.max_new_tokens, std::max<int64_t>(*max_positions, 0) - prompt_length);
  }
  if (limits.max_new_tokens <= 0) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] the prompt has {} tokens, and the whole may have {}: raise max_length, or set "
         "max_new_tokens",
         prompt_length, prompt_length + limits.max_new_tokens);
  }
  limits.min_new_tokens =
      std::max(config.min_new_tokens.value_or(0), config.min_length.value_or(0) - prompt_length);
  if (limits.min_new_tokens > limits.max_new_tokens) {
    sink.warn(fmt::format(
        "[generate] {} new tokens are asked for at least, but {} at most: it ends there",
        limits.min_new_tokens, limits.max_new_tokens));
  }
  return limits;
}

}  // namespace generation
}  // namespace tranship

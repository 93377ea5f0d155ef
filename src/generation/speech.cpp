#include "generation/speech.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config.h"

namespace tranship::generation {
namespace {

constexpr const char* kForced = "forced_decoder_ids";

/// Errors: corrupt for what cannot be a token.
int64_t checked_id(std::string_view key, int64_t id) {
  if (id >= 0 && id <= std::numeric_limits<int32_t>::max()) return id;
  fail(ErrorKind::kCorrupt, "[generate] {} has the id {}, expected 0 to {}", key, id,
       std::numeric_limits<int32_t>::max());
}

std::map<std::string, int64_t> read_ids(const Config& config, std::string_view key) {
  std::map<std::string, int64_t> ids;
  const std::optional<Config> object = config.find_object(key);
  if (!object) return ids;
  for (const std::string& name : object->keys())
    ids.emplace(name, checked_id(key, object->integer(name)));
  return ids;
}

/// [[1, null], [2, 50359]]: the tokens at places 1, 2 and so on.
std::vector<std::optional<int64_t>> read_forced(std::string_view where, std::string_view text) {
  std::vector<std::optional<int64_t>> forced;
  if (text.empty()) return forced;
  const Json json = parse_json("generate", where, text);
  const auto list = json.find(kForced);
  if (list == json.end() || list->is_null()) return forced;
  const auto is_entry = [](const Json& entry) {
    return entry.is_array() && entry.size() == 2 && entry[0].is_number_integer() &&
           (entry[1].is_null() || entry[1].is_number_integer());
  };
  if (!list->is_array() || !std::ranges::all_of(*list, is_entry)) {
    fail(ErrorKind::kCorrupt, "[generate] '{}': {} is {}, expected a list of [place, id]", where,
         kForced, to_python_json_line(*list));
  }
  for (const Json& entry : *list) {
    if (entry[0].get<int64_t>() != std::ssize(forced) + 1) {
      fail(ErrorKind::kUnsupported,
           "[generate] '{}': {} is {}, expected an entry for each of the places 1, 2 and so on",
           where, kForced, to_python_json_line(*list));
    }
    std::optional<int64_t> id;
    if (!entry[1].is_null()) id = checked_id(kForced, entry[1].get<int64_t>());
    forced.push_back(id);
  }
  return forced;
}

std::vector<std::string> names_of(const std::map<std::string, int64_t>& ids) {
  std::vector<std::string> names;
  for (const auto& [name, id] : ids) names.push_back(name);
  return names;
}

/// Errors: invalid_argument for a language that the model does not know.
int64_t language_id(const SpeechTokens& tokens, const std::string& language) {
  std::string lower = language;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string& name : {lower, "<|" + lower + "|>"}) {
    if (const auto found = tokens.lang_to_id.find(name); found != tokens.lang_to_id.end())
      return found->second;
  }
  fail(ErrorKind::kInvalidArgument,
       "[generate] the model does not know the language '{}'; it is said by its code, as in 'en': "
       "{}",
       language, listed(names_of(tokens.lang_to_id)));
}

/// Errors: invalid_argument for a task that the model does not know.
int64_t task_id(const SpeechTokens& tokens, const std::string& task) {
  const auto found = tokens.task_to_id.find(task);
  if (found != tokens.task_to_id.end()) return found->second;
  fail(ErrorKind::kInvalidArgument, "[generate] the model does not know the task '{}', only {}",
       task, listed(names_of(tokens.task_to_id)));
}

}  // namespace

SpeechTokens read_speech_tokens(std::string_view generation_config_json,
                                std::string_view config_json) {
  constexpr std::string_view kFile = "generation_config.json";
  SpeechTokens tokens;
  if (!generation_config_json.empty()) {
    const Config config = Config::parse(kFile, generation_config_json);
    tokens.lang_to_id = read_ids(config, "lang_to_id");
    tokens.task_to_id = read_ids(config, "task_to_id");
    tokens.no_timestamps_token_id = config.find_integer("no_timestamps_token_id");
    checked_id("no_timestamps_token_id", tokens.no_timestamps_token_id.value_or(0));
    tokens.is_multilingual = config.boolean("is_multilingual", true);
    tokens.forced = read_forced(kFile, generation_config_json);
  }
  if (tokens.forced.empty()) tokens.forced = read_forced("config.json", config_json);
  return tokens;
}

bool must_detect_language(const SpeechTokens& tokens, const GenerationConfig& config) {
  if (!config.language.empty() || tokens.lang_to_id.empty()) return false;
  const bool uses_forced = config.task.empty();
  return !uses_forced || tokens.forced.empty() || !tokens.forced.front();
}

std::vector<int64_t> speech_prompt(const SpeechTokens& tokens, const GenerationConfig& config,
                                   int64_t start, std::optional<int64_t> language) {
  const bool is_told = !config.language.empty() || !config.task.empty();
  if (is_told && !tokens.is_multilingual) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] this model knows English only: leave language and task out");
  }
  std::vector<std::optional<int64_t>> places = {start};
  if (!is_told) places.insert(places.end(), tokens.forced.begin(), tokens.forced.end());
  if (!config.language.empty()) language = language_id(tokens, config.language);
  if (language) {
    places.resize(std::max<size_t>(places.size(), 2));
    places[1] = language;
  }
  std::vector<int64_t> prompt;
  for (const std::optional<int64_t>& token : places) {
    if (token) prompt.push_back(*token);
  }
  if (!config.task.empty()) {
    prompt.push_back(task_id(tokens, config.task));
  } else if (!config.language.empty() && !tokens.task_to_id.empty()) {
    prompt.push_back(task_id(tokens, "transcribe"));
  }
  if (tokens.no_timestamps_token_id && prompt.back() != *tokens.no_timestamps_token_id)
    prompt.push_back(*tokens.no_timestamps_token_id);
  return prompt;
}

GenerationConfig with_speech_limits(GenerationConfig config, int64_t prompt_length,
                                    int64_t max_positions) {
  if (config.max_new_tokens && prompt_length + *config.max_new_tokens > max_positions) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] {} tokens to begin with and max_new_tokens = {} are over the model's {} "
         "positions: ask for fewer",
         prompt_length, *config.max_new_tokens, max_positions);
  }
  if (config.max_length) {
    const int64_t begun = std::min(max_positions / 2 - 1, prompt_length);
    config.max_length = std::min(*config.max_length + begun, max_positions);
  }
  return config;
}

}  // namespace tranship::generation

// Generator: the public face of the decode loop.
#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "base/error.h"
#include "checkpoint/config.h"
#include "generation/decode_loop.h"
#include "generation/generator_impl.h"
#include "generation/onnx_model.h"
#include "generation/stop_text.h"
#include "tranship/generation.h"

namespace tranship {
namespace {

using generation::SequenceText;

/// A number of the model's, if config.json says it: how many positions it has, or tokens.
std::optional<int64_t> number_of(const std::string& config_json, std::string_view key) {
  if (config_json.empty()) return std::nullopt;
  const Config config = Config::parse("config.json", config_json);
  if (const std::optional<int64_t> found = config.find_integer(key)) return found;
  const std::optional<Config> text_config = config.find_object("text_config");
  return text_config ? text_config->find_integer(key) : std::nullopt;
}

/// The prompts to run: an empty one becomes the BOS token. Errors: invalid_argument.
std::vector<std::vector<int64_t>> checked_prompts(std::span<const std::vector<int64_t>> prompts,
                                                  const GenerationConfig& config) {
  if (prompts.empty()) {
    fail(ErrorKind::kInvalidArgument, "[generate] there is no prompt: at least one is needed");
  }
  std::vector<std::vector<int64_t>> out(prompts.begin(), prompts.end());
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].empty() && config.bos_token_id) out[i] = {*config.bos_token_id};
    if (out[i].empty()) {
      fail(ErrorKind::kInvalidArgument,
           "[generate] prompt {} is empty, and there is no bos_token_id to begin with", i);
    }
    for (const int64_t id : out[i]) {
      if (id >= 0) continue;
      fail(ErrorKind::kInvalidArgument, "[generate] prompt {} has the id {}: ids are not negative",
           i, id);
    }
  }
  return out;
}

/// Errors: invalid_argument for tokens that the model does not have.
void check_ids(std::span<const std::vector<int64_t>> prompts, std::optional<int64_t> vocab_size) {
  if (!vocab_size) return;
  for (const std::vector<int64_t>& prompt : prompts) {
    for (const int64_t id : prompt) {
      if (id < *vocab_size) continue;
      fail(ErrorKind::kInvalidArgument,
           "[generate] a prompt has the id {}, and the model has the ids 0 to {}: is the tokenizer "
           "another model's?",
           id, *vocab_size - 1);
    }
  }
}

/// Errors: invalid_argument for a size outside of the export's range. `past` grows up to what is
/// there before the last token.
void check_ranges(const exporters::Ranges& ranges, int64_t num_rows, int64_t length,
                  int64_t max_new_tokens) {
  for (const auto& [axis, size] : {std::pair("batch", num_rows), std::pair("sequence", length),
                                   std::pair("past", length + max_new_tokens - 2)}) {
    const auto range = ranges.find(axis);
    const bool is_unused = std::string_view(axis) == "past" && max_new_tokens < 2;
    if (range == ranges.end() || is_unused) continue;
    if (size >= range->second.min && size <= range->second.max.value_or(size)) continue;
    fail(ErrorKind::kInvalidArgument,
         "[generate] prompts of {} tokens in a batch of {} and {} new tokens need '{}' = {}, "
         "outside of the range of the export, {}",
         length, num_rows, max_new_tokens, axis, size, exporters::text_of(range->second));
  }
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

GenerationResult run(GeneratorImpl& impl, std::span<const std::vector<int64_t>> prompts,
                     const GenerationConfig& config, generation::Watch watch) {
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  check_ids(prompts, number_of(impl.config_json, "vocab_size"));
  const auto length = static_cast<int64_t>(longest);
  const std::optional<int64_t> max_positions =
      number_of(impl.config_json, "max_position_embeddings");
  const generation::LoopOptions options = {
      .config = config,
      .limits = generation::limits_of(config, length, max_positions, impl.sink),
      .seed = config.seed ? *config.seed : random_seed(),
      .watch = std::move(watch),
  };
  check_ranges(impl.ranges, std::ssize(prompts), length, options.limits.max_new_tokens);
  GenerationResult result = generation::decode_loop(*impl.model, prompts, options);
  result.stats.load_seconds = impl.load_seconds;
  int64_t most = 0;
  for (const GeneratedSequence& sequence : result.sequences) {
    most = std::max(most, std::ssize(sequence.new_ids));
  }
  if (max_positions && length + most > *max_positions) {
    impl.sink.warn(fmt::format(
        "[generate] prompt and text have {} tokens, but the model was made for {}: what comes "
        "after these may make no sense",
        length + most, *max_positions));
  }
  return result;
}

}  // namespace

double GenerationStats::prefill_tokens_per_second() const {
  return prefill_seconds > 0 ? static_cast<double>(prompt_tokens) / prefill_seconds : 0;
}
double GenerationStats::decode_tokens_per_second() const {
  return decode_seconds > 0 ? static_cast<double>(decoded_tokens) / decode_seconds : 0;
}

Generator Generator::open(const std::filesystem::path& directory, const RunOptions& options,
                          const Sink& sink) {
  const auto start = std::chrono::steady_clock::now();
  const ExportedModel exported = ExportedModel::from_pretrained(directory, {.run = options}, sink);
  for (const std::string_view wanted : {"prefill", "decode"}) {
    const auto has_name = [&](const auto& component) { return component.first == wanted; };
    if (std::ranges::none_of(exported.components(), has_name)) {
      fail(ErrorKind::kInvalidArgument,
           "[generate] '{}' has no component '{}': it was not exported for generation (--task "
           "generation)",
           directory.string(), wanted);
    }
  }
  auto impl = std::make_unique<GeneratorImpl>();
  impl->directory = directory;
  impl->sink = sink;
  impl->config_json = exported.config();
  impl->generation_config_json = exported.generation_config();
  for (const char* component : {"prefill", "decode"}) {
    const ExportedComponent& part = exported.component(component);
    impl->ranges.merge(exporters::ranges_of(part.metadata, part.program.inputs()));
  }
  impl->model = generation::open_onnx_model(directory, options, sink);
  impl->load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Generator(std::move(impl));
}

Generator::Generator(std::unique_ptr<GeneratorImpl> impl) : impl_(std::move(impl)) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

GenerationConfig Generator::generation_config() const {
  try {
    return GenerationConfig::from_json(impl_->generation_config_json, impl_->config_json);
  } catch (const Error& error) {
    fail(error.kind(), "{} (of '{}')", error.what(), impl_->directory.string());
  }
}

const Tokenizer& Generator::tokenizer() {
  if (!impl_->tokenizer) impl_->tokenizer = Tokenizer::open(impl_->directory);
  return *impl_->tokenizer;
}

GenerationResult Generator::generate(std::span<const std::vector<int64_t>> prompts,
                                     const GenerationConfig& config, const OnToken& on_token) {
  generation::check_config(config);
  const std::vector<std::vector<int64_t>> checked = checked_prompts(prompts, config);
  std::vector<SequenceText> texts;
  if (!config.stop_strings.empty()) {
    for (const auto& prompt : checked) texts.emplace_back(tokenizer(), config.stop_strings, prompt);
  }
  const auto watch = [&](size_t row, int64_t id) -> std::optional<FinishReason> {
    const bool goes_on = !on_token || on_token(row, id);
    if (!texts.empty()) {
      texts[row].push(id);
      if (texts[row].stopped()) return FinishReason::kStopString;
    }
    return goes_on ? std::nullopt : std::optional(FinishReason::kCallback);
  };
  return run(*impl_, checked, config, watch);
}

GeneratedText Generator::generate_text(std::string_view prompt, const GenerationConfig& config,
                                       const OnText& on_text) {
  return continue_ids(tokenizer().encode(prompt), config, on_text);
}

GeneratedText Generator::chat(std::span<const ChatMessage> messages, const GenerationConfig& config,
                              const OnText& on_text) {
  return continue_ids(tokenizer().encode(tokenizer().apply_chat_template(messages), false), config,
                      on_text);
}

GeneratedText Generator::continue_ids(std::vector<int64_t> prompt_ids,
                                      const GenerationConfig& config, const OnText& on_text) {
  generation::check_config(config);
  const std::vector<std::vector<int64_t>> prompts =
      checked_prompts(std::span(&prompt_ids, 1), config);
  SequenceText sequence(tokenizer(), config.stop_strings, prompts[0]);
  GeneratedText out;
  const auto show = [&](const std::string& text) {
    out.text += text;
    return text.empty() || !on_text || on_text(text);
  };
  const auto watch = [&](size_t, int64_t id) -> std::optional<FinishReason> {
    const bool goes_on = show(sequence.push(id));
    if (sequence.stopped()) return FinishReason::kStopString;
    return goes_on ? std::nullopt : std::optional(FinishReason::kCallback);
  };
  GenerationResult result = run(*impl_, prompts, config, watch);
  show(sequence.flush());
  out.prompt_ids = prompts[0];
  out.new_ids = std::move(result.sequences[0].new_ids);
  out.finish_reason = result.sequences[0].finish_reason;
  out.stats = result.stats;
  out.seed = result.seed;
  return out;
}

}  // namespace tranship

// Generator and Conversation: the public face of the decode loop.
#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "base/error.h"
#include "checkpoint/config.h"
#include "generation/decode_loop.h"
#include "generation/generator_impl.h"
#include "generation/onnx_model.h"
#include "generation/process_memory.h"
#include "generation/speech.h"
#include "generation/stop_text.h"
#include "ir/dim.h"
#include "tranship/generation.h"

namespace tranship {
namespace {

using generation::SequenceText;

/// A number of the model's, if config.json has it, or its text_config.
std::optional<int64_t> number_of(const std::string& config_json, std::string_view key) {
  if (config_json.empty()) return std::nullopt;
  const Config config = Config::parse("config.json", config_json);
  if (const std::optional<int64_t> found = config.find_integer(key)) return found;
  const std::optional<Config> text_config = config.find_object("text_config");
  return text_config ? text_config->find_integer(key) : std::nullopt;
}

/// How many positions the model has, if config.json says so.
std::optional<int64_t> max_positions_of(const std::string& config_json) {
  const auto found = number_of(config_json, "max_position_embeddings");
  return found ? found : number_of(config_json, "max_target_positions");
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
/// there before the last token; `prompt_axis` is what the graph calls the prompt's length.
void check_ranges(const exporters::Ranges& ranges, const char* prompt_axis, int64_t num_rows,
                  int64_t length, int64_t max_new_tokens) {
  for (const auto& [axis, size] : {std::pair("batch", num_rows), std::pair(prompt_axis, length),
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

/// What a call runs. What an encoder reads is the model's already.
struct Job {
  std::vector<std::vector<int64_t>> prompts;  // of the decoder, where there is an encoder
  GenerationConfig config;
  int64_t num_encoder_tokens = 0;  // padding not counted
  bool goes_on = false;            // the prompt may begin with what the model has read
};

constexpr const char* kDecoderIds = "decoder_input_ids";

/// What the decoder beside an encoder begins with. Errors: invalid_argument.
int64_t decoder_start_of(const GenerationConfig& config) {
  if (config.decoder_start_token_id) return *config.decoder_start_token_id;
  if (config.bos_token_id) return *config.bos_token_id;
  fail(ErrorKind::kInvalidArgument,
       "[generate] neither decoder_start_token_id nor bos_token_id says what the decoder begins "
       "with: set one of them");
}

/// Takes decoder_input_ids out of the inputs: the decoder's prompts, each begun as it must.
/// Source: generation/utils.py _prepare_decoder_input_ids_for_generation (5.23).
std::vector<std::vector<int64_t>> take_decoder_prompts(NamedTensors& inputs, int64_t num_rows,
                                                       int64_t start) {
  const auto given = inputs.extract(kDecoderIds);
  std::vector<std::vector<int64_t>> prompts(static_cast<size_t>(num_rows));
  if (given.empty()) {
    for (auto& prompt : prompts) prompt = {start};
    return prompts;
  }
  const Tensor& ids = given.mapped();
  if (ids.shape().size() != 2 || ids.shape()[0] != num_rows || ids.shape()[1] < 1) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] decoder_input_ids is {}, expected a row of ids for each of {} inputs",
         ir::Shape::of(ids.shape()).text(), num_rows);
  }
  bool begins = false;  // as in Transformers, one row is enough
  for (int64_t row = 0; row < num_rows; ++row) {
    const auto values = ids.i64().subspan(static_cast<size_t>(row * ids.shape()[1]),
                                          static_cast<size_t>(ids.shape()[1]));
    prompts[static_cast<size_t>(row)].assign(values.begin(), values.end());
    begins |= values.front() == start;
  }
  if (!begins) {
    for (auto& prompt : prompts) prompt.insert(prompt.begin(), start);
  }
  return prompts;
}

/// The language of each row: of their tokens the likeliest after the decoder's first one.
/// Source: generation_whisper.py detect_language (5.23).
std::vector<int64_t> detect_languages(generation::EncoderDecoderModel& model, int64_t start,
                                      const std::map<std::string, int64_t>& lang_to_id,
                                      size_t num_rows) {
  std::set<int64_t> ids;
  for (const auto& [name, id] : lang_to_id) ids.insert(id);
  const std::vector<std::vector<int64_t>> prompts(num_rows, {start});
  const generation::Logits logits = model.prefill(generation::pad_left(prompts, start));
  std::vector<int64_t> languages;
  for (size_t row = 0; row < num_rows; ++row) {
    const std::span<const float> scores = logits.row(static_cast<int64_t>(row));
    if (*ids.begin() < 0 || *ids.rbegin() >= std::ssize(scores)) {
      fail(ErrorKind::kCorrupt,
           "[generate] generation_config.json: lang_to_id has ids outside of the vocabulary of {}",
           scores.size());
    }
    languages.push_back(*std::ranges::max_element(
        ids, {}, [&](int64_t id) { return scores[static_cast<size_t>(id)]; }));
  }
  return languages;
}

/// What the decoder of a model of speech begins with, and how far it may go.
Job speech_job(GeneratorImpl& impl, size_t num_rows, const GenerationConfig& config) {
  const generation::SpeechTokens tokens =
      generation::read_speech_tokens(impl.generation_config_json, impl.config_json);
  const int64_t start = decoder_start_of(config);
  std::vector<int64_t> languages;
  if (generation::must_detect_language(tokens, config))
    languages = detect_languages(*impl.encoder_decoder, start, tokens.lang_to_id, num_rows);
  Job job = {.prompts = {}, .config = config};
  for (size_t row = 0; row < num_rows; ++row) {
    job.prompts.push_back(generation::speech_prompt(
        tokens, config, start, languages.empty() ? std::nullopt : std::optional(languages[row])));
  }
  const std::optional<int64_t> max_positions = max_positions_of(impl.config_json);
  if (max_positions) {
    job.config =
        generation::with_speech_limits(config, std::ssize(job.prompts.front()), *max_positions);
  }
  return job;
}

/// Errors: invalid_argument for ids that are negative, which a graph would count from the end.
void check_ids(const NamedTensors& inputs) {
  for (const auto& [name, tensor] : inputs) {
    if (!name.ends_with("input_ids") || tensor.dtype() != DType::kI64) continue;
    const auto negative = std::ranges::find_if(tensor.i64(), [](int64_t id) { return id < 0; });
    if (negative == tensor.i64().end()) continue;
    fail(ErrorKind::kInvalidArgument, "[generate] {} has the id {}: ids are not negative", name,
         *negative);
  }
}

/// Errors: invalid_argument, for a model without an encoder, or inputs that are not a batch.
Job job_from(GeneratorImpl& impl, NamedTensors inputs, const GenerationConfig& config) {
  if (impl.encoder_decoder == nullptr) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] this model has no encoder to read {}: it continues prompts of token ids",
         inputs.empty() ? "anything" : inputs.begin()->first);
  }
  const std::string first = impl.encoder_decoder->encoder_input_names().front();
  const auto main = inputs.find(first);
  if (main == inputs.end() || main->second.shape().empty() || main->second.shape()[0] < 1) {
    fail(ErrorKind::kInvalidArgument, "[generate] the encoder needs '{}' [batch, ...]", first);
  }
  check_ids(inputs);
  const int64_t num_rows = main->second.shape()[0];
  const bool is_speech = first == "input_features" && !inputs.contains(kDecoderIds);
  Job job = {.prompts = {}, .config = config};
  if (!is_speech) job.prompts = take_decoder_prompts(inputs, num_rows, decoder_start_of(config));
  impl.encoder_decoder->set_encoder_inputs(std::move(inputs));
  return is_speech ? speech_job(impl, static_cast<size_t>(num_rows), config) : job;
}

/// Prompts as what an encoder reads: rows of one length, padded on the right.
NamedTensors pad_right(std::span<const std::vector<int64_t>> prompts, int64_t pad_id) {
  size_t columns = 0;
  for (const auto& prompt : prompts) columns = std::max(columns, prompt.size());
  const std::vector<int64_t> shape = {std::ssize(prompts), static_cast<int64_t>(columns)};
  Tensor ids(DType::kI64, shape), mask(DType::kI64, shape);
  std::ranges::fill(ids.i64(), pad_id);
  for (size_t row = 0; row < prompts.size(); ++row) {
    const auto at = static_cast<std::ptrdiff_t>(row * columns);
    std::ranges::copy(prompts[row], ids.i64().begin() + at);
    std::fill_n(mask.i64().begin() + at, prompts[row].size(), 1);
  }
  NamedTensors inputs;
  inputs.emplace("input_ids", std::move(ids));
  inputs.emplace("attention_mask", std::move(mask));
  return inputs;
}

Job job_of(GeneratorImpl& impl, std::span<const std::vector<int64_t>> prompts,
           const GenerationConfig& config) {
  std::vector<std::vector<int64_t>> checked = checked_prompts(prompts, config);
  if (impl.encoder_decoder == nullptr) return {.prompts = std::move(checked), .config = config};
  const std::vector<std::string> names = impl.encoder_decoder->encoder_input_names();
  if (std::ranges::count(names, "input_ids") == 0) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] the encoder reads {}, not text: use generate_from (--inputs)", listed(names));
  }
  NamedTensors inputs = pad_right(checked, generation::pad_id_of(config));
  if (std::ranges::count(inputs.at("attention_mask").i64(), 0) == 0 &&
      std::ranges::count(names, "attention_mask") == 0)
    inputs.erase("attention_mask");
  Job job = job_from(impl, std::move(inputs), config);
  for (const auto& prompt : checked) job.num_encoder_tokens += std::ssize(prompt);
  return job;
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

/// Errors: invalid_argument for more tokens than a static cache has slots.
void check_room(const std::optional<int64_t>& total, int64_t length, int64_t max_new_tokens) {
  const int64_t needed = length + max_new_tokens - 1;  // the last one is not read
  if (!total || needed <= *total) return;
  fail(
      ErrorKind::kInvalidArgument,
      "[generate] the prompt of {} tokens and {} new ones need {} slots, and the cache has {}: ask "
      "for fewer (--max-new-tokens), or export it with more (--max-cache-len)",
      length, max_new_tokens, needed, *total);
}

/// How many tokens at the beginning of the prompt the model has read: one is left to read.
int64_t num_cached(const GeneratorImpl& impl, const Job& job) {
  if (!job.goes_on || job.prompts.size() != 1) return 0;
  const std::vector<int64_t>& prompt = job.prompts[0];
  const auto differ = std::ranges::mismatch(prompt, impl.read_ids).in1;
  return std::min<int64_t>(differ - prompt.begin(), std::ssize(prompt) - 1);
}

/// Remembers what the model has read: all but the last token.
void note_read_ids(GeneratorImpl& impl, const Job& job, const GenerationResult& result) {
  if (job.prompts.size() != 1 || impl.encoder_decoder != nullptr) return;
  const std::vector<int64_t>& made = result.sequences[0].new_ids;
  impl.read_ids = job.prompts[0];
  impl.read_ids.insert(impl.read_ids.end(), made.begin(), made.end() - 1);
}

GenerationResult run(GeneratorImpl& impl, const Job& job, generation::Watch watch) {
  const GenerationConfig& config = job.config;
  size_t longest = 0;
  for (const auto& prompt : job.prompts) longest = std::max(longest, prompt.size());
  check_ids(job.prompts, number_of(impl.config_json, "vocab_size"));
  const auto length = static_cast<int64_t>(longest);
  const std::optional<int64_t> max_positions = max_positions_of(impl.config_json);
  const std::optional<int64_t> slots = impl.model->room().total;
  const std::optional<int64_t> positions =  // where nobody says how many new tokens
      slots ? std::min(*slots + 1, max_positions.value_or(*slots + 1)) : max_positions;
  const generation::LoopOptions options = {
      .config = config,
      .limits = generation::limits_of(config, length, positions, impl.sink),
      .seed = config.seed ? *config.seed : random_seed(),
      .watch = std::move(watch),
      .num_cached = num_cached(impl, job),
  };
  check_ranges(impl.ranges, impl.encoder_decoder != nullptr ? "decoder_sequence" : "sequence",
               std::ssize(job.prompts), length, options.limits.max_new_tokens);
  check_room(slots, length, options.limits.max_new_tokens);
  impl.read_ids.clear();
  GenerationResult result = generation::decode_loop(*impl.model, job.prompts, options);
  note_read_ids(impl, job, result);
  result.stats.load_seconds = impl.load_seconds;
  result.stats.memory = generation::most_of(result.stats.memory, impl.loaded);
  result.stats.prompt_tokens += job.num_encoder_tokens;
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

/// The ids of each row, until their texts have a stop string.
GenerationResult run_rows(Generator& generator, GeneratorImpl& impl, const Job& job,
                          const OnToken& on_token) {
  const std::vector<std::string>& stop_strings = job.config.stop_strings;
  std::vector<SequenceText> texts;
  if (!stop_strings.empty()) {
    for (const auto& prompt : job.prompts)
      texts.emplace_back(generator.tokenizer(), stop_strings, prompt);
  }
  const auto watch = [&](size_t row, int64_t id) -> std::optional<FinishReason> {
    const bool goes_on = !on_token || on_token(row, id);
    if (!texts.empty()) {
      texts[row].push(id);
      if (texts[row].stopped()) return FinishReason::kStopString;
    }
    return goes_on ? std::nullopt : std::optional(FinishReason::kCallback);
  };
  return run(impl, job, watch);
}

/// The text of the only row.
GeneratedText run_text(const Tokenizer& tokenizer, GeneratorImpl& impl, const Job& job,
                       const OnText& on_text) {
  SequenceText sequence(tokenizer, job.config.stop_strings, job.prompts[0]);
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
  GenerationResult result = run(impl, job, watch);
  show(sequence.flush());
  out.new_ids = std::move(result.sequences[0].new_ids);
  out.finish_reason = result.sequences[0].finish_reason;
  out.stats = result.stats;
  out.seed = result.seed;
  return out;
}

}  // namespace

namespace {

/// Whether decode is a decoder that looks at an encoder's states.
bool has_encoder(const ExportedModel& exported) {
  const std::vector<Port>& inputs = exported.component("decode").program.inputs();
  return std::ranges::any_of(inputs,
                             [](const Port& input) { return input.name == "decoder_input_ids"; });
}

/// Errors: invalid_argument, for an artifact that was not exported for generation. prefill may be
/// missing where decode has an open axis for its tokens.
void check_components(const ExportedModel& exported) {
  for (const std::string_view wanted : {"prefill", "decode"}) {
    if (generation::has_component(exported, wanted)) continue;
    if (wanted == "prefill" && generation::has_component(exported, "decode") &&
        !has_encoder(exported))
      continue;
    fail(ErrorKind::kInvalidArgument,
         "[generate] '{}' has no component '{}': it was not exported for generation (--task "
         "generation)",
         exported.directory().string(), wanted);
  }
}

}  // namespace

double GenerationStats::prefill_tokens_per_second() const {
  const auto read = static_cast<double>(prompt_tokens - cached_tokens);
  return prefill_seconds > 0 ? read / prefill_seconds : 0;
}
double GenerationStats::decode_tokens_per_second() const {
  return decode_seconds > 0 ? static_cast<double>(decoded_tokens) / decode_seconds : 0;
}

Generator Generator::open(const std::filesystem::path& directory, const RunOptions& options,
                          const Sink& sink) {
  const auto start = std::chrono::steady_clock::now();
  const ExportedModel exported = ExportedModel::from_pretrained(directory, {.run = options}, sink);
  check_components(exported);
  auto impl = std::make_unique<GeneratorImpl>();
  impl->directory = directory;
  impl->sink = sink;
  impl->config_json = exported.config();
  impl->generation_config_json = exported.generation_config();
  for (const char* component : {"prefill", "decode"}) {
    if (!generation::has_component(exported, component)) continue;
    const ExportedComponent& part = exported.component(component);
    impl->ranges.merge(exporters::ranges_of(part.metadata, part.program.inputs()));
  }
  if (has_encoder(exported)) {
    auto model = generation::open_onnx_encoder_decoder(exported, options, sink);
    impl->encoder_decoder = model.get();
    impl->model = std::move(model);
  } else {
    impl->model = generation::open_onnx_model(exported, options, sink);
  }
  impl->load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  impl->loaded = generation::memory_use();
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

std::optional<int64_t> Generator::max_length() const {
  const std::optional<int64_t> slots = impl_->model->room().total;
  return slots ? std::optional(*slots + 1) : std::nullopt;  // the last token is not read
}

const Tokenizer& Generator::tokenizer() {
  if (!impl_->tokenizer) impl_->tokenizer = Tokenizer::open(impl_->directory);
  return *impl_->tokenizer;
}

GenerationResult Generator::generate(std::span<const std::vector<int64_t>> prompts,
                                     const GenerationConfig& config, const OnToken& on_token) {
  generation::check_config(config);
  return run_rows(*this, *impl_, job_of(*impl_, prompts, config), on_token);
}

GenerationResult Generator::generate_from(const NamedTensors& inputs,
                                          const GenerationConfig& config, const OnToken& on_token) {
  generation::check_config(config);
  return run_rows(*this, *impl_, job_from(*impl_, inputs, config), on_token);
}

GeneratedText Generator::generate_text_from(const NamedTensors& inputs,
                                            const GenerationConfig& config, const OnText& on_text) {
  generation::check_config(config);
  const Job job = job_from(*impl_, inputs, config);
  if (job.prompts.size() != 1) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] the inputs have {} rows, expected one: use generate_from for a batch",
         job.prompts.size());
  }
  GeneratedText out = run_text(tokenizer(), *impl_, job, on_text);
  out.prompt_ids = job.prompts[0];
  return out;
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
                                      const GenerationConfig& config, const OnText& on_text,
                                      bool goes_on) {
  generation::check_config(config);
  const std::vector<std::vector<int64_t>> prompts =
      checked_prompts(std::span(&prompt_ids, 1), config);
  Job job = job_of(*impl_, prompts, config);
  job.goes_on = goes_on;
  GeneratedText out = run_text(tokenizer(), *impl_, job, on_text);
  out.prompt_ids = prompts[0];
  return out;
}

GeneratedText Conversation::say(std::string_view text, const GenerationConfig& config,
                                const OnText& on_text) {
  std::vector<ChatMessage> messages = messages_;
  messages.push_back({.role = "user", .content = std::string(text)});
  const Tokenizer& tokenizer = generator_->tokenizer();
  GeneratedText answer = generator_->continue_ids(
      tokenizer.encode(tokenizer.apply_chat_template(messages), false), config, on_text, true);
  messages.push_back({.role = "assistant", .content = answer.text});
  messages_ = std::move(messages);
  return answer;
}

}  // namespace tranship

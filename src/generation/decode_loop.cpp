#include "generation/decode_loop.h"

#include <algorithm>
#include <chrono>

#include "generation/process_memory.h"
#include "generation/sampling.h"

namespace tranship::generation {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The rows as they grow.
class Rows {
 public:
  Rows(size_t count, const LoopOptions& options)
      : options_(options), sequences_(count), ended_(count) {}

  bool all_ended() const {
    return std::ranges::all_of(ended_, [](bool ended) { return ended; });
  }

  /// Chooses a token for each row; one that has ended gets padding.
  void extend(Sampler& sampler, const Logits& logits, std::span<int64_t> ids) {
    for (size_t row = 0; row < sequences_.size(); ++row) {
      ids[row] = pad_id_of(options_.config);
      if (!ended_[row]) ids[row] = extend(sampler, logits, row);
    }
  }

  std::vector<GeneratedSequence> take() { return std::move(sequences_); }

 private:
  int64_t extend(Sampler& sampler, const Logits& logits, size_t row) {
    GeneratedSequence& sequence = sequences_[row];
    const bool may_end = std::ssize(sequence.new_ids) >= options_.limits.min_new_tokens;
    const int64_t id = sampler.choose(row, logits.row(static_cast<int64_t>(row)), may_end);
    sequence.new_ids.push_back(id);
    if (const std::optional<FinishReason> reason = why_ended(row, id)) {
      sequence.finish_reason = *reason;
      ended_[row] = true;
    }
    return id;
  }

  std::optional<FinishReason> why_ended(size_t row, int64_t id) const {
    const std::optional<FinishReason> watched =
        options_.watch ? options_.watch(row, id) : std::nullopt;
    if (std::ranges::count(options_.config.eos_token_id, id) > 0) return FinishReason::kEos;
    if (watched) return watched;
    if (std::ssize(sequences_[row].new_ids) >= options_.limits.max_new_tokens)
      return FinishReason::kLength;
    return std::nullopt;
  }

  const LoopOptions& options_;
  std::vector<GeneratedSequence> sequences_;
  std::vector<bool> ended_;
};

}  // namespace

bool PromptBatch::is_padded() const { return std::ranges::count(attention_mask, 0) > 0; }

PromptBatch pad_left(std::span<const std::vector<int64_t>> prompts, int64_t pad_id) {
  PromptBatch batch;
  batch.num_rows = std::ssize(prompts);
  for (const auto& prompt : prompts)
    batch.num_columns = std::max(batch.num_columns, std::ssize(prompt));
  for (const auto& prompt : prompts) {
    const auto num_padding = static_cast<size_t>(batch.num_columns) - prompt.size();
    batch.input_ids.insert(batch.input_ids.end(), num_padding, pad_id);
    batch.input_ids.insert(batch.input_ids.end(), prompt.begin(), prompt.end());
    batch.attention_mask.insert(batch.attention_mask.end(), num_padding, 0);
    batch.attention_mask.insert(batch.attention_mask.end(), prompt.size(), 1);
    batch.position_ids.insert(batch.position_ids.end(), num_padding, 0);
    for (size_t i = 0; i < prompt.size(); ++i)
      batch.position_ids.push_back(static_cast<int64_t>(i));
  }
  return batch;
}

int64_t pad_id_of(const GenerationConfig& config) {
  if (config.pad_token_id) return *config.pad_token_id;
  return config.eos_token_id.empty() ? 0 : config.eos_token_id.front();
}

namespace {

constexpr int64_t kChunkSize = 512;  // tokens of a prompt

struct ReadPrompts {
  Logits logits;
  int64_t num_cached = 0;  // tokens that were there already
};

ReadPrompts read_prompts(CausalModel& model, std::span<const std::vector<int64_t>> prompts,
                         const LoopOptions& options) {
  model.set_chunk_size(options.config.prefill_chunk_size.value_or(kChunkSize));
  const int64_t cached = options.num_cached;
  if (cached > 0 && model.rewind(cached))
    return {model.extend(std::span(prompts[0]).subspan(static_cast<size_t>(cached))), cached};
  return {model.prefill(pad_left(prompts, pad_id_of(options.config)))};
}

}  // namespace

GenerationResult decode_loop(CausalModel& model, std::span<const std::vector<int64_t>> prompts,
                             const LoopOptions& options) {
  GenerationResult result;
  result.seed = options.seed;
  for (const auto& prompt : prompts) result.stats.prompt_tokens += std::ssize(prompt);
  Sampler sampler(options.config, prompts, options.seed, options.limits.max_new_tokens);
  Rows rows(prompts.size(), options);
  std::vector<int64_t> ids(prompts.size());

  const double runtime_before = model.use().run_seconds;
  const Clock::time_point start = Clock::now();
  const ReadPrompts read = read_prompts(model, prompts, options);
  rows.extend(sampler, read.logits, ids);
  result.stats.cached_tokens = read.num_cached;
  result.stats.prefill_seconds = seconds_since(start);
  const MemoryUse after_prompt = memory_use();

  const Clock::time_point first = Clock::now();
  while (!rows.all_ended()) rows.extend(sampler, model.decode(ids), ids);
  result.stats.decode_seconds = seconds_since(first);
  result.stats.runtime_seconds = model.use().run_seconds - runtime_before;
  result.stats.cache_bytes = model.use().cache_bytes;
  result.stats.memory = most_of(after_prompt, memory_use());

  result.sequences = rows.take();
  for (const GeneratedSequence& sequence : result.sequences) {
    result.stats.new_tokens += std::ssize(sequence.new_ids);
  }
  result.stats.decoded_tokens = result.stats.new_tokens - std::ssize(result.sequences);
  return result;
}

}  // namespace tranship::generation

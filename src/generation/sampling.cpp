#include "generation/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"

namespace tranship::generation {

const float kForbidden = -std::numeric_limits<float>::infinity();

void penalize_repetition(std::span<float> scores, std::span<const int64_t> ids, double penalty) {
  const float factor = static_cast<float>(penalty);
  for (const int64_t id : ids) {
    if (id >= std::ssize(scores)) continue;
    float& score = scores[static_cast<size_t>(id)];
    score = score < 0 ? score * factor : score / factor;
  }
}

void forbid(std::span<float> scores, std::span<const int64_t> ids) {
  for (const int64_t id : ids) {
    if (id >= 0 && id < std::ssize(scores)) scores[static_cast<size_t>(id)] = kForbidden;
  }
}

void force(std::span<float> scores, std::span<const int64_t> ids) {
  std::ranges::fill(scores, kForbidden);
  for (const int64_t id : ids) {
    if (id >= 0 && id < std::ssize(scores)) scores[static_cast<size_t>(id)] = 0;
  }
}

void apply_temperature(std::span<float> scores, double temperature) {
  const float divisor = static_cast<float>(temperature);
  for (float& score : scores) score /= divisor;
}

void keep_top_k(std::span<float> scores, int64_t k) {
  if (k >= std::ssize(scores)) return;
  std::vector<float> best(static_cast<size_t>(k));
  std::ranges::partial_sort_copy(scores, best, std::greater<>());
  for (float& score : scores) {
    if (score < best.back()) score = kForbidden;
  }
}

// A heap, because usually only a few tokens of the many are kept: these alone are put in order.
void keep_top_p(std::span<float> scores, double p) {
  const double best = *std::ranges::max_element(scores);
  std::vector<uint32_t> heap;
  double total = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == kForbidden) continue;
    heap.push_back(static_cast<uint32_t>(i));
    total += std::exp(scores[i] - best);
  }
  const auto less = [&](uint32_t a, uint32_t b) {
    return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
  };
  std::ranges::make_heap(heap, less);
  // Transformers adds up from the least likely token, in f32, and removes what stays within 1 - p.
  const float removable = static_cast<float>(1 - p);
  double remaining = total;  // of the tokens in the heap
  size_t end = heap.size();
  while (end > 0 && (end == heap.size() || static_cast<float>(remaining / total) > removable)) {
    std::ranges::pop_heap(heap.begin(), heap.begin() + static_cast<std::ptrdiff_t>(end), less);
    remaining -= std::exp(scores[heap[--end]] - best);
  }
  for (size_t i = 0; i < end; ++i) scores[heap[i]] = kForbidden;
}

int64_t arg_max(std::span<const float> scores) {
  size_t best = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return static_cast<int64_t>(i);
    if (scores[i] > scores[best]) best = i;
  }
  return static_cast<int64_t>(best);
}

int64_t draw(std::span<const float> scores, double uniform) {
  const double best = scores[static_cast<size_t>(arg_max(scores))];
  if (!std::isfinite(best)) {
    fail(ErrorKind::kCorrupt,
         "[generate] the greatest logit is {}, so there are no probabilities to draw from: are the "
         "model's weights whole, "
         "and is its dtype wide enough?",
         best);
  }
  const auto weight = [&](float score) {
    return score == kForbidden ? 0.0 : std::exp(score - best);
  };
  double total = 0;
  for (const float score : scores) total += weight(score);
  const double target = uniform * total;  // less than the total, whatever the rounding
  double sum = 0;
  size_t i = 0;
  for (; i + 1 < scores.size(); ++i) {
    sum += weight(scores[i]);
    if (sum > target) break;
  }
  return static_cast<int64_t>(i);
}

Sampler::Sampler(const GenerationConfig& config, std::span<const std::vector<int64_t>> prompts,
                 uint64_t seed, std::optional<int64_t> max_new_tokens)
    : config_(config), max_new_tokens_(max_new_tokens), rows_(prompts.size()) {
  for (const auto& prompt : prompts) prompt_length_ = std::max(prompt_length_, std::ssize(prompt));
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::seed_seq words{seed & 0xFFFFFFFF, seed >> 32, static_cast<uint64_t>(i)};
    rows_[i].random.seed(words);
    for (const int64_t id : prompts[i]) remember(rows_[i], id);
  }
}

void Sampler::take(size_t row, int64_t id) {
  remember(rows_.at(row), id);
  ++rows_[row].num_new;
}

void Sampler::remember(Row& row, int64_t id) const {
  if (config_.repetition_penalty == 1.0) return;
  const size_t index = static_cast<size_t>(id);
  if (index >= row.seen.size()) row.seen.resize(index + 1);
  if (row.seen[index]) return;
  row.seen[index] = true;
  row.ids.push_back(id);
}

void Sampler::apply_rules(int64_t num_new) {
  const bool forces_bos = config_.forced_bos_token_id.has_value();
  if (forces_bos && prompt_length_ + num_new == 1)
    force(scores_, std::span(&*config_.forced_bos_token_id, 1));
  if (!config_.forced_eos_token_id.empty() && max_new_tokens_ && num_new == *max_new_tokens_ - 1)
    force(scores_, config_.forced_eos_token_id);
  forbid(scores_, config_.suppress_tokens);
  const int64_t begin = prompt_length_ == 1 && forces_bos ? 1 : 0;
  if (num_new == begin) forbid(scores_, config_.begin_suppress_tokens);
}

bool Sampler::has_rules() const {
  return config_.forced_bos_token_id || !config_.forced_eos_token_id.empty() ||
         !config_.suppress_tokens.empty() || !config_.begin_suppress_tokens.empty();
}

std::span<const float> Sampler::process(size_t row, std::span<const float> logits, bool may_end) {
  scores_.assign(logits.begin(), logits.end());
  if (config_.repetition_penalty != 1.0)
    penalize_repetition(scores_, rows_.at(row).ids, config_.repetition_penalty);
  if (!may_end) forbid(scores_, config_.eos_token_id);
  apply_rules(rows_.at(row).num_new);
  if (!config_.do_sample) return scores_;
  if (config_.temperature != 1.0) apply_temperature(scores_, config_.temperature);
  if (config_.top_k != 0) keep_top_k(scores_, config_.top_k);
  if (config_.top_p < 1.0) keep_top_p(scores_, config_.top_p);
  return scores_;
}

int64_t Sampler::choose(size_t row, std::span<const float> logits, bool may_end) {
  const int64_t greatest = arg_max(logits);
  if (std::isnan(logits[static_cast<size_t>(greatest)])) {
    fail(ErrorKind::kCorrupt,
         "[generate] the logit of token {} is not a number: are the model's weights whole, and is "
         "its dtype wide enough?",
         greatest);
  }
  const bool plain =
      !config_.do_sample && may_end && config_.repetition_penalty == 1.0 && !has_rules();
  int64_t id = greatest;
  if (!plain) {
    const std::span<const float> scores = process(row, logits, may_end);
    constexpr double kStep = 0x1p-53;
    id = config_.do_sample ? draw(scores, static_cast<double>(rows_[row].random() >> 11) * kStep)
                           : arg_max(scores);
  }
  take(row, id);
  return id;
}

}  // namespace tranship::generation

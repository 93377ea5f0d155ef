// From the logits of a step to its token: Transformers' processors, in its order and arithmetic,
// then the choice.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "tranship/generation.h"

namespace tranship::generation {

/// The score of a token that cannot be chosen.
extern const float kForbidden;

/// Makes tokens that were there before less likely (penalty over 1): a positive score is divided,
/// a negative one multiplied. `ids` are distinct; those beyond the scores are passed over.
/// Source: logits_process.py RepetitionPenaltyLogitsProcessor (5.23).
void penalize_repetition(std::span<float> scores, std::span<const int64_t> ids, double penalty);

/// Forbids all other tokens. Source: logits_process.py ForcedBOSTokenLogitsProcessor,
/// ForcedEOSTokenLogitsProcessor (5.23).
void force(std::span<float> scores, std::span<const int64_t> ids);

/// Forbids the tokens; those that are not in the vocabulary are passed over. Source:
/// logits_process.py MinNewTokensLengthLogitsProcessor (5.23).
void forbid(std::span<float> scores, std::span<const int64_t> ids);

/// Divides the scores. Source: logits_process.py TemperatureLogitsWarper (5.23).
void apply_temperature(std::span<float> scores, double temperature);

/// Forbids all tokens that score less than the k-th best; those equal to it stay, even beyond k.
/// Source: logits_process.py TopKLogitsWarper (5.23).
void keep_top_k(std::span<float> scores, int64_t k);

/// Keeps the most likely tokens: each that has less than `p` before it, and at least one.
/// Of equal ones the higher id counts as more likely.
/// Source: logits_process.py TopPLogitsWarper (5.23).
void keep_top_p(std::span<float> scores, double p);

/// The index of the greatest score, the lowest among equals; of the first NaN if there is one.
/// As torch.argmax.
int64_t arg_max(std::span<const float> scores);

/// An index with the probability that softmax gives it, where `uniform` is a draw from [0, 1).
/// Errors: corrupt if a score is NaN, or the greatest not finite.
int64_t draw(std::span<const float> scores, double uniform);

/// Chooses tokens for the sequences of a batch. Each draws from a stream of its own, which seed and
/// row decide, so what a row gets does not depend on the others.
class Sampler {
 public:
  /// `prompts` are without padding. `max_new_tokens`: when the last token comes, for
  /// forced_eos_token_id. Keeps a copy of what it needs.
  Sampler(const GenerationConfig& config, std::span<const std::vector<int64_t>> prompts,
          uint64_t seed, std::optional<int64_t> max_new_tokens = {});

  /// The next token of a row, which is remembered. Errors: corrupt if a logit is NaN, or none is
  /// finite.
  int64_t choose(size_t row, std::span<const float> logits, bool may_end);

  /// A row goes on with a token.
  void take(size_t row, int64_t id);

  /// The scores that choose() would choose from; valid until the next call.
  std::span<const float> process(size_t row, std::span<const float> logits, bool may_end);

 private:
  /// The tokens of a sequence so far, each once.
  struct Row {
    std::vector<int64_t> ids;
    std::vector<bool> seen;  // by id
    std::mt19937_64 random;
    int64_t num_new = 0;
  };
  /// What is forced and suppressed at a row's next token, in Transformers' order.
  void apply_rules(int64_t num_new);
  bool has_rules() const;
  void remember(Row& row, int64_t id) const;

  GenerationConfig config_;
  std::optional<int64_t> max_new_tokens_;
  int64_t prompt_length_ = 0;  // with padding
  std::vector<Row> rows_;
  std::vector<float> scores_;
};

}  // namespace tranship::generation

#include "generation/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/testing.h"
#include "generation/generation_config.h"
#include "generation/testing.h"

namespace tranship::generation {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Transformers' null is minus infinity.
std::vector<float> scores_from(const Json& list) {
  std::vector<float> out;
  for (const Json& value : list) out.push_back(value.is_null() ? kForbidden : value.get<float>());
  return out;
}

class SamplingGolden : public testing::TestWithParam<size_t> {};

TEST_P(SamplingGolden, scores_and_greedy_token_are_those_of_transformers) {
  const Json c = sampling_golden()["cases"].at(GetParam());
  SCOPED_TRACE(c["name"].get<std::string>());
  const auto config = GenerationConfig::from_json(c["config"].dump(), "");
  const Ids prompt = c["prompt"].get<Ids>(), added = c["new"].get<Ids>();
  const Limits limits = limits_of(config, std::ssize(prompt), {}, {});
  const bool may_end = std::ssize(added) >= limits.min_new_tokens;
  Sampler sampler(config, std::span(&prompt, 1), 0, limits.max_new_tokens);
  for (const int64_t id : added) sampler.take(0, id);
  const std::vector<float> logits = scores_from(c["logits"]), expected = scores_from(c["scores"]);
  const std::span<const float> scores = sampler.process(0, logits, may_end);
  ASSERT_EQ(scores.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(scores[i], expected[i]) << i;
  if (!config.do_sample) {
    EXPECT_EQ(sampler.choose(0, logits, may_end), c["greedy"]);
  }
}

INSTANTIATE_TEST_SUITE_P(all, SamplingGolden,
                         testing::Range(size_t{0}, sampling_golden()["cases"].size()));

TEST(ArgMax, is_the_lowest_of_equals_as_in_torch) {
  const Json golden = sampling_golden();
  for (const Json& c : golden["arg_max"])
    EXPECT_EQ(arg_max(scores_from(c["scores"])), c["index"]) << c.dump();
}

TEST(TopK, keeps_equals_at_its_border) {
  std::vector<float> scores = {1, 3, 2, 2, 0};
  keep_top_k(scores, 2);
  EXPECT_THAT(scores, ElementsAre(kForbidden, 3, 2, 2, kForbidden));
}

TEST(TopP, keeps_a_token_whatever_the_threshold) {
  std::vector<float> scores = {0, 0, 0, 0};
  keep_top_p(scores, 0);
  EXPECT_THAT(scores, ElementsAre(kForbidden, kForbidden, kForbidden, 0));
}

TEST(TopP, passes_over_what_is_forbidden_already) {
  std::vector<float> scores = {kForbidden, 4, 1, kForbidden, 3.9F};
  keep_top_p(scores, 0.9);
  EXPECT_THAT(scores, ElementsAre(kForbidden, 4, kForbidden, kForbidden, 3.9F));
}

TEST(RepetitionPenalty, passes_over_ids_that_have_no_logit) {
  std::vector<float> scores = {2, -2, 2};
  penalize_repetition(scores, Ids{0, 1, 99}, 2);
  EXPECT_THAT(scores, ElementsAre(1, -4, 2));
}

TEST(Draw, splits_the_unit_interval_by_probability) {
  const std::vector<float> scores = {kForbidden, std::log(1.F), std::log(2.F),
                                     kForbidden, std::log(1.F), kForbidden};
  EXPECT_EQ(draw(scores, 0), 1);
  EXPECT_EQ(draw(scores, 0.249), 1);
  EXPECT_EQ(draw(scores, 0.251), 2);
  EXPECT_EQ(draw(scores, 0.749), 2);
  EXPECT_EQ(draw(scores, 0.751), 4);
  EXPECT_EQ(draw(scores, 1 - 0x1p-53), 4);
}

TEST(Draw, never_takes_what_is_forbidden_at_the_ends_of_the_interval) {
  for (size_t count = 1; count < 60; ++count) {
    std::vector<float> scores(count + 2, kForbidden);
    for (size_t i = 1; i <= count; ++i) scores[i] = std::sin(static_cast<float>(i * count));
    EXPECT_EQ(draw(scores, 0), 1);
    EXPECT_EQ(draw(scores, 1 - 0x1p-53), static_cast<int64_t>(count));
  }
}

TEST(Draw, wants_a_finite_best_score) {
  for (const float best : {kForbidden, kInfinity}) {
    const Error error = error_of([&] { draw(std::vector<float>{kForbidden, best}, 0.5); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("the greatest logit"));
  }
}

GenerationConfig sampled() {
  GenerationConfig config;
  config.do_sample = true;
  return config;
}

// Pearson's chi-square over the draws. With 4 degrees of freedom it stays under 33.4 in all but one
// of a million seeds; this seed is fixed, so the test gives the same answer each time.
TEST(Sampler, draws_with_the_probabilities_of_softmax) {
  constexpr int kDraws = 20000;
  const std::vector<float> logits = {0.1F, 1.3F, -2, 0.7F, 2.2F, -40};
  double total = 0;
  for (const float logit : logits) total += std::exp(logit);
  std::vector<int> counts(logits.size());
  const Ids prompt = {0};
  Sampler sampler(sampled(), std::span(&prompt, 1), 20260101);
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(sampler.choose(0, logits, true))];
  double chi_square = 0;
  for (size_t i = 0; i + 1 < logits.size(); ++i) {
    const double expected = kDraws * std::exp(logits[i]) / total;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 33.4);
  EXPECT_EQ(counts.back(), 0) << "its probability is 1e-19";
}

Ids drawn(uint64_t seed, size_t row, size_t num_rows) {
  const std::vector<float> logits(50, 0.F);
  const std::vector<Ids> prompts(num_rows, Ids{1});
  Sampler sampler(sampled(), prompts, seed);
  Ids out;
  for (int i = 0; i < 20; ++i) {
    for (size_t other = 0; other < row; ++other) sampler.choose(other, logits, true);
    out.push_back(sampler.choose(row, logits, true));
  }
  return out;
}

TEST(Sampler, repeats_itself_with_the_same_seed_and_only_then) {
  EXPECT_EQ(drawn(7, 0, 1), drawn(7, 0, 1));
  EXPECT_NE(drawn(7, 0, 1), drawn(8, 0, 1));
  EXPECT_NE(drawn(7, 0, 1), drawn(7 + (uint64_t{1} << 32), 0, 1)) << "all 64 bits count";
}

TEST(Sampler, draws_for_a_row_what_it_would_draw_in_other_company) {
  EXPECT_EQ(drawn(7, 1, 2), drawn(7, 1, 5));
  EXPECT_NE(drawn(7, 0, 2), drawn(7, 1, 2)) << "equal prompts get different texts";
}

TEST(Sampler, greedy_ignores_what_is_for_sampling_only) {
  GenerationConfig config;
  config.temperature = 0.1;
  config.top_k = 1;
  config.top_p = 0.1;
  const Ids prompt = {0};
  Sampler sampler(config, std::span(&prompt, 1), 0);
  const std::vector<float> logits = {1, 3, 2};
  EXPECT_THAT(sampler.process(0, logits, true), ElementsAre(1, 3, 2));
}

TEST(Sampler, remembers_what_it_chose) {
  GenerationConfig config;
  config.repetition_penalty = 2;
  const Ids prompt = {2};
  Sampler sampler(config, std::span(&prompt, 1), 0);
  const std::vector<float> logits = {3, 4, 5, 2.1F};
  EXPECT_EQ(sampler.choose(0, logits, true), 1) << "5 is halved";
  EXPECT_EQ(sampler.choose(0, logits, true), 0) << "4 is halved too";
  EXPECT_EQ(sampler.choose(0, logits, true), 2) << "each once: 5 is 2.5 still";
}

TEST(Sampler, names_a_logit_that_is_not_a_number) {
  for (const bool do_sample : {false, true}) {
    GenerationConfig config;
    config.do_sample = do_sample;
    const Ids prompt = {0};
    Sampler sampler(config, std::span(&prompt, 1), 0);
    const Error error =
        error_of([&] { sampler.choose(0, std::vector<float>{1, 2, kNaN, 3}, true); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("the logit of token 2 is not a number"));
  }
}

}  // namespace
}  // namespace tranship::generation

#include "cli/model_facts.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "models/families.h"

namespace tranship::cli {
namespace {

Config tiny(std::string_view model_type) {
  return Config::parse("config.json", models::find_family(model_type)->tiny_config);
}

ModelFacts facts_of_config(const std::string& task, const Config& config) {
  CheckpointData data;
  data.config = config;
  return facts_of(build_task(task, data, {}, {}).program);
}

// tiny llama: 2 layers of 32 wide, 4 heads and 2 key-value heads of 8, an MLP of 48, 96 tokens.
constexpr uint64_t kEmbedding = 96 * 32;
constexpr uint64_t kLayer = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32;

TEST(ModelFacts, parameters_are_counted_once_over_all_components) {
  EXPECT_EQ(facts_of_config("generation", tiny("llama")).num_parameters,
            2 * kEmbedding + 2 * kLayer + 32);
  EXPECT_EQ(facts_of_config("forward", tiny("llama")).num_parameters,
            2 * kEmbedding + 2 * kLayer + 32);
}

TEST(ModelFacts, tied_embeddings_are_one_weight) {
  const Config tied = tiny("llama").with("tie_word_embeddings", "true");
  const ModelFacts facts = facts_of_config("generation", tied);
  EXPECT_TRUE(facts.tied_embeddings);
  EXPECT_EQ(facts.num_parameters, kEmbedding + 2 * kLayer + 32);
  EXPECT_FALSE(facts_of_config("generation", tiny("llama")).tied_embeddings);
}

TEST(ModelFacts, a_cache_grows_by_keys_and_values_of_each_layer) {
  EXPECT_EQ(facts_of_config("generation", tiny("llama")).state_bytes_per_token,
            2U * 2 * 2 * 8 * sizeof(float));
  EXPECT_EQ(facts_of_config("forward", tiny("bert")).state_bytes_per_token, 0U)
      << "an encoder has none";
}

TEST(ModelFacts, the_default_task_is_what_the_class_is_for) {
  EXPECT_EQ(default_task(tiny("llama"), ""), "generation");
  EXPECT_EQ(default_task(tiny("llama"), "LlamaModel"), "forward");
  EXPECT_EQ(default_task(tiny("bert"), ""), "forward");
  EXPECT_EQ(error_of([] { default_task(tiny("llama"), "NoSuchModel"); }).kind(),
            ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace tranship::cli

// The two real checkpoints, from the files to numbers and text, against what Transformers makes of
// them (tests/golden/smollm2.json and minilm.json). Skipped where TRANSHIP_SMOLLM2 (the .gguf) or
// TRANSHIP_MINILM (the folder) is not set: `make test` sets both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "tranship/exporters.h"
#include "tranship/generation.h"

namespace tranship {
namespace {

using Ids = std::vector<int64_t>;

Json golden(const std::string& name) {
  const std::filesystem::path path =
      std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/golden" / (name + ".json");
  return parse_json("test", path.string(), read_text(path));
}

std::optional<std::string> checkpoint_path(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

/// Exported once for all tests of the suite.
class SmolLm2 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::optional<std::string> path = checkpoint_path("TRANSHIP_SMOLLM2");
    if (!path) return;
    folder_ = std::make_unique<TestFolder>();
    const Checkpoint checkpoint = Checkpoint::open(*path);
    OnnxExporter()
        .export_for_generation(checkpoint, {.dynamic = true})
        .save_pretrained(folder_->path());
    const Sink sink = {.warning = [](std::string_view warning) { ADD_FAILURE() << warning; },
                       .progress = {}};
    generator_ = std::make_unique<Generator>(Generator::open(folder_->path(), {}, sink));
  }
  static void TearDownTestSuite() {
    generator_.reset();
    folder_.reset();
  }
  void SetUp() override {
    if (!generator_)
      GTEST_SKIP() << "TRANSHIP_SMOLLM2 is not set: the path of SmolLM2-135M-Instruct's .gguf";
  }

  static GenerationConfig config() {
    GenerationConfig config = generator_->generation_config();
    config.max_new_tokens = 64;
    return config;
  }

  static std::unique_ptr<TestFolder> folder_;
  static std::unique_ptr<Generator> generator_;
};
std::unique_ptr<TestFolder> SmolLm2::folder_;
std::unique_ptr<Generator> SmolLm2::generator_;

TEST_F(SmolLm2, greedy_tokens_of_each_prompt_are_those_of_transformers) {
  const Json document = golden("smollm2");
  for (const Json& prompt : document["prompts"]) {
    SCOPED_TRACE(prompt["name"].get<std::string>());
    const std::string message = prompt["message"].get<std::string>();
    std::string streamed;
    const auto on_text = [&](std::string_view text) {
      streamed += text;
      return true;
    };
    const GeneratedText out = prompt["chat"].get<bool>()
                                  ? generator_->chat({{"user", message}}, config(), on_text)
                                  : generator_->generate_text(message, config(), on_text);
    EXPECT_EQ(out.prompt_ids, prompt["prompt_ids"].get<Ids>());
    EXPECT_EQ(out.new_ids, prompt["new_ids"].get<Ids>());
    EXPECT_EQ(out.text, prompt["text"].get<std::string>());
    EXPECT_EQ(streamed, out.text);
  }
}

TEST_F(SmolLm2, greedy_tokens_of_a_left_padded_batch_are_those_of_transformers) {
  const Json batch = golden("smollm2")["batch"];
  std::vector<Ids> prompts;
  for (size_t row = 0; row < batch["input_ids"].size(); ++row) {
    const auto ids = batch["input_ids"][row].get<Ids>();
    const auto num_padding = std::ranges::count(batch["attention_mask"][row].get<Ids>(), 0);
    prompts.emplace_back(ids.begin() + num_padding, ids.end());
  }
  const GenerationResult result = generator_->generate(prompts, config());
  for (size_t row = 0; row < prompts.size(); ++row) {
    EXPECT_EQ(result.sequences[row].new_ids, batch["new_ids"][row].get<Ids>())
        << batch["names"][row];
  }
}

/// The same tokens from caches of slots, written in place: prompts through prefill, and through
/// decode, which is then the only graph that is loaded.
TEST(SmolLm2InSlots, gives_the_tokens_of_transformers) {
  const std::optional<std::string> path = checkpoint_path("TRANSHIP_SMOLLM2");
  if (!path)
    GTEST_SKIP() << "TRANSHIP_SMOLLM2 is not set: the path of SmolLM2-135M-Instruct's .gguf";
  const TestFolder folder;
  const Json document = golden("smollm2");
  for (const bool reads_in_decode : {false, true}) {
    OnnxConfig config = {.dynamic = true};
    if (reads_in_decode) config.static_shapes = {{"batch", 1}};
    if (reads_in_decode) config.ort_fusions = "cpu";
    OnnxExporter()
        .export_for_generation(Checkpoint::open(*path), config,
                               {.cache_implementation = "static",
                                .max_cache_len = 256,
                                .multi_token_decode = reads_in_decode})
        .save_pretrained(folder.path());
    Generator generator = Generator::open(folder.path());
    GenerationConfig wanted = generator.generation_config();
    wanted.max_new_tokens = 64;
    wanted.prefill_chunk_size = 16;
    for (const Json& prompt : document["prompts"]) {
      const auto ids = prompt["prompt_ids"].get<Ids>();
      const GenerationResult out = generator.generate(std::span(&ids, 1), wanted);
      EXPECT_EQ(out.sequences[0].new_ids, prompt["new_ids"].get<Ids>()) << prompt["name"];
    }
  }
}

/// Means over what the mask leaves, of length 1: [batch, hidden].
std::vector<std::vector<double>> embeddings(const Tensor& hidden, const std::vector<Ids>& mask) {
  const auto length = static_cast<size_t>(hidden.shape().at(1)),
             width = static_cast<size_t>(hidden.shape().at(2));
  std::vector<std::vector<double>> out;
  for (size_t row = 0; row < mask.size(); ++row) {
    std::vector<double> sum(width);
    for (size_t i = 0; i < length; ++i) {
      if (mask[row][i] == 0) continue;
      for (size_t j = 0; j < width; ++j) sum[j] += hidden.f32()[(row * length + i) * width + j];
    }
    double square = 0;  // the mean's length drops out
    for (const double value : sum) square += value * value;
    for (double& value : sum) value /= std::sqrt(square);
    out.push_back(std::move(sum));
  }
  return out;
}

Tensor stacked(const std::vector<Ids>& rows) {
  Ids all;
  for (const Ids& row : rows) all.insert(all.end(), row.begin(), row.end());
  return Tensor::of(std::span<const int64_t>(all), {std::ssize(rows), std::ssize(rows[0])});
}

TEST(MiniLm, sentence_embeddings_of_a_padded_batch_are_those_of_transformers) {
  const std::optional<std::string> path = checkpoint_path("TRANSHIP_MINILM");
  if (!path) GTEST_SKIP() << "TRANSHIP_MINILM is not set: the folder of all-MiniLM-L6-v2";
  const TestFolder folder;
  OnnxExporter()
      .export_model(Checkpoint::open(*path), OnnxConfig{.dynamic = true})
      .save_pretrained(folder.path());
  const ExportedModel exported = ExportedModel::from_pretrained(folder.path());

  const Json document = golden("minilm");
  std::vector<Ids> ids, mask, types;
  std::vector<std::string> texts;
  for (const Json& sentence : document["sentences"]) {
    texts.push_back(sentence["text"].get<std::string>());
    ids.push_back(sentence["input_ids"].get<Ids>());
    mask.push_back(sentence["attention_mask"].get<Ids>());
    types.push_back(sentence["token_type_ids"].get<Ids>());
  }
  const Encoding encoding = Tokenizer::open(folder.path()).encode_batch(texts);
  EXPECT_TRUE(std::ranges::equal(encoding.ids, stacked(ids).i64()));
  EXPECT_TRUE(std::ranges::equal(encoding.attention_mask, stacked(mask).i64()));

  const NamedTensors outputs = exported({{"input_ids", stacked(ids)},
                                         {"attention_mask", stacked(mask)},
                                         {"token_type_ids", stacked(types)}});
  const auto found = embeddings(outputs.at("last_hidden_state"), mask);
  double worst = 0;
  for (size_t row = 0; row < found.size(); ++row) {
    const auto expected = document["sentences"][row]["embedding"].get<std::vector<double>>();
    ASSERT_EQ(expected.size(), found[row].size());
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(found[row][i] - expected[i]));
  }
  EXPECT_LE(worst, 1e-5);
  RecordProperty("largest_difference", std::to_string(worst * 1e9) + "e-9");
}

}  // namespace
}  // namespace tranship

// The decode loop over real graphs: a tiny llama, exported, run by ONNX Runtime, against
// Transformers' generate().
#include "generation/onnx_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/testing.h"
#include "formats/onnx/ort_test_support.h"
#include "generation/testing.h"
#include "tranship/exporters.h"
#include "tranship/generation.h"

namespace tranship::generation {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Checkpoint tiny_llama() { return Checkpoint::synthetic(sampling_golden()["config"].dump()); }

class TinyLlama : public onnx::NeedsOnnxRuntime {
 protected:
  Generator exported(OnnxConfig config = {}) const {
    config.dynamic = true;
    OnnxExporter().export_for_generation(tiny_llama(), config).save_pretrained(folder_.path());
    return Generator::open(folder_.path(), {}, no_warnings());
  }
  static Sink no_warnings() {
    return {.warning = [](std::string_view warning) { ADD_FAILURE() << warning; }, .progress = {}};
  }

  TestFolder folder_;
};

/// One golden run: its prompts give the tokens that they give in Transformers.
void expect_its_tokens(const Json& run, Generator& generator) {
  const auto prompts = run["prompts"].get<std::vector<Ids>>();
  const auto expected = run["new_ids"].get<std::vector<Ids>>();
  const GenerationConfig config = {.max_new_tokens = 24,
                                   .repetition_penalty = run["repetition_penalty"].get<double>()};
  const GenerationResult result = generator.generate(prompts, config);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(result.sequences[i].new_ids, expected[i]) << i;
}

TEST_F(TinyLlama, a_left_padded_batch_gives_the_tokens_of_transformers) {
  Generator generator = exported();
  const Json golden = sampling_golden();
  for (const Json& run : golden["tokens"]) expect_its_tokens(run, generator);
}

TEST_F(TinyLlama, fused_graphs_give_the_same_tokens) {
  Generator generator = exported({.ort_fusions = "cpu"});
  const Json golden = sampling_golden();
  for (const Json& run : golden["tokens"]) expect_its_tokens(run, generator);
}

TEST_F(TinyLlama, a_prompt_alone_gives_the_tokens_that_it_gives_in_a_batch) {
  Generator generator = exported();
  const Json run = sampling_golden()["tokens"][0];
  const auto prompts = run["prompts"].get<std::vector<Ids>>();
  for (size_t i = 0; i < prompts.size(); ++i) {
    const GenerationResult result =
        generator.generate(std::span(&prompts[i], 1), {.max_new_tokens = 24});
    EXPECT_EQ(result.sequences[0].new_ids, run["new_ids"][i].get<Ids>()) << i;
  }
}

TEST_F(TinyLlama, rows_that_end_early_do_not_change_the_others) {
  Generator generator = exported();
  const Json run = sampling_golden()["tokens"][0];
  const auto prompts = run["prompts"].get<std::vector<Ids>>();
  const GenerationConfig config = {.max_new_tokens = 24, .eos_token_id = {32, 19}};
  const GenerationResult result = generator.generate(prompts, config);
  EXPECT_THAT(result.sequences[0].new_ids, ElementsAre(0, 33, 32));
  EXPECT_THAT(result.sequences[1].new_ids, ElementsAre(51, 19));
  EXPECT_EQ(result.sequences[2].new_ids, run["new_ids"][2].get<Ids>());
}

TEST_F(TinyLlama, what_is_drawn_for_a_prompt_does_not_depend_on_its_company) {
  Generator generator = exported();
  const std::vector<Ids> both = {{5, 17, 3}, {11}};
  const GenerationConfig config = {.max_new_tokens = 24, .do_sample = true, .seed = 5};
  const GenerationResult alone = generator.generate(std::span(both).first(1), config);
  EXPECT_EQ(alone.sequences[0].new_ids, generator.generate(both, config).sequences[0].new_ids);
}

TEST_F(TinyLlama, a_graph_without_attention_mask_takes_prompts_of_one_length_only) {
  OnnxConfig config;
  config.graph_inputs = std::vector<std::string>{"input_ids"};
  Generator generator = exported(config);
  const Json run = sampling_golden()["tokens"][0];
  const auto prompts = run["prompts"].get<std::vector<Ids>>();
  const GenerationResult result =
      generator.generate(std::span(prompts).first(1), {.max_new_tokens = 24});
  EXPECT_EQ(result.sequences[0].new_ids, run["new_ids"][0].get<Ids>());
  const Error error = error_of([&] { generator.generate(prompts, {.max_new_tokens = 24}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("attention_mask"));
}

TEST_F(TinyLlama, caches_by_any_name_are_found) {
  OnnxConfig config;
  config.cache_name = "cache";
  Generator generator = exported(config);
  const Json run = sampling_golden()["tokens"][0];
  const auto prompts = run["prompts"].get<std::vector<Ids>>();
  EXPECT_EQ(generator.generate(prompts, {.max_new_tokens = 24}).sequences[1].new_ids,
            run["new_ids"][1].get<Ids>());
}

// Of a padded batch: the last position of each row, from [2, 3, 61].
std::vector<std::vector<float>> prefill_logits(DType dtype) {
  const TestFolder folder;
  OnnxExporter()
      .export_for_generation(tiny_llama(), {.dynamic = true, .dtype = dtype})
      .save_pretrained(folder.path());
  const std::unique_ptr<CausalModel> model =
      open_onnx_model(ExportedModel::from_pretrained(folder.path()), {}, {});
  const Logits logits = model->prefill(pad_left(std::vector<Ids>{{5, 17, 3}, {11}}, 0));
  std::vector<std::vector<float>> out;
  for (int64_t row = 0; row < 2; ++row)
    out.emplace_back(logits.row(row).begin(), logits.row(row).end());
  return out;
}

TEST_F(TinyLlama, logits_of_16_bits_are_read_as_numbers) {
  const auto wide = prefill_logits(DType::kF32), half = prefill_logits(DType::kF16);
  for (size_t row = 0; row < 2; ++row) {
    // f16 has 11 bits: each of some 20 roundings on the way is off by at most 2^-11 of numbers up
    // to 4.
    EXPECT_NE(half[row], wide[row]);
    EXPECT_THAT(half[row], testing::Pointwise(testing::FloatNear(20 * 4 * 0x1p-11F), wide[row]));
  }
}

TEST_F(TinyLlama, graphs_that_take_one_length_only_are_warned_of_and_do_not_open) {
  for (const auto& [axis, message] :
       {std::pair("sequence", "prefill takes exactly 4 tokens ('input_ids')"),
        std::pair("past", "decode takes exactly 4 cached tokens")}) {
    std::vector<std::string> warnings;
    const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                       .progress = {}};
    const OnnxConfig config = {.dynamic = true, .static_shapes = {{axis, 4}}};
    OnnxExporter()
        .export_for_generation(tiny_llama(), config, {}, sink)
        .save_pretrained(folder_.path());
    EXPECT_THAT(warnings, ElementsAre(HasSubstr(std::string("'") + axis + "' is fixed at 4")));
    const Error error = error_of([&] { Generator::open(folder_.path()); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(message), HasSubstr("--static")));
  }
}

TEST_F(TinyLlama, ids_that_the_model_does_not_have_are_refused_before_it_runs) {
  Generator generator = exported();
  const std::vector<Ids> prompts = {{5, 6}, {1000000}};
  const Error error = error_of([&] { generator.generate(prompts, {.max_new_tokens = 3}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("has the id 1000000, and the model has the ids 0 to "));
}

TEST_F(TinyLlama, a_generation_config_that_is_wrong_is_told_with_its_directory) {
  exported();
  folder_.write("generation_config.json", "{");
  const Error error = error_of([&] { Generator::open(folder_.path()).generation_config(); });
  EXPECT_THAT(error.what(), HasSubstr(folder_.path().string()));
}

TEST_F(TinyLlama, a_fixed_batch_takes_so_many_prompts) {
  Generator generator = exported({.static_shapes = {{"batch", 2}}});
  const std::vector<Ids> two = {{5, 6}, {7}};
  EXPECT_EQ(generator.generate(two, {.max_new_tokens = 3}).sequences.size(), 2U);
  const Error error =
      error_of([&] { generator.generate(std::span(two).first(1), {.max_new_tokens = 3}); });
  EXPECT_THAT(error.what(), HasSubstr("exactly 2 prompts at a time"));
}

TEST_F(TinyLlama, the_ranges_of_the_export_hold) {
  Generator generator =
      exported({.dims = {{"sequence", {"sequence", 1, 4}}, {"past", {"past", 0, 8}}}});
  const auto message = [&](const Ids& prompt, int64_t max_new_tokens) -> std::string {
    return error_of([&] {
             generator.generate(std::span(&prompt, 1), {.max_new_tokens = max_new_tokens});
           })
        .what();
  };
  const Ids prompt = {5, 6, 7, 8};
  EXPECT_NO_THROW(generator.generate(std::span(&prompt, 1), {.max_new_tokens = 6}));
  EXPECT_THAT(message(prompt, 7),
              HasSubstr("need 'past' = 9, outside of the range of the export, 0 to 8"));
  EXPECT_THAT(message({1, 2, 3, 4, 5}, 1), HasSubstr("need 'sequence' = 5"));
}

TEST_F(TinyLlama, an_artifact_of_one_forward_does_not_open) {
  OnnxExporter()
      .export_model(tiny_llama(), OnnxConfig{.dynamic = true})
      .save_pretrained(folder_.path());
  const Error error = error_of([&] { Generator::open(folder_.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("has no component 'prefill'"), HasSubstr("--task generation")));
}

TEST_F(TinyLlama, stop_strings_want_a_tokenizer) {
  Generator generator = exported();
  const std::vector<Ids> prompts = {{5}};
  const Error error = error_of([&] { generator.generate(prompts, {.stop_strings = {"a"}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("tokenizer.json"));
}

/// Other kinds of model: tests/golden/tokens, by tools/reference.py.
class OtherModels : public TinyLlama, public testing::WithParamInterface<const char*> {};

TEST_P(OtherModels, a_left_padded_batch_gives_the_tokens_of_transformers) {
  const std::string path =
      std::string(TRANSHIP_SOURCE_DIR) + "/tests/golden/tokens/" + GetParam() + ".json";
  const Json golden = parse_json("golden", path, read_text(path));
  OnnxExporter()
      .export_for_generation(Checkpoint::synthetic(golden["config"].dump()), {.dynamic = true})
      .save_pretrained(folder_.path());
  Generator generator = Generator::open(folder_.path(), {}, no_warnings());
  for (const Json& run : golden["runs"]) {
    const auto prompts = run["prompts"].get<std::vector<Ids>>();
    const GenerationResult result = generator.generate(prompts, {.max_new_tokens = 16});
    for (size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(result.sequences[i].new_ids, run["new_ids"][i].get<Ids>()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, OtherModels, testing::Values("mamba", "qwen3_moe"),
                         [](const auto& family) { return family.param; });

TEST_F(TinyLlama, logits_of_the_last_token_alone_give_the_same_tokens) {
  for (const std::optional<std::string>& fusions : {std::optional<std::string>(), {"cpu"}}) {
    const TestFolder folder;
    OnnxExporter()
        .export_for_generation(tiny_llama(), {.dynamic = true, .ort_fusions = fusions},
                               {.last_token_logits = true})
        .save_pretrained(folder.path());
    Generator generator = Generator::open(folder.path(), {}, no_warnings());
    expect_its_tokens(sampling_golden()["tokens"][0], generator);
  }
}

}  // namespace
}  // namespace tranship::generation

#include "exporters/genai_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "models/families.h"

namespace tranship::exporters {
namespace {

using testing::HasSubstr;

Checkpoint tiny(std::string_view model_type) {
  return Checkpoint::synthetic(models::find_family(model_type)->tiny_config);
}

ExportedModel for_genai(std::string_view model_type, OnnxConfig config,
                        const GenerationOptions& generation = {}) {
  config.dynamic = true;
  config.also = {"genai"};
  return OnnxExporter().export_for_generation(tiny(model_type), config, generation);
}

Json written(const ExportedModel& model) {
  const TestFolder folder;
  model.save_pretrained(folder.path());
  return parse_json("test", "genai_config.json", read_text(folder / kGenaiConfigFile));
}

TEST(GenaiConfig, names_what_decode_takes_and_gives) {
  const Json config = written(for_genai("qwen3", {}));
  EXPECT_EQ(config["model"]["decoder"].dump(), Json::parse(R"({
    "filename": "decode.onnx", "head_size": 16, "hidden_size": 32,
    "inputs": {"attention_mask": "attention_mask", "input_ids": "input_ids",
               "past_key_names": "input.past_key_values.layers.%d.keys",
               "past_value_names": "input.past_key_values.layers.%d.values", "position_ids": "position_ids"},
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "outputs": {"logits": "logits", "present_key_names": "output.past_key_values.layers.%d.keys",
                "present_value_names": "output.past_key_values.layers.%d.values"},
    "session_options": {"provider_options": []}})")
                                                   .dump());
  EXPECT_EQ(config["model"]["context_length"], 64);
  EXPECT_EQ(config["search"]["max_length"], 64);
}

TEST(GenaiConfig, decode_reads_prompts_too) {
  const ExportedModel model = for_genai("llama", {});
  EXPECT_EQ(model.component("decode").program.inputs()[0].shape[1], "sequence");
}

TEST(GenaiConfig, a_buffer_is_shared_where_the_graph_writes_in_place) {
  const auto shares = [](const OnnxConfig& config) {
    return written(for_genai("llama", config))["search"]["past_present_share_buffer"].get<bool>();
  };
  EXPECT_FALSE(shares({}));
  EXPECT_TRUE(shares({.ort_fusions = "cpu", .static_shapes = {{"batch", 1}}}));
}

TEST(GenaiConfig, special_tokens_and_sampling_are_the_checkpoints) {
  CheckpointData data = tiny("llama").data();
  data.config = data.config.with("eos_token_id", "7").with("bos_token_id", "5");
  data.generation_config = Config::parse(
      "generation_config.json", R"({"eos_token_id": [3, 4], "do_sample": true, "top_k": 9})");
  const Checkpoint checkpoint(std::make_shared<const CheckpointData>(std::move(data)));
  const Json config = written(
      OnnxExporter().export_for_generation(checkpoint, {.dynamic = true, .also = {"genai"}}));
  EXPECT_EQ(config["model"]["eos_token_id"], Json::parse("[3, 4]"));
  EXPECT_EQ(config["model"]["bos_token_id"], 5);
  EXPECT_EQ(config["search"]["do_sample"], true);
  EXPECT_EQ(config["search"]["top_k"], 9);
}

TEST(GenaiConfig, goes_along_when_an_artifact_is_saved_again) {
  const TestFolder first, second;
  for_genai("llama", {}).save_pretrained(first.path());
  ExportedModel::from_pretrained(first.path()).save_pretrained(second.path());
  EXPECT_EQ(read_text(first / kGenaiConfigFile), read_text(second / kGenaiConfigFile));
}

TEST(GenaiConfig, what_genai_cannot_feed_is_refused) {
  const auto problem = [](std::string_view model_type, const GenerationOptions& generation) {
    return std::string(error_of([&] { for_genai(model_type, {}, generation); }).what());
  };
  EXPECT_THAT(problem("t5", {}), HasSubstr("an encoder"));
  EXPECT_THAT(problem("mamba", {}), HasSubstr("conv_states"));
  EXPECT_THAT(problem("llama", {.cache_implementation = "static", .max_cache_len = 16}),
              HasSubstr("cumulative_length"));
  const auto exporting = [](const std::string& other, bool generates) {
    const OnnxConfig config = {.dynamic = true, .also = {other}};
    return error_of([&] {
             generates ? OnnxExporter().export_for_generation(tiny("llama"), config)
                       : OnnxExporter().export_model(tiny("llama"), config);
           })
        .kind();
  };
  EXPECT_EQ(exporting("ollama", true), ErrorKind::kInvalidArgument);
  EXPECT_EQ(exporting("genai", false), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace tranship::exporters

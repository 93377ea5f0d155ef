#include "exporters/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/atomic_file.h"
#include "base/json.h"
#include "exporters/export_json.h"

namespace tranship::exporters {
namespace {

using testing::HasSubstr;

const std::filesystem::path kCases =
    std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/python_export";

ExportMetadata described(const std::string& config_json, std::vector<std::string> inputs,
                         const OnnxConfig& config) {
  const Checkpoint checkpoint = Checkpoint::synthetic(config_json);
  const tasks::TaskProgram made =
      tasks::forward(checkpoint.data(), {.graph_inputs = std::move(inputs)});
  return describe(made.signatures[0], *made.program.components[0].graph, made.architecture,
                  DType::kF32, config, {{"batch", 2}, {"sequence", 7}, {"decoder_sequence", 3}});
}

/// The same model, described by Transformers' exporter and by ours.
void expect_as_transformers(const std::string& name, std::vector<std::string> inputs) {
  const std::string path = (kCases / name / "export.json").string();
  const ExportMetadata theirs = read_manifest(path, read_text(path)).components[0].metadata;
  const Json golden = Json::parse(read_text(kCases / (name + ".json")));
  const ExportMetadata ours =
      described(golden["config"].dump(), std::move(inputs), {.dynamic = true});
  EXPECT_EQ(ours.architecture, theirs.architecture);
  EXPECT_EQ(ours.export_dtype, theirs.export_dtype);
  EXPECT_EQ(ours.export_device, theirs.export_device);
  EXPECT_EQ(ours.kwargs, theirs.kwargs);
  EXPECT_EQ(ours.in_spec, theirs.in_spec);
  EXPECT_EQ(ours.out_spec, theirs.out_spec);
  EXPECT_EQ(ours.in_constants, theirs.in_constants);
  EXPECT_EQ(ours.out_constants, theirs.out_constants);
  EXPECT_EQ(Json::parse(ours.export_config), Json::parse(theirs.export_config));
}

TEST(Metadata, of_a_decoder_is_what_transformers_records) {
  expect_as_transformers("llama", {"attention_mask"});
}

TEST(Metadata, of_an_encoder_is_what_transformers_records) {
  expect_as_transformers("bert", {"attention_mask", "token_type_ids"});
}

TEST(Metadata, of_an_encoder_decoder_is_what_transformers_records) {
  expect_as_transformers("t5", {"attention_mask"});
}

TEST(Metadata, of_an_encoder_decoders_steps_is_what_transformers_records) {
  const std::string path = (kCases / "t5_generation" / "export.json").string();
  const Manifest theirs = read_manifest(path, read_text(path));
  const Json golden = Json::parse(read_text(kCases / "t5_generation.json"));
  const Checkpoint checkpoint = Checkpoint::synthetic(golden["config"].dump());
  const tasks::TaskProgram made = tasks::generation(checkpoint.data(), {});
  for (size_t i = 1; i < 3; ++i) {  // there is an encoder before them
    const ExportMetadata ours = describe(
        made.signatures[i], *made.program.components[i].graph, made.architecture, DType::kF32, {},
        {{"batch", 2}, {"sequence", 7}, {"decoder_sequence", 1}, {"past", 1}});
    const ExportMetadata& metadata = theirs.components[i - 1].metadata;
    EXPECT_EQ(ours.out_spec, metadata.out_spec);
    if (i == 1) continue;  // their prefill takes a cache that is empty
    EXPECT_EQ(ours.kwargs, metadata.kwargs);
    EXPECT_EQ(ours.in_spec, metadata.in_spec);
  }
}

/// A manifest of Transformers' exporter, and the config of its model.
std::pair<Manifest, Checkpoint> described_by_transformers(const std::string& name) {
  const std::string path = (kCases / "described" / (name + ".json")).string();
  const Json json = Json::parse(read_text(path));
  return {read_manifest(path, json["manifest"].dump()),
          Checkpoint::synthetic(json["config"].dump())};
}

TEST(Metadata, of_a_model_of_images_is_what_transformers_records) {
  const auto [theirs, checkpoint] = described_by_transformers("vit");
  const tasks::TaskProgram made = tasks::forward(checkpoint.data(), {});
  const ExportMetadata ours =
      describe(made.signatures[0], *made.program.components[0].graph, made.architecture,
               DType::kF32, {}, {{"batch", 2}, {"height", 32}, {"width", 32}});
  EXPECT_EQ(ours.kwargs, theirs.components[0].metadata.kwargs);
  EXPECT_EQ(ours.in_spec, theirs.components[0].metadata.in_spec);
  EXPECT_EQ(ours.out_spec, theirs.components[0].metadata.out_spec);
}

TEST(Metadata, of_states_that_do_not_grow_is_what_transformers_records) {
  const auto [theirs, checkpoint] = described_by_transformers("mamba");
  const tasks::TaskProgram made = tasks::generation(checkpoint.data(), {});
  for (size_t i = 0; i < 2; ++i) {
    const ExportMetadata ours =
        describe(made.signatures[i], *made.program.components[i].graph, made.architecture,
                 DType::kF32, {}, {{"batch", 1}, {"sequence", 7}});
    EXPECT_EQ(ours.out_spec, theirs.components[i].metadata.out_spec);
  }
  // Their decode also takes an attention_mask that is None.
  const ExportMetadata ours = describe(made.signatures[1], *made.program.components[1].graph,
                                       made.architecture, DType::kF32, {}, {{"batch", 1}});
  EXPECT_EQ(ours.kwargs,
            R"({"input_ids": {"rank": 2, "shape": [1, 1], "dtype": "int64"}, "cache_params": )"
            R"({"container": "DynamicCache"}})");
  const Json our_spec = Json::parse(ours.in_spec);
  const Json their_spec = Json::parse(theirs.components[1].metadata.in_spec);
  EXPECT_EQ(our_spec[1]["children_spec"][1]["children_spec"][1],
            their_spec[1]["children_spec"][1]["children_spec"][2]);
}

TEST(Metadata, of_a_step_takes_a_cache_of_the_exports_dtype) {
  const Checkpoint checkpoint = Checkpoint::synthetic(models::find_family("llama")->tiny_config);
  const tasks::TaskProgram made = tasks::generation(checkpoint.data(), {.dtype = DType::kBF16});
  const ExportMetadata metadata =
      describe(made.signatures[1], *made.program.components[1].graph, made.architecture,
               DType::kBF16, {}, {{"batch", 2}, {"past", 5}});
  const Json kwargs = Json::parse(metadata.kwargs);
  EXPECT_EQ(kwargs["past_key_values"], Json::parse(R"({"container": "DynamicCache"})"));
  EXPECT_EQ(kwargs["attention_mask"]["shape"], Json::parse("[2, 6]"));
  EXPECT_EQ(metadata.export_dtype, "bfloat16");
  const Json spec = Json::parse(metadata.in_spec);
  const Json& arguments = spec[1]["children_spec"][1];
  EXPECT_EQ(arguments["context"],
            R"(["input_ids", "attention_mask", "position_ids", "past_key_values"])");
  EXPECT_EQ(arguments["children_spec"][3]["children_spec"].size(), 4);
  const Json cache = Json::parse(arguments["children_spec"][3]["context"].get<std::string>());
  EXPECT_EQ(cache["s"]["layers"][1]["s"]["dtype"]["n"], "bfloat16");
  EXPECT_EQ(cache["s"]["layers"][1]["s"]["values"]["i"], 3);
}

}  // namespace
}  // namespace tranship::exporters

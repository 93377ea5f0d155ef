#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "checkpoint/checkpoint_data.h"
#include "models/families.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Checkpoint tiny(std::string_view model_type) {
  return Checkpoint::synthetic(models::find_family(model_type)->tiny_config);
}

std::vector<std::string> input_names(const ExportedModel& model,
                                     std::string_view component = "model") {
  std::vector<std::string> names;
  for (const Port& port : model.component(component).program.inputs()) names.push_back(port.name);
  return names;
}

Error error_for(const OnnxConfig& config) {
  return error_of([&] { OnnxExporter().export_model(tiny("llama"), config); });
}

/// A saved checkpoint of the tiny BERT, with a tokenizer's settings.
Checkpoint bert_with(std::string_view tokenizer_config, const TestFolder& folder) {
  CheckpointData data = tiny("bert").data();
  folder.write("tokenizer_config.json", tokenizer_config);
  data.companions = companions_in(folder.path());
  return Checkpoint(std::make_shared<const CheckpointData>(std::move(data)));
}

TEST(OnnxExporter, graphs_take_what_the_tokenizer_makes) {
  const TestFolder folder;
  const OnnxConfig config = {.dynamic = true};
  const auto names = [&](const Checkpoint& checkpoint) {
    return input_names(OnnxExporter().export_model(checkpoint, config));
  };
  EXPECT_THAT(names(tiny("bert")), ElementsAre("input_ids", "attention_mask"));
  EXPECT_THAT(names(bert_with(R"({"tokenizer_class": "BertTokenizer"})", folder)),
              ElementsAre("input_ids", "attention_mask", "token_type_ids"));
  EXPECT_THAT(names(bert_with(R"({"model_input_names": ["input_ids", "pixel_values"]})", folder)),
              ElementsAre("input_ids", "attention_mask"));
  EXPECT_EQ(error_of([&] { names(bert_with(R"({"model_input_names": 1})", folder)); }).kind(),
            ErrorKind::kCorrupt);
}

TEST(OnnxExporter, sample_inputs_choose_inputs_and_shapes) {
  const NamedTensors samples = {{"input_ids", Tensor(DType::kI64, {3, 4})},
                                {"position_ids", Tensor(DType::kI64, {3, 4})}};
  const ExportedModel model = OnnxExporter().export_model(tiny("bert"), samples, {});
  EXPECT_THAT(input_names(model), ElementsAre("input_ids", "position_ids"));
  EXPECT_THAT(model.program().outputs()[0].shape, ElementsAre("3", "4", "32"));
  EXPECT_EQ(Json::parse(model.metadata().kwargs)["position_ids"]["shape"], Json::parse("[3, 4]"));
}

TEST(OnnxExporter, graph_inputs_win_over_samples) {
  const NamedTensors samples = {{"input_ids", Tensor(DType::kI64, {3, 4})},
                                {"labels", Tensor(DType::kI64, {3})}};
  EXPECT_THAT(error_of([&] { OnnxExporter().export_model(tiny("bert"), samples, {}); }).what(),
              HasSubstr("no input 'labels'"));
  const ExportedModel model = OnnxExporter().export_model(
      tiny("bert"), samples, {.graph_inputs = std::vector<std::string>{}});
  EXPECT_THAT(input_names(model), ElementsAre("input_ids"));
}

TEST(OnnxExporter, generation_has_prefill_and_decode_under_transformers_names) {
  const ExportedModel model =
      OnnxExporter().export_for_generation(tiny("llama"), {.dynamic = true});
  EXPECT_THAT(input_names(model, "prefill"),
              ElementsAre("input_ids", "attention_mask", "position_ids"));
  EXPECT_THAT(
      input_names(model, "decode"),
      ElementsAre("input_ids", "attention_mask", "position_ids",
                  "input.past_key_values.layers.0.keys", "input.past_key_values.layers.0.values",
                  "input.past_key_values.layers.1.keys", "input.past_key_values.layers.1.values"));
  const auto& outputs = model.component("decode").program.outputs();
  EXPECT_EQ(outputs[0].name, "logits");
  EXPECT_EQ(outputs[4].name, "output.past_key_values.layers.1.values");
  EXPECT_THAT(outputs[4].shape, ElementsAre("batch", "2", "past + 1", "8"));
}

std::vector<std::string> component_names(const ExportedModel& model) {
  std::vector<std::string> names;
  for (const auto& [name, component] : model.components()) names.push_back(name);
  return names;
}

TEST(OnnxExporter, a_model_can_be_looked_at_by_its_components_before_it_is_exported) {
  const auto components = OnnxExporter().decompose_for_generation(tiny("t5"), {.dynamic = true},
                                                                  {.multi_token_decode = true});
  ASSERT_EQ(components.size(), 3);
  EXPECT_EQ(components[0].name, "encoder");
  EXPECT_EQ(components[2].inputs[2].name, "decoder_input_ids");
  EXPECT_THAT(components[2].inputs[2].shape, ElementsAre("batch", "decoder_sequence"));
  EXPECT_EQ(components[2].outputs[0].name, "logits");
}

TEST(OnnxExporter, components_can_be_left_out) {
  const auto exported = [](std::vector<std::string> components) {
    return OnnxExporter().export_for_generation(tiny("llama"), {.dynamic = true},
                                                {.components = std::move(components)});
  };
  EXPECT_THAT(component_names(exported({"decode"})), ElementsAre("decode"));
  EXPECT_THAT(error_of([&] { exported({"decode", "encoder"}); }).what(),
              HasSubstr("components 'encoder': expected some of 'prefill', 'decode'"));
  EXPECT_EQ(error_of([&] { exported({}); }).kind(), ErrorKind::kInvalidArgument);
}

TEST(OnnxExporter, each_component_may_have_a_configuration_of_its_own) {
  using Configs = ConfigByComponent<OnnxConfig>;
  const OnnxConfig open = {.dynamic = true};
  const OnnxConfig fixed = {.dynamic = true, .ort_fusions = "cpu", .static_shapes = {{"batch", 1}}};
  const ExportedModel model = OnnxExporter().export_for_generation(
      tiny("llama"), Configs({{"decode", fixed}, {"prefill", open}}));
  EXPECT_THAT(component_names(model), ElementsAre("prefill", "decode"));
  EXPECT_EQ(model.component("prefill").program.inputs()[0].shape[0], "batch");
  EXPECT_EQ(model.component("decode").program.inputs()[0].shape[0], "1");
  const TestFolder folder;
  model.save_pretrained(folder.path());
  EXPECT_GT(std::filesystem::file_size(folder / "decode.onnx.data"), 0);
  EXPECT_EQ(ExportedModel::from_pretrained(folder.path()).components().size(), 2);

  const ExportedModel same = OnnxExporter().export_for_generation(
      tiny("llama"), Configs({{"decode", open}, {"prefill", open}}));
  for (const ArtifactFile& file : same.files()) {
    EXPECT_TRUE(file.name != "decode.onnx.data" || file.size_bytes == 0) << "shared with prefill";
  }
  const auto problem = [](std::map<std::string, OnnxConfig> configs) {
    return std::string(error_of([&] {
                         OnnxExporter().export_for_generation(tiny("llama"), Configs(configs));
                       }).what());
  };
  EXPECT_THAT(problem({{"prefill", open}}),
              HasSubstr("'prefill', 'decode': there is no configuration for 'decode'"));
  EXPECT_THAT(problem({{"prefill", open}, {"dynamic", open}}),
              HasSubstr("for 'decode', and there is no component 'dynamic'"));
  EXPECT_THAT(problem({}), HasSubstr("for 'prefill', 'decode'"));
}

TEST(OnnxExporter, the_caches_name_is_a_setting) {
  const ExportedModel model =
      OnnxExporter().export_for_generation(tiny("llama"), {.dynamic = true, .cache_name = "cache"});
  EXPECT_EQ(input_names(model, "decode")[3], "input.cache.layers.0.keys");
  EXPECT_THAT(model.component("decode").metadata.out_spec, HasSubstr(R"([\"logits\", \"cache\"])"));
}

TEST(OnnxExporter, the_generation_config_goes_along_with_generation_only) {
  CheckpointData data = tiny("llama").data();
  data.generation_config = Config::parse("generation_config.json", R"({"temperature": 0.5})");
  const Checkpoint checkpoint(std::make_shared<const CheckpointData>(std::move(data)));
  EXPECT_EQ(OnnxExporter().export_for_generation(checkpoint, {.dynamic = true}).generation_config(),
            "{\n  \"temperature\": 0.5\n}\n");
  EXPECT_EQ(OnnxExporter().export_model(checkpoint, {.dynamic = true}).generation_config(), "");
  EXPECT_EQ(
      OnnxExporter().export_for_generation(tiny("llama"), {.dynamic = true}).generation_config(),
      "");
}

TEST(OnnxExporter, f32_unless_somebody_says_otherwise) {
  const Checkpoint half = Checkpoint::synthetic(
      R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 8, "intermediate_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 8, "torch_dtype": "bfloat16"})");
  EXPECT_EQ(OnnxExporter().export_model(half, {.dynamic = true}).metadata().export_dtype,
            "float32");
  const ExportedModel kept =
      OnnxExporter().export_model(half, {.dynamic = true, .dtype = DType::kBF16});
  EXPECT_EQ(kept.metadata().export_dtype, "bfloat16");
  EXPECT_EQ(kept.program().outputs()[0].dtype, DType::kBF16);
  EXPECT_EQ(Json::parse(kept.config())["dtype"], "bfloat16");
}

TEST(OnnxExporter, what_it_cannot_do_is_said_at_once) {
  const Error unknown = error_for({.dynamic = true, .ort_fusions = "tpu"});
  EXPECT_EQ(unknown.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(unknown.what(), HasSubstr("'cpu', 'cuda', 'webgpu', 'dml'"));
  EXPECT_EQ(error_for({.dynamic = true, .opset_version = 17}).kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(error_for({.dynamic = true, .dtype = DType::kI64}).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_for({.dynamic = true, .weights = WeightsPlacement::kReference}).kind(),
            ErrorKind::kUnsupported);
  EXPECT_EQ(
      error_for({.dynamic = true, .external_data = false, .weights = WeightsPlacement::kReference})
          .kind(),
      ErrorKind::kInvalidArgument);
  EXPECT_THAT(error_for({}).what(), HasSubstr("dynamic = true"));
  EXPECT_EQ(error_of([] {
              OnnxExporter().export_for_generation(tiny("bert"), {.dynamic = true});
            }).kind(),
            ErrorKind::kUnsupported);
}

TEST(AutoHfExporter, exports_as_the_configuration_says) {
  const AutoExportConfig config =
      AutoExportConfig::from_json(R"({"export_format": "onnx", "dynamic": true})");
  const AutoHfExporter exporter = AutoHfExporter::from_config(config);
  EXPECT_EQ(exporter.export_model(tiny("llama"), {}).components().size(), 1);
  EXPECT_EQ(exporter.export_for_generation(tiny("llama")).components().size(), 2);
}

}  // namespace
}  // namespace tranship

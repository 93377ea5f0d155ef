#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Error error_for(std::string_view json) {
  return error_of([&] { OnnxConfig::from_json(json); });
}

TEST(OnnxConfig, writes_transformers_json_for_defaults) {
  EXPECT_EQ(OnnxConfig{}.to_json(), R"({
  "dynamic": false,
  "dynamic_shapes": null,
  "export_format": "onnx",
  "opset_version": null,
  "optimize": true,
  "ort_fusions": null,
  "prefer_deferred_runtime_asserts_over_guards": false,
  "strict": false
})");
}

TEST(OnnxConfig, reads_back_what_it_wrote) {
  OnnxConfig config;
  config.dynamic = true;
  config.dynamic_shapes = {{"input_ids", {{0, {"batch", 1, 32}}, {1, {"seq"}}}}};
  config.opset_version = 21;
  config.optimize = false;
  config.static_shapes = {{"batch", 1}};
  config.dims = {{"sequence", {"sequence", 2, 64}}, {"past", {"past", 0, {}}}};
  config.dtype = DType::kBF16;
  config.external_data = false;
  config.weights = WeightsPlacement::kReference;
  config.architecture = "LlamaModel";
  config.graph_inputs = {"position_ids"};
  config.cache_name = "cache";
  config.ignored_config_keys = {"a"};
  const OnnxConfig read = OnnxConfig::from_json(config.to_json());
  EXPECT_EQ(read.to_json(), config.to_json());
  EXPECT_EQ(read.dynamic_shapes.at("input_ids").at(0).max, 32);
  EXPECT_EQ(read.dynamic_shapes.at("input_ids").at(1).name, "seq");
  EXPECT_EQ(read.dynamic_shapes.at("input_ids").at(1).max, std::nullopt);
  EXPECT_EQ(read.dims.at("past").min, 0);
  EXPECT_EQ(read.static_shapes.at("batch"), 1);
  EXPECT_EQ(read.dtype, DType::kBF16);
  EXPECT_EQ(read.weights, WeightsPlacement::kReference);
  EXPECT_THAT(*read.graph_inputs, ElementsAre("position_ids"));
}

TEST(OnnxConfig, writes_dims_as_python_prints_them) {
  OnnxConfig config;
  config.dynamic_shapes = {{"input_ids", {{0, {"batch", 1, 32}}}}};
  EXPECT_EQ(Json::parse(config.to_json())["dynamic_shapes"],
            Json::parse(R"x({"input_ids": {"0": "Dim('batch', min=1, max=32)"}})x"));
}

TEST(OnnxConfig, reads_dims_as_objects) {
  const OnnxConfig config = OnnxConfig::from_json(
      R"({"dynamic_shapes": {"input_ids": {"1": {"name": "s", "min": 2, "max": null}},
    "attention_mask": null, "position_ids": {"0": null}}, "dims": {"sequence": {"max": 9}}})");
  EXPECT_EQ(config.dynamic_shapes.size(), 1);
  EXPECT_EQ(config.dynamic_shapes.at("input_ids").at(1).min, 2);
  EXPECT_EQ(config.dims.at("sequence").name, "sequence");
  EXPECT_EQ(config.dims.at("sequence").max, 9);
}

TEST(OnnxConfig, names_of_dims_are_identifiers_as_in_python) {
  for (const std::string_view name : {"s'", "2s", "a b", "\u00e9"}) {
    const std::string json =
        fmt::format(R"({{"dynamic_shapes": {{"input_ids": {{"1": {{"name": "{}"}}}}}}}})", name);
    EXPECT_EQ(error_for(json).kind(), ErrorKind::kInvalidArgument) << json;
  }
  EXPECT_THAT(error_for(R"({"dims": {"a-b": {"min": 2}}})").what(), HasSubstr("the name 'a-b'"));
}

TEST(OnnxConfig, unknown_keys_are_errors_all_at_once) {
  const Error error = error_for(R"({"dynamik": true, "opset": 20, "dynamic": true})");
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("'dynamik', 'opset'"));
}

TEST(OnnxConfig, wrong_types_name_the_key) {
  EXPECT_THAT(error_for(R"({"dynamic": 1})").what(),
              HasSubstr("dynamic is 1, expected true or false"));
  EXPECT_THAT(error_for(R"({"opset_version": "20"})").what(), HasSubstr("opset_version is \"20\""));
  EXPECT_THAT(error_for(R"({"dtype": "f31"})").what(), HasSubstr("dtype is \"f31\""));
  EXPECT_THAT(error_for(R"({"weights": "shared"})").what(), HasSubstr("weights is \"shared\""));
  EXPECT_THAT(error_for(R"({"dims": {"batch": {"least": 1}}})").what(),
              HasSubstr("dims.batch.least"));
  EXPECT_THAT(error_for(R"({"dynamic_shapes": {"x": {"one": {"name": "b"}}}})").what(),
              HasSubstr("'one' is not the number"));
  EXPECT_THAT(error_for(R"({"dynamic_shapes": {"x": {"0": {"min": 1}}}})").what(),
              HasSubstr("dynamic_shapes.x.0 has no name"));
  EXPECT_THAT(error_for(R"({"export_format": "openvino"})").what(), HasSubstr("export_format"));
  EXPECT_THAT(error_for("[]").what(), HasSubstr("expected an object"));
  for (const char* dim : {"Dim()", "Dim('')", "Dim('a'", "Dim('a', min=)",
                          "Dim('a', max=99999999999999999999)", "DimHint.AUTO"}) {
    EXPECT_THAT(
        error_for(fmt::format(R"({{"dynamic_shapes": {{"x": {{"0": "{}"}}}}}})", dim)).what(),
        HasSubstr("dynamic_shapes.x.0"))
        << dim;
  }
}

TEST(OnnxConfig, fusions_need_optimize_and_a_known_provider) {
  EXPECT_THAT(error_for(R"({"ort_fusions": "tpu"})").what(), HasSubstr("cpu, cuda, webgpu or dml"));
  EXPECT_THAT(error_for(R"({"ort_fusions": "cpu", "optimize": false})").what(),
              HasSubstr("fusions need optimize"));
  EXPECT_EQ(OnnxConfig::from_json(R"({"ort_fusions": "cpu"})").ort_fusions, "cpu");
}

TEST(AutoExportConfig, reads_the_format_and_its_options) {
  const AutoExportConfig config =
      AutoExportConfig::from_json(R"({"export_format": "onnx", "dynamic": true})");
  EXPECT_EQ(config.export_format(), "onnx");
  EXPECT_TRUE(config.onnx().dynamic);
}

TEST(AutoExportConfig, missing_and_unknown_formats_are_errors) {
  for (const char* json :
       {R"({"dynamic": true})", R"({"export_format": "tflite"})", R"({"export_format": 1})", "3"}) {
    const Error error = error_of([&] { AutoExportConfig::from_json(json); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("expected 'dynamo' or 'onnx'"));
  }
  EXPECT_EQ(
      error_of([] { AutoExportConfig::from_json(R"({"export_format": "onnx", "x": 1})"); }).kind(),
      ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace tranship

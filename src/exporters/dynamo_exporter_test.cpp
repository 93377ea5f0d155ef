#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "checkpoint/safetensors.h"
#include "exporters/build.h"
#include "exporters/python_call.h"
#include "models/families.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Checkpoint tiny(const char* model_type) {
  return Checkpoint::synthetic(models::find_family(model_type)->tiny_config);
}

/// A llama of one layer: its model.json is short enough to be read.
std::string one_layer() {
  Json config = Json::parse(models::find_family("llama")->tiny_config);
  config["num_hidden_layers"] = 1;
  return config.dump();
}

TEST(DynamoExporter, model_json_of_a_small_llama_is_as_committed) {
  const Checkpoint checkpoint = Checkpoint::synthetic(one_layer());
  const DynamoConfig config = {.dynamic = true};
  const exporters::Built built =
      exporters::build(exporters::Task::kForward, checkpoint, {}, config, {}, DType::kF32, {});
  const pt2::PythonCall call = exporters::call_of(
      built.made.signatures[0], built.made.program.components[0], built.shapes.examples);
  const auto program = pt2::Pt2Program::lower(built.made.program, {call}, built.shapes.examples);
  const std::string& text = program.model_json("model");
  const std::filesystem::path file =
      std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/golden/pt2/llama.json";
  if (std::getenv("TRANSHIP_UPDATE") != nullptr) write_text(file, text);
  EXPECT_EQ(text, read_text(file))
      << "if the change is meant: TRANSHIP_UPDATE=1 build/dev/exporters_test";
  EXPECT_NO_THROW(parse_json("test", "model.json", text));
}

TEST(DynamoExporter, every_tiny_model_exports_in_each_task) {
  for (const nn::Family* family : models::families()) {
    for (const nn::Architecture& architecture : family->architectures) {
      const DynamoConfig config = {.dynamic = true, .architecture = std::string(architecture.name)};
      const Checkpoint checkpoint = Checkpoint::synthetic(family->tiny_config);
      EXPECT_GT(DynamoExporter().export_model(checkpoint, config).program().num_nodes(), 0U);
      if (!architecture.generates) continue;
      const ExportedModel made = DynamoExporter().export_for_generation(checkpoint, config);
      EXPECT_THAT(made.components(), SizeIs(architecture.encoder == nullptr ? 2 : 3));
    }
  }
}

TEST(DynamoExporter, writes_the_files_that_it_lists) {
  const TestFolder folder;
  const ExportedModel made =
      DynamoExporter().export_for_generation(tiny("llama"), {.dynamic = true});
  EXPECT_EQ(made.export_format(), "dynamo");
  made.save_pretrained(folder / "out");
  std::vector<std::string> names;
  for (const ArtifactFile& file : made.files()) {
    names.push_back(file.name);
    EXPECT_EQ(std::filesystem::file_size(folder / "out" / file.name), file.size_bytes) << file.name;
  }
  EXPECT_THAT(names, ElementsAre("prefill.pt2", "decode.pt2", "config.json", "export.json"));
  const Json manifest = Json::parse(read_text(folder / "out/export.json"));
  EXPECT_EQ(manifest["export_format"], "dynamo");
  EXPECT_EQ(manifest["components"]["decode"]["file"], "decode.pt2");
}

TEST(DynamoExporter, the_same_export_is_the_same_bytes) {
  const TestFolder folder;
  for (const char* name : {"a", "b"})
    DynamoExporter().export_model(tiny("qwen3"), {.dynamic = true}).save_pretrained(folder / name);
  EXPECT_EQ(read_text(folder / "a/model.pt2"), read_text(folder / "b/model.pt2"));
}

DType dtype_of(const ExportedModel& model) {
  return find_dtype(model.metadata().export_dtype).value();
}

/// The checkpoint of a tiny model, its tensors in a dtype.
std::filesystem::path saved(const std::filesystem::path& path, DType dtype,
                            const std::string& config) {
  const Checkpoint made = Checkpoint::synthetic(config);
  const tasks::TaskProgram program = tasks::forward(made.data(), {.dtype = dtype});
  NamedTensors tensors;
  for (const auto& [name, source] : program.program.parameters)
    tensors.emplace(name, read_all(*source));
  std::filesystem::create_directories(path);
  write_safetensors(path / "model.safetensors", tensors);
  write_text(path / "config.json", config);
  return path;
}

TEST(DynamoExporter, the_checkpoints_dtype_is_kept) {
  const TestFolder folder;
  const std::string config = one_layer();
  const auto exported = [&](const std::filesystem::path& path, DynamoConfig options) {
    options.dynamic = true;
    return dtype_of(DynamoExporter().export_model(Checkpoint::open(path), options));
  };
  const auto bf16 = saved(folder / "bf16", DType::kBF16, config);
  EXPECT_EQ(exported(bf16, {}), DType::kBF16);
  EXPECT_EQ(exported(bf16, {.dtype = DType::kF32}), DType::kF32);
  Json says = Json::parse(config);
  says["torch_dtype"] = "float16";
  EXPECT_EQ(exported(saved(folder / "f16", DType::kF32, says.dump()), {}), DType::kF16);
  says["torch_dtype"] = nullptr;
  EXPECT_EQ(exported(saved(folder / "null", DType::kF16, says.dump()), {}), DType::kF16);
}

TEST(DynamoExporter, refuses_other_dtypes) {
  const Error error = error_of(
      [] { DynamoExporter().export_model(tiny("bert"), {.dynamic = true, .dtype = DType::kI8}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
}

TEST(DynamoExporter, an_export_does_not_run_here) {
  const ExportedModel made = DynamoExporter().export_model(tiny("bert"), {.dynamic = true});
  const std::vector<int64_t> ids = {1, 2};
  const Error error = error_of([&] { made({{"input_ids", Tensor::of(ids, {1, 2})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("PyTorch runs it"));
}

TEST(DynamoConfig, writes_transformers_json_for_defaults) {
  EXPECT_EQ(DynamoConfig{}.to_json(), R"({
  "dynamic": false,
  "dynamic_shapes": null,
  "export_format": "dynamo",
  "prefer_deferred_runtime_asserts_over_guards": false,
  "strict": false
})");
}

TEST(DynamoConfig, reads_back_what_it_wrote) {
  DynamoConfig config;
  config.dynamic = true;
  config.dynamic_shapes = {{"input_ids", {{0, {"batch", 1, 32}}}}};
  config.static_shapes = {{"past", 4}};
  config.dims = {{"sequence", {"sequence", 2, 64}}};
  config.dtype = DType::kF16;
  config.architecture = "LlamaModel";
  config.graph_inputs = {"position_ids"};
  config.cache_name = "cache";
  config.ignored_config_keys = {"a"};
  EXPECT_EQ(DynamoConfig::from_json(config.to_json()).to_json(), config.to_json());
}

TEST(DynamoConfig, what_it_does_not_have_is_an_error) {
  for (const char* json : {R"({"opset_version": 20})", R"({"external_data": true})",
                           R"({"weights": "copy"})", R"({"export_format": "onnx"})", "[]"}) {
    EXPECT_EQ(error_of([&] { DynamoConfig::from_json(json); }).kind(), ErrorKind::kInvalidArgument)
        << json;
  }
  EXPECT_EQ(error_of([] { DynamoConfig::from_json(R"({"quantizer": {}})"); }).kind(),
            ErrorKind::kUnsupported);
  EXPECT_NO_THROW(DynamoConfig::from_json(R"({"strict": true, "quantizer": null})"));
}

TEST(AutoExportConfig, reads_dynamo) {
  const AutoExportConfig config =
      AutoExportConfig::from_json(R"({"export_format": "dynamo", "dynamic": true})");
  EXPECT_EQ(config.export_format(), "dynamo");
  EXPECT_TRUE(config.dynamo().dynamic);
  const ExportedModel made = AutoHfExporter::from_config(config).export_model(tiny("bert"), {});
  EXPECT_EQ(made.export_format(), "dynamo");
}

}  // namespace
}  // namespace tranship

// Verify passes on every artifact of the tests: all golden cases, and each architecture with each
// kind of option.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/testing.h"
#include "exporters/compare.h"
#include "exporters/verify.h"
#include "models/families.h"
#include "support/golden.h"
#include "support/tiny_checkpoint.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using exporters::Difference;
using exporters::FileVerdict;

void expect_clean(const fs::path& directory, const Checkpoint& checkpoint) {
  for (const FileVerdict& file : exporters::check_files(directory)) {
    const bool is_checkpoints = file.file == "model.safetensors";
    EXPECT_EQ(file.kind, is_checkpoints ? FileVerdict::Kind::kUnknown : FileVerdict::Kind::kSame)
        << file.file << " " << file.text;
  }
  const ExportedModel model = ExportedModel::from_pretrained(directory);
  const auto differences = exporters::compare(model, exporters::side_of(model, false),
                                              exporters::side_of(checkpoint, model, false), {})
                               .outputs;
  EXPECT_FALSE(differences.empty());
  for (const Difference& d : differences) {
    EXPECT_TRUE(d.is_same()) << d.component << " " << d.name << ": " << d.largest_difference
                             << " > " << d.tolerance;
  }
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  template <class Exporter, class Config>
  void expect_exported_clean() {
    const testing::GoldenCase golden = testing::read_golden(GetParam());
    const Checkpoint checkpoint(
        std::make_shared<const CheckpointData>(testing::golden_checkpoint(golden)));
    const TestFolder folder;
    const Config config = {.dynamic = true};
    (golden.generation ? Exporter().export_for_generation(checkpoint, config)
                       : Exporter().export_model(checkpoint, config))
        .save_pretrained(folder.path());
    expect_clean(folder.path(), checkpoint);
  }
};

TEST_P(Golden, passes) { expect_exported_clean<OnnxExporter, OnnxConfig>(); }
TEST_P(Golden, passes_as_pt2) { expect_exported_clean<DynamoExporter, DynamoConfig>(); }

INSTANTIATE_TEST_SUITE_P(Verify, Golden, ::testing::ValuesIn(testing::golden_cases()),
                         [](const auto& golden) { return golden.param; });

struct Option {
  std::string name;
  std::function<OnnxConfig(const nn::Family&)> config;
};

const std::vector<Option>& options() {
  static const std::vector<Option> kOptions = {
      {"opset_18",
       [](const nn::Family&) { return OnnxConfig{.dynamic = true, .opset_version = 18}; }},
      {"opset_24",
       [](const nn::Family&) { return OnnxConfig{.dynamic = true, .opset_version = 24}; }},
      {"weights_inside",
       [](const nn::Family&) { return OnnxConfig{.dynamic = true, .external_data = false}; }},
      {"weights_in_the_checkpoint",
       [](const nn::Family&) {
         return OnnxConfig{.dynamic = true, .weights = WeightsPlacement::kReference};
       }},
      {"fixed_shapes",
       [](const nn::Family&) {
         return OnnxConfig{.static_shapes = {{"batch", 1}}};  // and all other axes, below
       }},
      {"half_precision",
       [](const nn::Family&) { return OnnxConfig{.dynamic = true, .dtype = DType::kF16}; }},
      {"no_optional_inputs",
       [](const nn::Family&) {
         return OnnxConfig{.dynamic = true, .graph_inputs = std::vector<std::string>{}};
       }},
      {"all_optional_inputs",
       [](const nn::Family& family) {
         const auto& all = family.optional_inputs;
         return OnnxConfig{.dynamic = true,
                           .graph_inputs = std::vector<std::string>(all.begin(), all.end())};
       }},
      {"another_name_of_caches",
       [](const nn::Family&) { return OnnxConfig{.dynamic = true, .cache_name = "cache"}; }},
      {"fused",
       [](const nn::Family&) { return OnnxConfig{.dynamic = true, .ort_fusions = "cpu"}; }},
  };
  return kOptions;
}

struct Variant {
  const nn::Family* family;
  std::string architecture;
  bool generation;
  const Option* option;
};

/// T5 does not fit into f16, and its encoder alone takes no decoder_attention_mask.
bool applies(const nn::Family& family, std::string_view architecture, const Option& option) {
  if (option.name == "half_precision") return family.model_type != "t5";
  return option.name != "all_optional_inputs" || architecture != "T5EncoderModel";
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const nn::Family* family : models::families()) {
    for (const nn::Architecture& architecture : family->architectures) {
      for (const Option& option : options()) {
        const std::string name(architecture.name);
        if (!applies(*family, name, option)) continue;
        all.push_back({family, name, false, &option});
        if (architecture.generates) all.push_back({family, name, true, &option});
      }
    }
  }
  return all;
}

/// A size for each axis of a model's inputs.
std::map<std::string, int64_t> sizes_of_all_axes(const Checkpoint& checkpoint) {
  const tasks::TaskProgram made = tasks::forward(checkpoint.data(), {});
  std::map<std::string, int64_t> sizes;
  for (const ir::Node* node : made.program.components[0].graph->inputs()) {
    for (const ir::Dim& dim : ir::as<ir::Input>(*node->op).shape.dims) {
      for (const std::string& axis : dim.symbols())
        sizes[axis] = axis == "batch" ? 1 : axis == "height" || axis == "width" ? 64 : 5;
    }
  }
  return sizes;
}

class Options : public ::testing::TestWithParam<Variant> {};

TEST_P(Options, passes) {
  const auto& [family, architecture, generation, option] = GetParam();
  const TestFolder folder;
  testing::write_checkpoint(testing::tiny_checkpoint(family->tiny_config, architecture),
                            folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  OnnxConfig config = option->config(*family);
  if (!config.static_shapes.empty()) config.static_shapes = sizes_of_all_axes(checkpoint);
  (generation ? OnnxExporter().export_for_generation(checkpoint, config)
              : OnnxExporter().export_model(checkpoint, config))
      .save_pretrained(folder.path());
  expect_clean(folder.path(), checkpoint);
}

INSTANTIATE_TEST_SUITE_P(Verify, Options, ::testing::ValuesIn(variants()), [](const auto& v) {
  return v.param.architecture + (v.param.generation ? "_generation_" : "_forward_") +
         v.param.option->name;
});

// ---- graphs for generation, whatever writes them

struct Writer {
  std::string name;
  std::function<ExportedModel(const Checkpoint&, const GenerationOptions&)> write;
};

Writer onnx_writer(std::string name, const OnnxConfig& config) {
  return {std::move(name), [config](const Checkpoint& from, const GenerationOptions& options) {
            return OnnxExporter().export_for_generation(from, config, options);
          }};
}

Writer pt2_writer(std::string name, const DynamoConfig& config) {
  return {std::move(name), [config](const Checkpoint& from, const GenerationOptions& options) {
            return DynamoExporter().export_for_generation(from, config, options);
          }};
}

const std::vector<Writer>& writers() {
  static const std::vector<Writer> kWriters = {
      onnx_writer("onnx", {.dynamic = true}),
      onnx_writer("opset_24", {.dynamic = true, .opset_version = 24}),
      onnx_writer("fused", {.dynamic = true, .ort_fusions = "cpu"}),
      onnx_writer("fused_one_sequence",
                  {.dynamic = true, .ort_fusions = "cpu", .static_shapes = {{"batch", 1}}}),
      pt2_writer("pt2", {.dynamic = true}),
      pt2_writer("pt2_one_sequence", {.dynamic = true, .static_shapes = {{"batch", 1}}}),
      pt2_writer("pt2_another_name_of_caches", {.dynamic = true, .cache_name = "cache"}),
      pt2_writer("pt2_half_precision", {.dynamic = true, .dtype = DType::kF16})};
  return kWriters;
}

struct Form {
  std::string name;
  GenerationOptions options;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = {
      {"growing", {}},
      {"growing_many_tokens", {.multi_token_decode = true}},
      {"growing_last_logits", {.last_token_logits = true}},
      {"growing_decode_alone",
       {.multi_token_decode = true, .components = std::vector<std::string>{"decode"}}},
      {"static", {.cache_implementation = "static", .max_cache_len = 12}},
      {"static_many_tokens",
       {.cache_implementation = "static", .max_cache_len = 12, .multi_token_decode = true}},
      {"static_last_logits",
       {.cache_implementation = "static", .max_cache_len = 12, .last_token_logits = true}}};
  return kForms;
}

struct Generating {
  const nn::Family* family;
  const Writer* writer;
  const Form* form;
};

/// T5 does not fit into f16; what keeps no keys has no static cache. Each form is written plain,
/// fused and as .pt2, the two kinds of cache with each writer.
bool applies(const nn::Family& family, const Writer& writer, const Form& form) {
  if (family.model_type == "t5" && writer.name.ends_with("half_precision")) return false;
  if (!family.state_cache.empty() && form.options.cache_implementation == "static") return false;
  const bool writes_all = writer.name == "onnx" || writer.name == "fused" || writer.name == "pt2";
  return writes_all || form.name == "growing" || form.name == "static";
}

std::vector<Generating> generating() {
  std::vector<Generating> all;
  for (const nn::Family* family : models::families()) {
    if (std::ranges::none_of(family->architectures, &nn::Architecture::generates)) continue;
    for (const Writer& writer : writers()) {
      for (const Form& form : forms()) {
        if (applies(*family, writer, form)) all.push_back({family, &writer, &form});
      }
    }
  }
  return all;
}

class Forms : public ::testing::TestWithParam<Generating> {};

TEST_P(Forms, pass) {
  const auto& [family, writer, form] = GetParam();
  const Checkpoint checkpoint(
      std::make_shared<const CheckpointData>(testing::tiny_checkpoint(family->tiny_config)));
  const TestFolder folder;
  writer->write(checkpoint, form->options).save_pretrained(folder.path());
  expect_clean(folder.path(), checkpoint);
}

INSTANTIATE_TEST_SUITE_P(Verify, Forms, ::testing::ValuesIn(generating()), [](const auto& v) {
  return std::string(v.param.family->model_type) + "_" + v.param.writer->name + "_" +
         v.param.form->name;
});

}  // namespace
}  // namespace tranship

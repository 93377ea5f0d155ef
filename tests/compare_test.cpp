// Verify's --against: each planted fault of the numbers is found, in artifacts whose files and
// hashes are all in order; and the layer that has it is named.
#include "exporters/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "exporters/export_json.h"
#include "exporters/verify.h"
#include "formats/onnx/onnx_program.h"
#include "passes/rewrite.h"
#include "support/tiny_checkpoint.h"
#include "tasks/task.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using exporters::Comparison;
using exporters::Difference;
using exporters::Side;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::tiny_checkpoint;

constexpr std::string_view kQwen2 =
    R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
  "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "tie_word_embeddings": false})";

constexpr std::string_view kMistral =
    R"({"model_type": "mistral", "architectures": ["MistralForCausalLM"],
  "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "sliding_window": 3})";

constexpr std::string_view kBert =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 96, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64,
  "type_vocab_size": 2})";

/// What an export is made of when somebody makes a mistake.
struct Altered {
  Json config;
  CheckpointData checkpoint;
  std::function<void(std::unique_ptr<ir::Graph>&)> edit = {};

  std::vector<float> numbers(const std::string& name) const {
    const Tensor tensor = read_all(*checkpoint.tensors.at(name));
    return {tensor.f32().begin(), tensor.f32().end()};
  }
  void set(const std::string& name, const std::vector<float>& numbers) {
    TensorSourcePtr& source = checkpoint.tensors.at(name);
    source = memory_source(name, Tensor::of(numbers, source->shape()));
  }
  void each(const std::string& name, const std::function<float(float)>& change) {
    std::vector<float> all = numbers(name);
    for (float& number : all) number = change(number);
    set(name, all);
  }
  void swap(const std::string& a, const std::string& b) {
    std::swap(checkpoint.tensors.at(a), checkpoint.tensors.at(b));
  }
  void edit_attention(const std::function<void(ir::Attention&, std::vector<ir::Value>&)>& change) {
    edit = [change](std::unique_ptr<ir::Graph>& graph) {
      passes::rewrite(
          graph,
          [&](ir::Graph& to, const ir::Node& node,
              const std::vector<ir::Value>& given) -> std::optional<std::vector<ir::Value>> {
            if (node.kind() != ir::OpKind::kAttention) return std::nullopt;
            ir::Attention attention = ir::as<ir::Attention>(*node.op);
            std::vector<ir::Value> operands = given;
            change(attention, operands);
            return to.add(ir::make(attention), operands, node.name);
          });
    };
  }
};

struct NumberFault {
  std::string name;
  std::string_view config;
  std::function<void(Altered&)> plant;
};

const std::string kLayer = "model.layers.0.", kNext = "model.layers.1.";

const std::vector<NumberFault>& faults_of_config() {
  static const std::vector<NumberFault> kFaults = {
      {"wrong_epsilon", kQwen2, [](Altered& a) { a.config["rms_norm_eps"] = 1e-3; }},
      {"wrong_rope_theta", kQwen2, [](Altered& a) { a.config["rope_theta"] = 500000.0; }},
      {"wrong_window", kMistral, [](Altered& a) { a.config["sliding_window"] = 2; }},
      {"dropped_window", kMistral, [](Altered& a) { a.config["sliding_window"] = nullptr; }},
      {"wrong_activation", kQwen2, [](Altered& a) { a.config["hidden_act"] = "gelu"; }},
      {"wrong_gelu", kBert, [](Altered& a) { a.config["hidden_act"] = "gelu_new"; }},
      {"wrong_epsilon_of_layer_norm", kBert, [](Altered& a) { a.config["layer_norm_eps"] = 1e-5; }},
  };
  return kFaults;
}

const std::vector<NumberFault>& faults_of_graphs() {
  using Operands = std::vector<ir::Value>;
  static const std::vector<NumberFault> kFaults = {
      {"wrong_scale_of_attention", kQwen2,
       [](Altered& a) { a.edit_attention([](ir::Attention& op, Operands&) { op.scale *= 2; }); }},
      {"dropped_causal_mask", kQwen2,
       [](Altered& a) {
         a.edit_attention([](ir::Attention& op, Operands&) { op.causal = false; });
       }},
      {"dropped_padding_mask", kQwen2,
       [](Altered& a) {
         a.edit_attention([](ir::Attention&, Operands& in) { in.at(3) = ir::Value(); });
       }},
      {"dropped_padding_mask_of_an_encoder", kBert,
       [](Altered& a) {
         a.edit_attention([](ir::Attention&, Operands& in) { in.at(3) = ir::Value(); });
       }},
      {"causal_mask_of_an_encoder", kBert,
       [](Altered& a) {
         a.edit_attention([](ir::Attention& op, Operands&) { op.causal = true; });
       }},
      {"keys_for_values", kQwen2,
       [](Altered& a) {
         a.edit_attention([](ir::Attention&, Operands& in) { in.at(2) = in.at(1); });
       }},
  };
  return kFaults;
}

const std::vector<NumberFault>& faults_of_weights() {
  static const std::vector<NumberFault> kFaults = {
      {"dropped_bias", kQwen2,
       [](Altered& a) { a.each(kLayer + "self_attn.q_proj.bias", [](float) { return 0.F; }); }},
      {"wrong_scale_of_a_weight", kQwen2,
       [](Altered& a) {
         a.each(kLayer + "self_attn.q_proj.weight", [](float x) { return x * 1.01F; });
       }},
      {"swapped_heads", kQwen2,
       [](Altered& a) {
         std::vector<float> all = a.numbers(kLayer + "self_attn.q_proj.weight");
         std::swap_ranges(all.begin(), all.begin() + 8 * 32, all.begin() + 8 * 32);
         a.set(kLayer + "self_attn.q_proj.weight", all);
       }},
      {"swapped_layers", kQwen2,
       [](Altered& a) {
         a.swap(kLayer + "self_attn.q_proj.weight", kNext + "self_attn.q_proj.weight");
       }},
      {"swapped_gate_and_up", kQwen2,
       [](Altered& a) { a.swap(kLayer + "mlp.gate_proj.weight", kLayer + "mlp.up_proj.weight"); }},
      {"swapped_keys_and_values", kQwen2,
       [](Altered& a) {
         a.swap(kLayer + "self_attn.k_proj.weight", kLayer + "self_attn.v_proj.weight");
       }},
      {"transposed_weight", kQwen2,
       [](Altered& a) {
         TensorSourcePtr& source = a.checkpoint.tensors.at(kNext + "self_attn.o_proj.weight");
         source = transpose_source(source);
       }},
      {"weight_of_another_checkpoint", kQwen2,
       [](Altered& a) {
         a.checkpoint.tensors.at(kNext + "mlp.down_proj.weight") =
             hash_source("another", DType::kF32, {32, 48});
       }},
      {"weights_rounded_to_bf16", kQwen2,
       [](Altered& a) {
         for (auto& [name, source] : a.checkpoint.tensors) {
           const TensorSourcePtr rounded =
               memory_source(name, read_all(*cast_source(source, DType::kBF16)));
           source = cast_source(rounded, DType::kF32);
         }
       }},
      {"zeroed_layer", kQwen2,
       [](Altered& a) {
         for (const char* name : {"self_attn.o_proj.weight", "mlp.down_proj.weight"})
           a.each(kNext + name, [](float) { return 0.F; });
       }},
      {"norm_off_by_a_thousandth", kQwen2,
       [](Altered& a) { a.each("model.norm.weight", [](float x) { return x * 1.001F; }); }},
      {"a_single_weight_off_by_a_tenth", kQwen2,
       [](Altered& a) {
         std::vector<float> all = a.numbers(kLayer + "mlp.up_proj.weight");
         all.at(700) += 0.1F;
         a.set(kLayer + "mlp.up_proj.weight", all);
       }},
      {"swapped_token_types", kBert,
       [](Altered& a) {
         const std::string name = "embeddings.token_type_embeddings.weight";
         std::vector<float> all = a.numbers(name);
         std::swap_ranges(all.begin(), all.begin() + 32, all.begin() + 32);
         a.set(name, all);
       }},
      {"shifted_positions", kBert,
       [](Altered& a) {
         const std::string name = "embeddings.position_embeddings.weight";
         std::vector<float> all = a.numbers(name);
         std::rotate(all.begin(), all.begin() + 32, all.end());
         a.set(name, all);
       }},
  };
  return kFaults;
}

std::vector<NumberFault> number_faults() {
  std::vector<NumberFault> all;
  for (const auto* some : {&faults_of_config(), &faults_of_graphs(), &faults_of_weights()})
    all.insert(all.end(), some->begin(), some->end());
  return all;
}

Checkpoint shared(CheckpointData data) {
  return Checkpoint(std::make_shared<const CheckpointData>(std::move(data)));
}

bool generates(const CheckpointData& checkpoint) {
  return tasks::select(checkpoint.config, "").architecture->generates;
}

/// Writes other graphs into an artifact, and their hashes into its export.json.
void write_edited(const Altered& altered, const fs::path& directory) {
  const tasks::TaskOptions options;
  tasks::TaskProgram made = generates(altered.checkpoint)
                                ? tasks::generation(altered.checkpoint, options)
                                : tasks::forward(altered.checkpoint, options);
  for (ir::Component& component : made.program.components) altered.edit(component.graph);
  const auto written = onnx::OnnxProgram::lower(made.program, {}).save(directory);
  exporters::Manifest manifest =
      exporters::read_manifest("export.json", read_text(directory / "export.json"));
  manifest.files.clear();
  for (const onnx::PlannedFile& file : written)
    manifest.files.push_back({file.name, file.size_bytes, file.hash});
  write_text(directory / "export.json", exporters::write_manifest(manifest));
}

/// A tiny checkpoint after a mistake.
Altered alter(std::string_view config, const std::function<void(Altered&)>& plant) {
  Altered altered{parse_json("test", "config", config), tiny_checkpoint(config)};
  plant(altered);
  altered.checkpoint.config = Checkpoint::synthetic(altered.config.dump()).data().config;
  return altered;
}

/// Exports what a mistake made of a checkpoint.
fs::path export_altered(const fs::path& directory, std::string_view config,
                        const std::function<void(Altered&)>& plant) {
  const Altered altered = alter(config, plant);
  const Checkpoint checkpoint = shared(altered.checkpoint);
  const OnnxConfig options = {.dynamic = true};
  (generates(altered.checkpoint) ? OnnxExporter().export_for_generation(checkpoint, options)
                                 : OnnxExporter().export_model(checkpoint, options))
      .save_pretrained(directory);
  if (altered.edit) write_edited(altered, directory);
  for (const exporters::FileVerdict& file : exporters::check_files(directory))
    EXPECT_EQ(file.kind, exporters::FileVerdict::Kind::kSame) << file.file << " " << file.text;
  return directory;
}

Comparison against(const fs::path& directory, const Checkpoint& checkpoint, bool layers = false) {
  const ExportedModel model = ExportedModel::from_pretrained(directory);
  return exporters::compare(model, exporters::side_of(model, layers),
                            exporters::side_of(checkpoint, model, layers), {});
}

Comparison against(const fs::path& directory, const fs::path& other, bool layers = false) {
  const ExportedModel model = ExportedModel::from_pretrained(directory);
  const Side reference = exporters::side_of(ExportedModel::from_pretrained(other), layers);
  return exporters::compare(model, exporters::side_of(model, layers), reference, {});
}

std::vector<std::string> wrong(const std::vector<Difference>& differences) {
  std::vector<std::string> names;
  for (const Difference& d : differences) {
    if (!d.is_same()) names.push_back(d.component + " " + d.name);
  }
  return names;
}

/// What nobody altered, exported once.
const fs::path& clean_artifact(std::string_view config) {
  static const TestFolder folder;
  static std::map<std::string_view, fs::path> made;
  if (!made.contains(config)) {
    const fs::path directory = folder / std::to_string(made.size());
    made.emplace(config, export_altered(directory, config, [](Altered&) {}));
  }
  return made.at(config);
}

class NumberFaults : public ::testing::TestWithParam<NumberFault> {};

TEST_P(NumberFaults, is_found_where_no_hash_tells_it) {
  const TestFolder folder;
  const auto& [name, config, plant] = GetParam();
  const fs::path faulty = export_altered(folder / "faulty", config, plant);
  const Checkpoint checkpoint = shared(tiny_checkpoint(config));
  EXPECT_THAT(wrong(against(faulty, checkpoint).outputs), Not(IsEmpty()));
  EXPECT_THAT(wrong(against(faulty, clean_artifact(config)).outputs), Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Verify, NumberFaults, ::testing::ValuesIn(number_faults()),
                         [](const auto& fault) { return fault.param.name; });

// ---- numbers that are none

Side giving(const std::vector<float>& numbers) {
  return {.run = [numbers](const std::string&, const NamedTensors&) {
    return exporters::Computed{{{"output", Tensor::of(numbers, {2})}}};
  }};
}

TEST(VerifyNumbers, infinities_and_nan_are_the_same_where_both_sides_have_them_and_excuse_nothing) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const ExportedModel model = ExportedModel::from_pretrained(clean_artifact(kBert));
  const auto is_same = [&](const std::vector<float>& found, const std::vector<float>& reference) {
    return wrong(exporters::compare(model, giving(found), giving(reference), {}).outputs).empty();
  };
  EXPECT_TRUE(is_same({kInf, 1}, {kInf, 1}));
  EXPECT_TRUE(is_same({kNan, 1}, {kNan, 1}));
  EXPECT_FALSE(is_same({kInf, 1}, {kInf, 1.1F}));
  EXPECT_FALSE(is_same({kNan, 1}, {kNan, 1.1F}));
  EXPECT_FALSE(is_same({-kInf, 1}, {kInf, 1}));
  EXPECT_FALSE(is_same({1, 1}, {kInf, 1}));
  EXPECT_FALSE(is_same({1, 1}, {kNan, 1}));
  EXPECT_FALSE(is_same({kNan, 1}, {1, 1}));
}

TEST(VerifyNumbers, half_precision_excuses_rounding_and_no_more) {
  const ExportedModel model = ExportedModel::from_pretrained(clean_artifact(kBert));
  const auto is_same = [&](DType dtype, float difference) {
    Side found = giving({1, 1 - difference}), reference = giving({1, 1});
    for (Side* side : {&found, &reference}) {
      side->dtype = dtype;
      side->longest_sum = 100'000;  // a vocabulary's: sums are kept in f32
    }
    return wrong(exporters::compare(model, found, reference, {}).outputs).empty();
  };
  EXPECT_TRUE(is_same(DType::kF32, 1e-4F));
  EXPECT_FALSE(is_same(DType::kF32, 1e-3F));
  EXPECT_TRUE(is_same(DType::kF16, 0.01F));
  EXPECT_FALSE(is_same(DType::kF16, 0.03F));
  EXPECT_TRUE(is_same(DType::kBF16, 0.1F));
  EXPECT_FALSE(is_same(DType::kBF16, 0.2F));
}

TEST(VerifyNumbers, slots_behind_the_taken_ones_are_nobodys) {
  const ExportedModel model = ExportedModel::from_pretrained(clean_artifact(kBert));
  const auto giving = [](const std::vector<float>& slots) {
    Tensor counter(DType::kI64, {});
    counter.set(0, 2);
    return Side{.run = [slots, counter](const std::string&, const NamedTensors&) {
      return exporters::Computed{{{"output.past.layers.0.keys", Tensor::of(slots, {1, 2, 3, 1})},
                                  {"output.past.layers.0.cumulative_length", counter}}};
    }};
  };
  const auto is_same = [&](const std::vector<float>& found) {
    const Side reference = giving({1, 2, 0, 3, 4, 0});
    return wrong(exporters::compare(model, giving(found), reference, {}).outputs).empty();
  };
  EXPECT_TRUE(is_same({1, 2, 9, 3, 4, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_FALSE(is_same({1, 2.1F, 0, 3, 4, 0}));
  EXPECT_FALSE(is_same({1, 2, 0, 3, 4.1F, 0}));
}

// ---- layers

TEST(VerifyLayers, the_first_module_that_is_far_away_is_the_one_with_the_fault) {
  const TestFolder folder;
  const Checkpoint checkpoint = shared(tiny_checkpoint(kQwen2));
  const fs::path& clean = clean_artifact(kQwen2);
  for (const std::string module :
       {"model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj",
        "model.layers.1.self_attn.o_proj", "model.layers.1.mlp.gate_proj", "lm_head"}) {
    const fs::path faulty = export_altered(folder / module, kQwen2, [&](Altered& a) {
      a.each(module + ".weight", [](float x) { return x * 1.001F; });
    });
    for (const Comparison& found :
         {against(faulty, checkpoint, true), against(faulty, clean, true)}) {
      const std::vector<std::string> far = wrong(found.modules);
      ASSERT_THAT(far, Not(IsEmpty())) << module;
      EXPECT_EQ(far.front(), "prefill " + module);
    }
  }
}

TEST(VerifyLayers, of_a_clean_artifact_all_are_near_and_each_module_is_there) {
  for (const std::string_view config : {kQwen2, kMistral, kBert}) {
    const Checkpoint checkpoint = shared(tiny_checkpoint(config));
    const Comparison found = against(clean_artifact(config), checkpoint, true);
    EXPECT_THAT(wrong(found.outputs), IsEmpty());
    EXPECT_THAT(wrong(found.modules), IsEmpty());
    const size_t per_layer = 7, decoder = 2 * (2 * per_layer + 2);  // prefill and decode
    const size_t encoder = 2 * (6 + 2) + 3 + 1 + 1;  // dense and norms; embeddings, norm, pooler
    EXPECT_EQ(found.modules.size(), config == kBert ? encoder : decoder);
  }
}

TEST(VerifyLayers, graphs_of_another_exporter_have_none_in_common) {
  const fs::path python = fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/python_export/llama";
  const ExportedModel model = ExportedModel::from_pretrained(python);
  const Comparison found = against(python, Checkpoint::synthetic(model.config()), true);
  EXPECT_THAT(wrong(found.outputs), IsEmpty());
  EXPECT_THAT(found.modules, IsEmpty());
}

// ---- .pt2, which is read back and interpreted

fs::path export_pt2(const fs::path& directory, const Checkpoint& checkpoint) {
  const DynamoConfig config = {.dynamic = true};
  (generates(checkpoint.data()) ? DynamoExporter().export_for_generation(checkpoint, config)
                                : DynamoExporter().export_model(checkpoint, config))
      .save_pretrained(directory);
  return directory;
}

class Pt2Faults : public ::testing::TestWithParam<NumberFault> {};

TEST_P(Pt2Faults, are_found_where_no_hash_tells_them) {
  const TestFolder folder;
  const auto& [name, config, plant] = GetParam();
  const Altered altered = alter(config, plant);
  const fs::path faulty = export_pt2(folder / "faulty", shared(altered.checkpoint));
  const Checkpoint checkpoint = shared(tiny_checkpoint(config));
  EXPECT_THAT(wrong(against(faulty, checkpoint).outputs), Not(IsEmpty()));
  EXPECT_THAT(wrong(against(faulty, clean_artifact(config)).outputs), Not(IsEmpty()));
  EXPECT_THAT(wrong(against(clean_artifact(config), faulty).outputs), Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Config, Pt2Faults, ::testing::ValuesIn(faults_of_config()),
                         [](const auto& fault) { return fault.param.name; });
INSTANTIATE_TEST_SUITE_P(Weights, Pt2Faults, ::testing::ValuesIn(faults_of_weights()),
                         [](const auto& fault) { return fault.param.name; });

TEST(VerifyPt2, is_the_same_as_the_artifacts_of_other_formats) {
  for (const std::string_view config : {kQwen2, kMistral, kBert}) {
    const TestFolder folder;
    const fs::path pt2 = export_pt2(folder / "pt2", shared(tiny_checkpoint(config)));
    for (const Comparison& found :
         {against(pt2, clean_artifact(config), true), against(clean_artifact(config), pt2, true)}) {
      EXPECT_THAT(found.outputs, Not(IsEmpty()));
      EXPECT_THAT(wrong(found.outputs), IsEmpty());
      EXPECT_THAT(found.modules, Not(IsEmpty()));
      EXPECT_THAT(wrong(found.modules), IsEmpty());
    }
  }
}

TEST(VerifyPt2, names_the_module_with_the_fault) {
  const TestFolder folder;
  const std::string module = "model.layers.1.self_attn.o_proj";
  const Altered altered = alter(
      kQwen2, [&](Altered& a) { a.each(module + ".weight", [](float x) { return x * 1.001F; }); });
  const fs::path faulty = export_pt2(folder / "faulty", shared(altered.checkpoint));
  const Comparison found = against(faulty, shared(tiny_checkpoint(kQwen2)), true);
  ASSERT_THAT(wrong(found.modules), Not(IsEmpty()));
  EXPECT_EQ(wrong(found.modules).front(), "prefill " + module);
}

class Captures : public ::testing::TestWithParam<std::string> {};

TEST_P(Captures, compute_the_same_when_they_are_exported) {
  const TestFolder folder;
  const fs::path pt2 = fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/pt2" / GetParam();
  OnnxExporter().export_program(pt2, {}).save_pretrained(folder.path());
  const ExportedModel model = ExportedModel::from_pretrained(folder.path());
  const Side capture = exporters::side_of_capture(pt2, model, false);
  const Comparison found = exporters::compare(model, exporters::side_of(model, false), capture, {});
  EXPECT_THAT(found.outputs, Not(IsEmpty()));
  EXPECT_THAT(wrong(found.outputs), IsEmpty());
}

std::vector<std::string> captures() {
  std::vector<std::string> names;
  for (const auto& entry :
       fs::directory_iterator(fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/pt2")) {
    if (entry.path().extension() == ".pt2") names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Verify, Captures, ::testing::ValuesIn(captures()),
                         [](const auto& file) { return fs::path(file.param).stem().string(); });

// ---- artifacts beside each other

TEST(VerifyArtifacts, what_pytorch_exported_computes_what_the_definition_does) {
  for (const std::string name : {"llama", "bert"}) {
    const fs::path python = fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/python_export" / name;
    const Checkpoint checkpoint =
        Checkpoint::synthetic(ExportedModel::from_pretrained(python).config());
    EXPECT_THAT(wrong(against(python, checkpoint).outputs), IsEmpty()) << name;
    const TestFolder folder;
    OnnxExporter().export_model(checkpoint, {.dynamic = true}).save_pretrained(folder.path());
    EXPECT_THAT(wrong(against(folder.path(), python).outputs), IsEmpty()) << name;
    EXPECT_THAT(wrong(against(python, folder.path()).outputs), IsEmpty()) << name;
  }
}

TEST(VerifyArtifacts, of_other_options_are_the_same_and_of_another_dtype_near) {
  const TestFolder folder;
  const Checkpoint checkpoint = shared(tiny_checkpoint(kQwen2));
  const auto exported = [&](const std::string& name, const OnnxConfig& config) {
    OnnxExporter().export_for_generation(checkpoint, config).save_pretrained(folder / name);
    return folder / name;
  };
  const fs::path plain = exported("plain", {.dynamic = true});
  const fs::path other =
      exported("other", {.dynamic = true, .opset_version = 18, .external_data = false});
  const fs::path half = exported("half", {.dynamic = true, .dtype = DType::kF16});
  EXPECT_THAT(wrong(against(plain, other).outputs), IsEmpty());
  EXPECT_THAT(wrong(against(plain, other, true).modules), IsEmpty());
  EXPECT_THAT(wrong(against(half, plain).outputs), IsEmpty());
}

TEST(VerifyArtifacts, outputs_that_one_side_lacks_are_faults) {
  const TestFolder folder;
  const Checkpoint checkpoint = shared(tiny_checkpoint(kQwen2));
  const auto exported = [&](const std::string& name, const std::string& cache) {
    OnnxExporter()
        .export_model(checkpoint, {.dynamic = true, .cache_name = cache})
        .save_pretrained(folder / name);
    return folder / name;
  };
  const Comparison found = against(exported("a", "cache"), exported("b", "past_key_values"));
  EXPECT_EQ(wrong(found.outputs).size(), 2U * 2 * 2);  // keys and values, two layers, two names
}

}  // namespace
}  // namespace tranship

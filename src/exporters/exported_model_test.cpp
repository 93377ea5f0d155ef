#include "exporters/exported_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/testing.h"
#include "formats/onnx/ort_test_support.h"
#include "interpret/interpret.h"
#include "models/families.h"
#include "tasks/task.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace fs = std::filesystem;

const std::string kLlama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64})";

/// Inputs for a port list: ids anywhere in a vocabulary of 96, the first row's mask padded on the
/// left, caches of noise.
NamedTensors make_inputs(const std::vector<Port>& ports,
                         const std::map<std::string, int64_t>& sizes) {
  std::mt19937 random(7);  // fixed, so that a failure comes again
  NamedTensors inputs;
  for (const Port& port : ports) {
    std::vector<int64_t> shape;
    for (const std::string& dim : port.shape) shape.push_back(ir::Dim::parse(dim).evaluate(sizes));
    Tensor tensor(port.dtype, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const bool first_token = i == 0 && shape.back() > 1;
      double value = std::uniform_int_distribution<int>(0, 95)(random);
      if (port.name == "attention_mask") value = first_token ? 0 : 1;
      if (port.name == "token_type_ids") value = static_cast<double>(i % 2);
      if (port.name == "position_ids") value = static_cast<double>(i % shape.back());
      if (is_floating(port.dtype)) value = value / 48 - 1;
      tensor.set(i, value);
    }
    inputs.emplace(port.name, std::move(tensor));
  }
  return inputs;
}

/// 4 eps sqrt(K) max|reference| (architecture.md 7); K: the longest sum of the tiny models.
void expect_close(const NamedTensors& actual, const NamedTensors& expected) {
  constexpr double kLongestSum = 192;  // a patch of ViT's image
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, reference] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    ASSERT_EQ(actual.at(name).shape(), reference.shape()) << name;
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < reference.num_elements(); ++i) {
      largest = std::max(largest, std::abs(reference.at(i)));
      worst = std::max(worst, std::abs(reference.at(i) - actual.at(name).at(i)));
    }
    EXPECT_LE(worst, 4 * std::numeric_limits<float>::epsilon() * std::sqrt(kLongestSum) * largest)
        << name;
    EXPECT_GT(largest, 0) << name;
  }
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

ExportedModel exported(const OnnxConfig& config = {.dynamic = true}) {
  return OnnxExporter().export_model(Checkpoint::synthetic(kLlama), config);
}
ExportedModel exported_for_generation(const OnnxConfig& config = {.dynamic = true}) {
  return OnnxExporter().export_for_generation(Checkpoint::synthetic(kLlama), config);
}

class RunsExports : public onnx::NeedsOnnxRuntime {};

// ---- the same numbers as the interpreter

TEST_F(RunsExports, every_class_saved_and_loaded_computes_what_the_interpreter_does) {
  for (const nn::Family* family : models::families()) {
    for (const nn::Architecture& architecture : family->architectures) {
      SCOPED_TRACE(architecture.name);
      const Checkpoint checkpoint = Checkpoint::synthetic(family->tiny_config);
      OnnxConfig config = {.dynamic = true, .architecture = std::string(architecture.name)};
      const std::vector<std::string_view> optional =
          tasks::Selected{family, &architecture}.optional_inputs();
      config.graph_inputs.emplace(optional.begin(), optional.end());
      const TestFolder folder;
      OnnxExporter().export_model(checkpoint, config).save_pretrained(folder.path());
      const ExportedModel model = ExportedModel::from_pretrained(folder.path());
      const auto made = tasks::forward(checkpoint.data(), {.architecture = config.architecture,
                                                           .graph_inputs = *config.graph_inputs});
      const NamedTensors inputs = make_inputs(
          model.program().inputs(),
          {{"batch", 2}, {"sequence", 5}, {"decoder_sequence", 3}, {"height", 40}, {"width", 24}});
      expect_close(model(inputs), interpret(made.program, "model", inputs));
    }
  }
}

TEST_F(RunsExports, prefill_and_decode_compute_what_the_interpreter_does) {
  const TestFolder folder;
  exported_for_generation().save_pretrained(folder.path());
  const ExportedModel model = ExportedModel::from_pretrained(folder.path());
  const tasks::TaskProgram made = tasks::generation(Checkpoint::synthetic(kLlama).data(), {});
  for (const char* component : {"prefill", "decode"}) {
    const NamedTensors inputs = make_inputs(model.component(component).program.inputs(),
                                            {{"batch", 2}, {"sequence", 5}, {"past", 4}});
    expect_close(model.run(component, inputs), interpret(made.program, component, inputs));
  }
}

TEST_F(RunsExports, a_fresh_export_runs_and_leaves_nothing_behind) {
  const TestFolder temporary;
  ::setenv("TMPDIR", temporary.path().c_str(), 1);
  {
    const ExportedModel model = exported();
    const NamedTensors inputs =
        make_inputs(model.program().inputs(), {{"batch", 1}, {"sequence", 3}});
    const tasks::TaskProgram made = tasks::forward(Checkpoint::synthetic(kLlama).data(), {});
    expect_close(model(inputs), interpret(made.program, "model", inputs));
    EXPECT_THAT(names_in(temporary.path()), SizeIs(1));
    EXPECT_TRUE(model.directory().empty());
  }
  ::unsetenv("TMPDIR");
  EXPECT_THAT(names_in(temporary.path()), IsEmpty());
}

TEST_F(RunsExports, static_shapes_are_the_only_ones_that_run) {
  const ExportedModel model = exported({.static_shapes = {{"batch", 2}, {"sequence", 4}}});
  EXPECT_THAT(model.program().inputs()[0].shape, ElementsAre("2", "4"));
  const NamedTensors inputs = make_inputs(model.program().inputs(), {});
  const tasks::TaskProgram made = tasks::forward(Checkpoint::synthetic(kLlama).data(), {});
  expect_close(model(inputs), interpret(made.program, "model", inputs));
  EXPECT_EQ(error_of([&] { model({{"input_ids", Tensor(DType::kI64, {2, 5})}}); }).kind(),
            ErrorKind::kInvalidArgument);
}

TEST_F(RunsExports, an_artifact_of_transformers_gives_transformers_numbers) {
  for (const std::string name : {"llama", "bert", "t5"}) {
    const fs::path cases = fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/python_export";
    const ExportedModel model = ExportedModel::from_pretrained(cases, {.subfolder = name});
    EXPECT_EQ(model.metadata().packages.at("transformers"), "5.23.0");
    const Json golden = Json::parse(read_text(cases / (name + ".json")));
    for (const Json& run : golden["runs"]) {
      NamedTensors inputs, expected;
      for (const auto& [input, rows] : run["inputs"].items()) {
        std::vector<int64_t> values;
        for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
        const auto height = static_cast<int64_t>(rows.size()),
                   width = static_cast<int64_t>(rows[0].size());
        inputs.emplace(input, Tensor::of(std::span<const int64_t>(values), {height, width}));
      }
      NamedTensors actual = model(inputs);
      for (const auto& [output, value] : run["outputs"].items()) {
        const auto values = value["values"].get<std::vector<float>>();
        ASSERT_FALSE(value.contains("positions"));
        expected.emplace(output, Tensor::of(std::span<const float>(values),
                                            value["shape"].get<std::vector<int64_t>>()));
      }
      std::erase_if(actual, [&](const auto& item) { return !expected.contains(item.first); });
      expect_close(actual, expected);
    }
  }
}

// ---- inputs

TEST_F(RunsExports, absent_optional_inputs_get_their_defaults) {
  const ExportedModel model =
      exported({.dynamic = true, .graph_inputs = {{"attention_mask", "position_ids"}}});
  const Tensor ids =
      make_inputs({model.program().inputs()[0]}, {{"batch", 2}, {"sequence", 3}}).at("input_ids");
  Tensor mask(DType::kI64, {2, 3}), positions(DType::kI64, {2, 3});
  for (int64_t i = 0; i < 6; ++i) {
    mask.set(i, 1);
    positions.set(i, static_cast<double>(i % 3));
  }
  const NamedTensors full =
      model({{"input_ids", ids}, {"attention_mask", mask}, {"position_ids", positions}});
  EXPECT_TRUE(std::ranges::equal(model({{"input_ids", ids}}).at("logits").bytes(),
                                 full.at("logits").bytes()));
}

TEST_F(RunsExports, unknown_inputs_are_dropped_with_one_warning) {
  const ExportedModel model = exported();
  std::vector<std::string> warnings;
  const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                     .progress = {}};
  const Tensor ids(DType::kI64, {1, 2});
  const NamedTensors inputs = {{"input_ids", ids}, {"labels", ids}, {"token_type_ids", ids}};
  model(inputs, sink);
  model(inputs, sink);
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("does not take 'labels', 'token_type_ids': dropped")));
}

TEST_F(RunsExports, missing_inputs_are_named) {
  const Error error =
      error_of([] { exported()({{"attention_mask", Tensor(DType::kI64, {1, 2})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("component 'model' needs 'input_ids'"));
}

TEST_F(RunsExports, one_model_runs_on_many_threads) {
  const ExportedModel model = exported();
  const NamedTensors inputs =
      make_inputs(model.program().inputs(), {{"batch", 1}, {"sequence", 3}});
  std::vector<NamedTensors> results(4);
  std::vector<std::thread> threads;
  for (NamedTensors& result : results) threads.emplace_back([&] { result = model(inputs); });
  for (std::thread& thread : threads) thread.join();
  for (const NamedTensors& result : results) expect_close(result, results[0]);
}

TEST_F(RunsExports, devices_that_are_not_there_are_errors_and_copies_stay_where_they_are) {
  ExportedModel model = exported();
  const ExportedModel copy = model;
  model.to("tpu");
  const NamedTensors inputs = {{"input_ids", Tensor(DType::kI64, {1, 2})}};
  EXPECT_EQ(error_of([&] { model(inputs); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(copy(inputs), SizeIs(5));
  EXPECT_THAT(model.to("cpu")(inputs), SizeIs(5));
}

// ---- what it says about itself

TEST(ExportedModel, names_and_shapes_are_the_same_before_and_after_a_save) {
  const ExportedModel fresh = exported_for_generation();
  const TestFolder folder;
  fresh.save_pretrained(folder.path());
  const ExportedModel loaded = ExportedModel::from_pretrained(folder.path());
  ASSERT_EQ(fresh.components().size(), loaded.components().size());
  for (size_t i = 0; i < fresh.components().size(); ++i) {
    const auto& [name, component] = fresh.components()[i];
    EXPECT_EQ(loaded.components()[i].first, name);
    const ExportedProgram& other = loaded.components()[i].second.program;
    EXPECT_EQ(component.program.num_nodes(), other.num_nodes());
    for (const auto& [ours, theirs] : {std::pair(component.program.inputs(), other.inputs()),
                                       std::pair(component.program.outputs(), other.outputs())}) {
      ASSERT_EQ(ours.size(), theirs.size());
      for (size_t p = 0; p < ours.size(); ++p) {
        EXPECT_EQ(ours[p].name, theirs[p].name);
        EXPECT_EQ(ours[p].dtype, theirs[p].dtype);
        EXPECT_EQ(ours[p].shape, theirs[p].shape);
      }
    }
    EXPECT_EQ(component.metadata.out_spec, loaded.component(name).metadata.out_spec);
  }
  EXPECT_EQ(loaded.config(), fresh.config());
  EXPECT_EQ(loaded.export_format(), "onnx");
}

TEST(ExportedModel, several_components_have_no_single_program) {
  const ExportedModel model = exported_for_generation();
  EXPECT_THAT(error_of([&] { model.program(); }).what(), HasSubstr("'prefill', 'decode'"));
  EXPECT_THAT(error_of([&] { model({}); }).what(), HasSubstr("several components"));
  EXPECT_THAT(error_of([&] { model.component("encode"); }).what(),
              HasSubstr("no component 'encode', only 'prefill', 'decode'"));
  EXPECT_THAT(error_of([&] { model.impl().session("encode"); }).what(), HasSubstr("'encode'"));
  EXPECT_EQ(exported().program().outputs().front().name, "logits");
}

// ---- on disk

TEST(ExportedModel, files_are_listed_with_their_exact_sizes) {
  for (const bool external : {true, false}) {
    const ExportedModel fresh =
        exported_for_generation({.dynamic = true, .external_data = external});
    const TestFolder folder;
    fresh.save_pretrained(folder.path());
    for (const ExportedModel& model : {fresh, ExportedModel::from_pretrained(folder.path())}) {
      std::vector<std::string> names;
      for (const ArtifactFile& file : model.files()) {
        EXPECT_EQ(fs::file_size(folder / file.name), file.size_bytes) << file.name;
        names.push_back(file.name);
      }
      std::ranges::sort(names);
      EXPECT_EQ(names, names_in(folder.path()));
    }
  }
}

TEST(ExportedModel, two_saves_are_the_same_bytes) {
  const TestFolder a, b;
  exported_for_generation().save_pretrained(a.path());
  exported_for_generation().save_pretrained(b.path());
  ASSERT_EQ(names_in(a.path()), names_in(b.path()));
  for (const std::string& name : names_in(a.path()))
    EXPECT_EQ(read_text(a / name), read_text(b / name)) << name;
}

TEST(ExportedModel, other_files_of_the_directory_stay) {
  const TestFolder folder;
  folder.write("notes.txt", "mine");
  folder.write("other.onnx", "mine too");
  exported().save_pretrained(folder.path());
  exported().save_pretrained(folder.path());
  EXPECT_EQ(read_text(folder / "notes.txt"), "mine");
  EXPECT_EQ(read_text(folder / "other.onnx"), "mine too");
}

TEST(ExportedModel, a_save_that_fails_leaves_no_export_json) {
  for (const char* obstacle : {"model.onnx.data", "config.json"}) {
    const TestFolder folder;
    exported().save_pretrained(folder.path());
    fs::remove(folder / obstacle);
    folder.write(std::string(obstacle) + "/in_the_way", "");
    EXPECT_EQ(error_of([&] { exported().save_pretrained(folder.path()); }).kind(), ErrorKind::kIo);
    EXPECT_FALSE(fs::exists(folder / "export.json")) << obstacle;
  }
}

TEST(ExportedModel, a_file_where_the_directory_should_be_is_io) {
  const TestFolder folder;
  folder.write("out", "");
  EXPECT_EQ(error_of([&] { exported().save_pretrained(folder / "out"); }).kind(), ErrorKind::kIo);
}

TEST_F(RunsExports, a_running_session_keeps_what_it_opened_when_another_export_takes_its_place) {
  const TestFolder folder;
  const auto export_with = [&](int64_t intermediate_size) {  // other weights, in other places
    Json config = Json::parse(kLlama);
    config["intermediate_size"] = intermediate_size;
    OnnxExporter()
        .export_model(Checkpoint::synthetic(config.dump()), {.dynamic = true})
        .save_pretrained(folder.path());
    return ExportedModel::from_pretrained(folder.path());
  };
  const auto logits = [](const ExportedModel& model) {
    const NamedTensors inputs =
        make_inputs(model.program().inputs(), {{"batch", 2}, {"sequence", 5}});
    const Tensor found = model(inputs).at("logits");
    return std::vector<float>(found.f32().begin(), found.f32().end());
  };
  const ExportedModel running = export_with(48);
  const std::vector<float> before = logits(running);
  const ExportedModel other = export_with(80);
  EXPECT_EQ(logits(running), before);
  EXPECT_NE(logits(other), before);
}

TEST_F(RunsExports, a_loaded_artifact_can_be_saved_elsewhere) {
  const TestFolder a, b;
  exported_for_generation().save_pretrained(a.path());
  a.write("tokenizer.json", "{}");
  const ExportedModel loaded = ExportedModel::from_pretrained(a.path());
  loaded.save_pretrained(a.path());  // it is there already
  loaded.save_pretrained(b.path());
  ASSERT_EQ(names_in(a.path()), names_in(b.path()));
  for (const std::string& name : names_in(a.path()))
    EXPECT_EQ(read_text(a / name), read_text(b / name)) << name;
  EXPECT_NO_THROW(ExportedModel::from_pretrained(b.path()).run(
      "prefill", {{"input_ids", Tensor(DType::kI64, {1, 2})}}));
}

/// A checkpoint of the tiny llama on disk, with a tokenizer's settings beside it.
Checkpoint write_checkpoint(const TestFolder& folder) {
  const tasks::TaskProgram made = tasks::forward(Checkpoint::synthetic(kLlama).data(), {});
  Json header = Json::object();
  std::string bytes;
  for (const auto& [name, source] : made.program.parameters) {
    const Tensor tensor = read_all(*source);
    const size_t begin = bytes.size();
    bytes += as_text(tensor.bytes());
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape()}, {"data_offsets", {begin, bytes.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t size = text.size();
  const std::string length(reinterpret_cast<const char*>(&size), sizeof(size));
  folder.write("model.safetensors", length + text + bytes);
  folder.write("config.json", kLlama);
  folder.write("tokenizer_config.json", "{}");
  return Checkpoint::open(folder.path());
}

/// Name -> bytes of all files.
std::map<std::string, std::string> contents(const TestFolder& folder) {
  std::map<std::string, std::string> texts;
  for (const std::string& name : names_in(folder.path())) texts[name] = read_text(folder / name);
  return texts;
}

TEST_F(RunsExports, an_export_into_the_checkpoints_own_directory_touches_none_of_its_files) {
  for (const WeightsPlacement weights : {WeightsPlacement::kCopy, WeightsPlacement::kReference}) {
    const TestFolder folder;
    const Checkpoint checkpoint = write_checkpoint(folder);
    const auto before = contents(folder);
    OnnxExporter()
        .export_model(checkpoint, {.dynamic = true, .weights = weights})
        .save_pretrained(folder.path());
    auto after = contents(folder);
    EXPECT_EQ(after.at("model.onnx.data").empty(), weights == WeightsPlacement::kReference);
    for (const char* name : {"model.onnx", "model.onnx.data", "export.json"})
      EXPECT_EQ(after.erase(name), 1U);
    EXPECT_EQ(after, before);
    const ExportedModel model = ExportedModel::from_pretrained(folder.path());
    const NamedTensors inputs =
        make_inputs(model.program().inputs(), {{"batch", 2}, {"sequence", 5}});
    const tasks::TaskProgram made = tasks::forward(Checkpoint::synthetic(kLlama).data(), {});
    expect_close(model(inputs), interpret(made.program, "model", inputs));
  }
}

TEST(ExportedModel, an_export_that_refers_to_its_checkpoint_stays_beside_it) {
  const TestFolder folder, elsewhere;
  const ExportedModel fresh = OnnxExporter().export_model(
      write_checkpoint(folder), {.dynamic = true, .weights = WeightsPlacement::kReference});
  EXPECT_THAT(error_of([&] { fresh({{"input_ids", Tensor(DType::kI64, {1, 2})}}); }).what(),
              HasSubstr("save it there"));
  EXPECT_EQ(error_of([&] { fresh.save_pretrained(elsewhere.path()); }).kind(),
            ErrorKind::kUnsupported);
  EXPECT_THAT(names_in(elsewhere.path()), IsEmpty());
  fresh.save_pretrained(folder.path());
  const ExportedModel loaded = ExportedModel::from_pretrained(folder.path());
  EXPECT_THAT(error_of([&] { loaded.save_pretrained(elsewhere.path()); }).what(),
              HasSubstr("model.safetensors"));
}

TEST(ExportedModel, the_tokenizers_files_go_along) {
  const TestFolder from, to;
  OnnxExporter().export_model(write_checkpoint(from), {.dynamic = true}).save_pretrained(to.path());
  EXPECT_EQ(read_text(to / "tokenizer_config.json"), "{}");
}

TEST(ExportedModel, small_files_that_stay_are_not_among_those_to_write) {
  const TestFolder home, elsewhere;
  const ExportedModel model =
      OnnxExporter().export_model(write_checkpoint(home), {.dynamic = true});
  const auto names = [&](const TestFolder& folder) {
    std::vector<std::string> out;
    for (const ArtifactFile& file : model.files(folder.path())) out.push_back(file.name);
    std::ranges::sort(out);
    return out;
  };
  EXPECT_THAT(names(home), ElementsAre("export.json", "model.onnx", "model.onnx.data"));
  EXPECT_THAT(names(elsewhere), ElementsAre("config.json", "export.json", "model.onnx",
                                            "model.onnx.data", "tokenizer_config.json"));
}

TEST(ExportedModel, a_save_that_fails_leaves_no_directory_that_it_made) {
  const TestFolder home, parent;
  const ExportedModel model = OnnxExporter().export_model(
      write_checkpoint(home), {.dynamic = true, .weights = WeightsPlacement::kReference});
  for (const char* out : {"out", "new/deep/out", "new/out/"}) {
    EXPECT_EQ(error_of([&] { model.save_pretrained(parent / out); }).kind(),
              ErrorKind::kUnsupported);
    EXPECT_THAT(names_in(parent.path()), IsEmpty()) << out;
  }
  fs::create_directories(parent / "there");
  EXPECT_EQ(error_of([&] { model.save_pretrained(parent / "there"); }).kind(),
            ErrorKind::kUnsupported);
  EXPECT_TRUE(fs::exists(parent / "there")) << "it was there before";
}

TEST(ExportedModel, an_export_that_is_not_whole_is_told_from_none) {
  const TestFolder folder;
  const auto message = [&](const fs::path& path) -> std::string {
    const Error error = error_of([&] { ExportedModel::from_pretrained(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    return error.what();
  };
  EXPECT_THAT(message(folder / "nowhere"), HasSubstr("is no directory"));
  EXPECT_THAT(message(folder.path()), HasSubstr("holds no export"));
  folder.write("model.onnx.data.tranship-1234", "");
  EXPECT_THAT(message(folder.path()), HasSubstr("not whole: there are 'model.onnx.data.tranship-"));
  exported().save_pretrained(folder.path());
  fs::remove(folder / "export.json");
  EXPECT_THAT(message(folder.path()), HasSubstr("'model.onnx', 'model.onnx.data', and no export"));
  EXPECT_THAT(message(folder.path()), HasSubstr("export again"));
}

TEST_F(RunsExports, sizes_outside_of_the_range_of_the_export_are_refused_fresh_and_loaded) {
  const TestFolder folder;
  const ExportedModel fresh =
      exported({.dynamic = true, .dims = {{"sequence", {"sequence", 2, 4}}}});
  fresh.save_pretrained(folder.path());
  for (const ExportedModel& model : {fresh, ExportedModel::from_pretrained(folder.path())}) {
    EXPECT_NO_THROW(model({{"input_ids", Tensor(DType::kI64, {3, 4})}}));
    for (const int64_t length : {1, 5}) {
      EXPECT_THAT(
          error_of([&] { model({{"input_ids", Tensor(DType::kI64, {3, length})}}); }).what(),
          HasSubstr("outside of the range that it was exported for, 2 to 4"));
    }
  }
}

TEST_F(RunsExports, a_dtype_that_the_runtime_cannot_compute_in_is_told_with_what_to_do) {
  std::vector<std::string> warnings;
  const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                     .progress = {}};
  const ExportedModel model = OnnxExporter().export_model(
      Checkpoint::synthetic(kLlama), {.dynamic = true, .dtype = DType::kBF16}, sink);
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("no kernels for bf16")));
  const Error error = error_of([&] { model({{"input_ids", Tensor(DType::kI64, {1, 2})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("computes in bf16"));
  EXPECT_THAT(error.what(), HasSubstr("--dtype f32"));
}

TEST(ExportedModel, loading_says_what_is_wrong) {
  const TestFolder folder;
  const auto load = [&] { ExportedModel::from_pretrained(folder.path()); };
  EXPECT_EQ(error_of(load).kind(), ErrorKind::kIo);
  folder.write("export.json",
               R"({"export_format": "openvino", "components": {"m": {"file": "m.xml"}}})");
  EXPECT_EQ(error_of(load).kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error_of(load).what(), HasSubstr("'openvino'"));
  folder.write("export.json",
               R"({"export_format": "onnx", "components": {"m": {"file": "m.onnx"}}})");
  EXPECT_EQ(error_of(load).kind(), ErrorKind::kIo);
  EXPECT_THAT(error_of(load).what(), HasSubstr("m.onnx"));
  folder.write("m.onnx", "not a model");
  EXPECT_EQ(error_of(load).kind(), ErrorKind::kCorrupt);
  folder.write("export.json", "{");
  EXPECT_EQ(error_of(load).kind(), ErrorKind::kCorrupt);
}

TEST(ExportedModel, a_copy_that_is_not_whole_is_corrupt) {
  const TestFolder folder;
  exported().save_pretrained(folder.path());
  const auto load = [&] { ExportedModel::from_pretrained(folder.path()); };
  fs::resize_file(folder / "model.onnx.data", fs::file_size(folder / "model.onnx.data") - 1);
  EXPECT_EQ(error_of(load).kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error_of(load).what(), HasSubstr("model.onnx.data' has"));
  fs::remove(folder / "model.onnx.data");
  EXPECT_EQ(error_of(load).kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace tranship

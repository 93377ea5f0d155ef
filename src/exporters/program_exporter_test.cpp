#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "exporters/export_json.h"
#include "formats/pt2/import.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path fixture(std::string_view name) {
  return std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/pt2" / name;
}

std::vector<std::string> names(const std::vector<Port>& ports) {
  std::vector<std::string> out;
  for (const Port& port : ports) out.push_back(port.name);
  return out;
}

/// The port of each leaf, or what it always is.
std::vector<std::string> leaf_texts(const std::vector<pt2::Leaf>& leaves) {
  std::vector<std::string> texts;
  for (const pt2::Leaf& leaf : leaves)
    texts.push_back(leaf.constant.empty() ? leaf.port : leaf.constant);
  return texts;
}

TEST(ProgramExporter, a_captured_program_keeps_its_tree_specs) {
  const ExportedModel model = OnnxExporter().export_program(fixture("tree.pt2"), {});
  EXPECT_THAT(names(model.program().inputs()), ElementsAre("a", "pair.0", "pair.1", "more.k"));
  EXPECT_THAT(names(model.program().outputs()), ElementsAre("sum", "nested.0", "nested.1.0"));
  const ExportMetadata& metadata = model.metadata();
  EXPECT_EQ(metadata.architecture, "Tree");  // the captured module's class
  EXPECT_THAT(metadata.in_spec, HasSubstr("builtins.tuple"));
  EXPECT_THAT(metadata.out_spec, HasSubstr("nested"));
  EXPECT_EQ(metadata.in_constants, R"({"scale": 2, "nothing": null, "flag": true})");
  EXPECT_EQ(metadata.out_constants, "[[3, null], [4, 3]]");
  EXPECT_THAT(metadata.kwargs, HasSubstr(R"("more": {"leaves": {"k": {"rank": 1)"));
}

TEST(ProgramExporter, an_exported_program_is_saved_loaded_and_run) {
  const TestFolder folder;
  OnnxExporter().export_program(fixture("tree.pt2"), {}).save_pretrained(folder.path());
  const ExportedModel loaded = ExportedModel::from_pretrained(folder.path());
  const std::vector<float> one = {1, 2};
  NamedTensors inputs;
  for (const char* name : {"a", "pair.0", "pair.1", "more.k"})
    inputs.emplace(name, Tensor::of(one, {2}));
  const NamedTensors outputs = loaded(inputs);
  EXPECT_EQ(outputs.at("sum").f32()[1], 6);  // a + pair[0] * 2
}

TEST(ProgramExporter, what_transformers_recorded_beside_the_file_goes_along) {
  const TestFolder folder;
  folder.write("tree.pt2", read_text(fixture("tree.pt2")));
  folder.write("config.json", R"({"model_type": "tree"})");
  ExportMetadata recorded;
  recorded.architecture = "TreeForClimbing";
  recorded.export_config = recorded.kwargs = recorded.in_constants = "{}";
  recorded.out_constants = "[]";
  folder.write("export.json",
               exporters::write_manifest(
                   {.export_format = "dynamo", .components = {{"model", "tree.pt2", recorded}}}));
  const ExportedModel model = OnnxExporter().export_program(folder / "tree.pt2", {});
  EXPECT_EQ(model.metadata().architecture, "TreeForClimbing");
  EXPECT_THAT(model.config(), HasSubstr("tree"));
}

TEST(ProgramExporter, options_that_a_capture_has_decided_are_refused) {
  const auto error = [](const OnnxConfig& config) {
    return error_of([&] { OnnxExporter().export_program(fixture("tree.pt2"), config); });
  };
  const Error e = error({.static_shapes = {{"batch", 1}}, .dtype = DType::kF16});
  EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(e.what(), HasSubstr("'static_shapes', 'dtype'"));
}

TEST(ProgramExporter, fusions_are_for_a_provider_that_there_is) {
  const Error error =
      error_of([] { OnnxExporter().export_program(fixture("tree.pt2"), {.ort_fusions = "tpu"}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("'cpu', 'cuda', 'webgpu', 'dml'"));
}

TEST(ProgramExporter, a_captured_program_is_written_again_as_it_was) {
  const TestFolder folder;
  DynamoExporter().export_program(fixture("tree.pt2"), {}).save_pretrained(folder.path());
  const pt2::ImportedProgram before =
      pt2::import_program(pt2::open_archive(fixture("tree.pt2")), "before");
  const pt2::ImportedProgram after =
      pt2::import_program(pt2::open_archive(folder / "model.pt2"), "after");
  EXPECT_EQ(after.in_spec, before.in_spec);
  EXPECT_EQ(after.out_spec, before.out_spec);
  EXPECT_EQ(after.argument_names, before.argument_names);
  EXPECT_EQ(after.sample_inputs, before.sample_inputs);
  EXPECT_EQ(leaf_texts(after.inputs), leaf_texts(before.inputs));
  EXPECT_THAT(leaf_texts(after.inputs),
              ElementsAre("a", "pair.0", "pair.1", "more.k", R"({"as_int":2})",
                          R"({"as_none":true})", R"({"as_bool":true})"));
  EXPECT_THAT(leaf_texts(after.outputs), ElementsAre("sum", "nested.0", "nested.1.0",
                                                     R"({"as_none":true})", R"({"as_int":3})"));
}

TEST(ProgramExporter, what_a_call_in_python_cannot_say_is_unsupported) {
  const Error error = error_of([] { DynamoExporter().export_program(fixture("writes.pt2"), {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("buffers"));
}

}  // namespace
}  // namespace tranship

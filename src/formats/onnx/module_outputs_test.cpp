#include "formats/onnx/module_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/testing.h"
#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "ir/text.h"

namespace tranship::onnx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> paths_of(const ModuleOutputs& outputs) {
  std::vector<std::string> paths;
  for (const ModuleValue& module : outputs.modules) paths.push_back(module.path);
  return paths;
}

/// Two layers with weights; the second one's result is the graph's output.
std::filesystem::path save_two_layers(const TestFolder& folder) {
  ir::Program program;
  program.components.push_back({.name = "model",
                                .graph = ir::parse(R"(graph model
  %x = Input {name="x", dtype=f32, shape=[b, 2]}
  %w = Param {name="up.weight", dtype=f32, shape=[2, 2]}
  %u = Linear(%x, %w, _) @up
  %r = Activation(%u) {fn=relu}
  %v = Param {name="down.weight", dtype=f32, shape=[2, 2]}
  %y = Linear(%r, %v, _) @down
  output y %y
end
)"),
                                .states = {}});
  for (const char* name : {"up.weight", "down.weight"}) {
    program.parameters.emplace(
        name, memory_source(name, Tensor::of(std::vector<float>{1, -1, 2, 0}, {2, 2})));
  }
  OnnxProgram::lower(program, {}).save(folder.path());
  return folder / "model.onnx";
}

TEST(ModuleOutputs, are_what_the_modules_compute_in_the_order_in_which_they_run) {
  const TestFolder folder;
  const std::filesystem::path path = save_two_layers(folder);
  const std::string before = read_text(path);
  const ModuleOutputs outputs = with_module_outputs(path);
  EXPECT_EQ(read_text(path), before);
  ASSERT_THAT(paths_of(outputs), ElementsAre("up", "down"));
  EXPECT_EQ(outputs.modules[1].value, "y");
  const Session session = Session::open_edited(path, as_bytes(outputs.model));
  const NamedTensors found = session.run({{"x", Tensor::of(std::vector<float>{3, 5}, {1, 2})}});
  EXPECT_THAT(found.at(outputs.modules[0].value).f32(), ElementsAre(-2, 6));
  EXPECT_THAT(found.at("y").f32(), ElementsAre(-6, 0));
}

TEST(ModuleOutputs, are_none_where_nodes_are_named_otherwise) {
  const std::filesystem::path path =
      std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/python_export/llama/model.onnx";
  EXPECT_THAT(paths_of(with_module_outputs(path)), IsEmpty());
}

TEST(ModuleOutputs, an_edited_model_without_its_data_is_corrupt) {
  const TestFolder folder;
  const std::filesystem::path path = save_two_layers(folder);
  const ModuleOutputs outputs = with_module_outputs(path);
  std::filesystem::remove(folder / "model.onnx.data");
  const Error error = error_of([&] { Session::open_edited(path, as_bytes(outputs.model)); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), testing::HasSubstr("model.onnx"));
}

}  // namespace
}  // namespace tranship::onnx

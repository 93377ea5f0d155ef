// Single ops against PyTorch (tests/golden/ops.json, by tools/reference_ops.py): what they mean in
// the interpreter, after the passes, and in ONNX Runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/atomic_file.h"
#include "base/json.h"
#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tranship/dtype.h"

namespace tranship {
namespace {

double number(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  return (json == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
}

Tensor tensor_of(const Json& json) {
  Tensor t(*find_dtype(json.at("dtype").get<std::string>()),
           json.at("shape").get<std::vector<int64_t>>());
  for (int64_t i = 0; i < t.num_elements(); ++i)
    t.set(i, number(json.at("values").at(static_cast<size_t>(i))));
  return t;
}

struct OpCase {
  std::string name, graph;
  NamedTensors inputs, outputs;
};

std::vector<OpCase> all_cases() {
  const std::string path = TRANSHIP_SOURCE_DIR "/tests/golden/ops.json";
  const Json json = parse_json("golden", path, read_text(path));
  std::vector<OpCase> cases;
  for (const Json& one : json.at("cases")) {
    OpCase c;
    c.name = one.at("name");
    for (const Json& line : one.at("graph")) c.graph += line.get<std::string>() + "\n";
    for (const auto& [name, tensor] : one.at("inputs").items())
      c.inputs.emplace(name, tensor_of(tensor));
    for (const auto& [name, tensor] : one.at("outputs").items())
      c.outputs.emplace(name, tensor_of(tensor));
    cases.push_back(std::move(c));
  }
  return cases;
}

class Ops : public ::testing::TestWithParam<OpCase> {
 protected:
  /// Numbers below 10 in sums of at most 72 terms in f32. A resize's coordinates are f32 numbers
  /// up to 26, off by 26 eps, where values change by up to 4 an element.
  void expect_near(const NamedTensors& found) const {
    const double tolerance = GetParam().name.starts_with("resize") ? 1.5e-5 : 4e-6;
    for (const auto& [name, expected] : GetParam().outputs) {
      const Tensor& y = found.at(name);
      ASSERT_EQ(y.dtype(), expected.dtype());
      ASSERT_EQ(y.shape(), expected.shape()) << name;
      for (int64_t i = 0; i < y.num_elements(); ++i) {
        ASSERT_NEAR(y.at(i), expected.at(i), tolerance * (1 + std::abs(expected.at(i))))
            << name << ", element " << i;
      }
    }
  }
};

Tensor no_parameter(const std::string& name) { throw std::logic_error("no parameter " + name); }

TEST_P(Ops, InTheInterpreterTheyMeanWhatPyTorchComputes) {
  const auto graph = ir::parse(GetParam().graph);
  ir::verify(*graph);
  EXPECT_EQ(ir::print(*ir::parse(ir::print(*graph))), ir::print(*graph));
  expect_near(interpret(*graph, GetParam().inputs, no_parameter));
}

TEST_P(Ops, AfterThePassesTheyMeanWhatTheyMeantBefore) {
  auto graph = ir::parse(GetParam().graph);
  passes::run_pipeline(graph, [](const ir::Node&) { return false; });
  expect_near(interpret(*graph, GetParam().inputs, no_parameter));
}

TEST_P(Ops, OnnxRuntimeComputesThemWithoutAWarning) {
  for (const int opset_version : {18, 20, 23, 24}) {
    ir::Program program;
    program.components.push_back(
        {.name = "model", .graph = ir::parse(GetParam().graph), .states = {}});
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("tranship-ops-" + GetParam().name);
    std::filesystem::create_directories(folder);
    onnx::OnnxProgram::lower(program, {.opset_version = opset_version}).save(folder);
    std::vector<std::string> warnings;
    const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                       .progress = {}};
    expect_near(onnx::Session::open(folder / "model.onnx", {.intra_op_threads = 1}, sink)
                    .run(GetParam().inputs));
    EXPECT_THAT(warnings, ::testing::IsEmpty());
    std::filesystem::remove_all(folder);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, Ops, ::testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace tranship

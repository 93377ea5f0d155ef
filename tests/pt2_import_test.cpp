// Programs that torch.export captured, imported, against what PyTorch computes with them: in the
// interpreter, after the passes, and in ONNX Runtime. Fixtures: tools/make_pt2_fixtures.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "formats/pt2/import.h"
#include "interpret/interpret.h"
#include "passes/passes.h"

namespace tranship {
namespace {

using ::testing::IsEmpty;

struct GoldenCall {
  NamedTensors inputs;
  NamedTensors outputs;
};

std::filesystem::path folder() {
  return std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/pt2";
}

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".pt2") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

double number_of(const Json& value) {
  if (!value.is_string()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return (value == "-Infinity" ? -1 : 1) * std::numeric_limits<double>::infinity();
}

Tensor tensor_of(const Json& json) {
  Tensor tensor(find_dtype(json.at("dtype").get<std::string>()).value(),
                json.at("shape").get<std::vector<int64_t>>());
  int64_t i = 0;
  for (const Json& value : json.at("values")) {
    if (tensor.dtype() == DType::kI64) {
      tensor.i64()[static_cast<size_t>(i++)] = value.get<int64_t>();
    } else {
      tensor.set(i++, number_of(value));
    }
  }
  return tensor;
}

NamedTensors tensors_of(const Json& json) {
  NamedTensors out;
  for (const auto& [name, tensor] : json.items()) out.emplace(name, tensor_of(tensor));
  return out;
}

std::vector<GoldenCall> calls_of(const std::string& name) {
  const Json json = parse_json("golden", name, read_text(folder() / (name + ".json")));
  std::vector<GoldenCall> calls;
  for (const Json& call : json.at("calls"))
    calls.push_back({tensors_of(call.at("inputs")), tensors_of(call.at("outputs"))});
  return calls;
}

double epsilon_of(DType dtype) {
  if (dtype == DType::kF16) return 0.0009765625;
  if (dtype == DType::kBF16) return 0.0078125;
  return std::numeric_limits<float>::epsilon();
}

/// Sums of these programs have at most 64 terms: 4 eps sqrt(64) of the largest number.
void expect_same(const Tensor& found, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(found.dtype(), expected.dtype()) << name;
  ASSERT_EQ(found.shape(), expected.shape()) << name;
  double largest = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    if (std::isfinite(expected.at(i))) largest = std::max(largest, std::abs(expected.at(i)));
  }
  const double tolerance =
      is_floating(expected.dtype()) ? 32 * epsilon_of(expected.dtype()) * largest : 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = found.at(i), b = expected.at(i);
    const bool same = std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= tolerance;
    ASSERT_TRUE(same) << name << ", element " << i << ": " << a << ", expected " << b;
  }
}

template <class Runner>
void run_calls(const std::string& name, Runner&& run) {
  for (const GoldenCall& call : calls_of(name)) {
    const NamedTensors found = run(call.inputs);
    EXPECT_EQ(found.size(), call.outputs.size());
    for (const auto& [output, expected] : call.outputs) {
      const auto it = found.find(output);
      ASSERT_TRUE(it != found.end()) << "no output '" << output << "'";
      expect_same(it->second, expected, output);
    }
  }
}

pt2::ImportedProgram imported(const std::string& name) {
  const std::filesystem::path path = folder() / (name + ".pt2");
  return pt2::import_program(pt2::open_archive(path), path.string());
}

class Pt2Import : public ::testing::TestWithParam<std::string> {};

TEST_P(Pt2Import, EveryOperatorHasWords) {
  const pt2::ImportedProgram program = imported(GetParam());
  EXPECT_NO_THROW(pt2::require_mapped(program, GetParam()));
}

TEST_P(Pt2Import, AnImportedProgramComputesWhatPyTorchDoes) {
  const pt2::ImportedProgram program = imported(GetParam());
  run_calls(GetParam(), [&](const NamedTensors& inputs) {
    return interpret(program.program, "model", inputs);
  });
}

TEST_P(Pt2Import, PassesKeepWhatIsComputed) {
  pt2::ImportedProgram program = imported(GetParam());
  for (ir::Component& c : program.program.components)
    passes::run_pipeline(c.graph, [](const ir::Node&) { return false; });
  run_calls(GetParam(), [&](const NamedTensors& inputs) {
    return interpret(program.program, "model", inputs);
  });
}

TEST_P(Pt2Import, OnnxRuntimeComputesWhatPyTorchDoes) {
  const pt2::ImportedProgram program = imported(GetParam());
  const TestFolder directory;
  onnx::OnnxProgram::lower(program.program, {}).save(directory.path());
  const onnx::Session session =
      onnx::Session::open(directory / "model.onnx", {.intra_op_threads = 1}, {});
  run_calls(GetParam(), [&](const NamedTensors& inputs) { return session.run(inputs); });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Pt2Import, ::testing::ValuesIn(fixtures()),
                         [](const auto& fixture) { return fixture.param; });

}  // namespace
}  // namespace tranship

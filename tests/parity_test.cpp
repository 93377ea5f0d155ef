// Every golden case: the graph as a definition builds it and as the passes leave it, in the
// interpreter; and in each format, in its runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>

#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "interpret/interpret.h"
#include "passes/passes.h"
#include "support/golden.h"

namespace tranship::testing {
namespace {

class Parity : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> optional_inputs_of(const GoldenCase& golden) {
  std::set<std::string> names;
  for (const GoldenCall& call : golden.runs.at(0)) {
    for (const auto& [name, tensor] : call.inputs) names.insert(name);
  }
  return {names.begin(), names.end()};
}

void expect_near(const NamedTensors& found, const GoldenCall& call, const GoldenCase& golden,
                 const std::string& what) {
  for (const auto& [name, expected] : call.outputs) {
    ASSERT_TRUE(found.contains(name)) << what << ": no output " << name;
    EXPECT_LE(distance(found.at(name), expected, golden.longest_reduction), 1)
        << what << ": " << name;
  }
}

constexpr const char* kEncoderState = "encoder_outputs.last_hidden_state";

/// The call's inputs, with those of its component that an earlier call left.
NamedTensors with_kept(const ir::Program& program, const GoldenCall& call,
                       const NamedTensors& kept) {
  NamedTensors inputs = call.inputs;
  for (const ir::Component& component : program.components) {
    if (component.name != call.component) continue;
    for (const ir::Node* node : component.graph->inputs()) {
      const std::string& name = ir::as<ir::Input>(*node->op).name;
      if (const auto it = kept.find(name); it != kept.end()) inputs.emplace(name, it->second);
    }
  }
  return inputs;
}

/// Runs a component of a program: inputs -> outputs.
using Runner =
    std::function<NamedTensors(const std::string& component, const NamedTensors& inputs)>;

/// A case's calls in order; what a call leaves in its cache goes into the next one.
void run_case(const GoldenCase& golden, const ir::Program& program, const Runner& runner) {
  for (size_t run = 0; run < golden.runs.size(); ++run) {
    NamedTensors kept;  // what one call leaves for the next
    for (size_t step = 0; step < golden.runs[run].size(); ++step) {
      const GoldenCall& call = golden.runs[run][step];
      const std::string& component = call.component;
      const NamedTensors outputs = runner(component, with_kept(program, call, kept));
      expect_near(outputs, call, golden,
                  component + ", run " + std::to_string(run) + ", step " + std::to_string(step));
      if (component == "encoder") kept = {{kEncoderState, outputs.at("last_hidden_state")}};
      for (const ir::State& s : program.components.back().states) {
        const bool decodes = component == "decode";
        if (decodes || component == "prefill")
          kept.insert_or_assign(s.input, outputs.at(decodes ? s.output : s.name));
      }
    }
  }
}

Runner in_interpreter(const ir::Program& program) {
  return [&program](const std::string& component, const NamedTensors& inputs) {
    return interpret(program, component, inputs);
  };
}

/// The runs of a forward case may give other optional inputs: a program for each kind of call.
std::vector<GoldenCase> by_inputs(const GoldenCase& golden) {
  std::map<std::vector<std::string>, GoldenCase> groups;
  for (const auto& run : golden.runs) {
    GoldenCase one = golden;
    one.runs = {run};
    const std::vector<std::string> names = optional_inputs_of(one);
    auto [it, added] = groups.try_emplace(names, one);
    if (!added) it->second.runs.push_back(run);
  }
  std::vector<GoldenCase> result;
  for (auto& [names, one] : groups) result.push_back(std::move(one));
  return result;
}

tasks::TaskProgram build(const GoldenCase& golden) {
  const CheckpointData checkpoint = golden_checkpoint(golden);
  tasks::TaskOptions options;
  options.graph_inputs = optional_inputs_of(golden);
  return golden.generation ? tasks::generation(checkpoint, options)
                           : tasks::forward(checkpoint, options);
}

TEST_P(Parity, ADefinitionComputesWhatTransformersDoes) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) {
    const tasks::TaskProgram built = build(golden);
    run_case(golden, built.program, in_interpreter(built.program));
  }
}

TEST_P(Parity, PassesKeepWhatIsComputed) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) {
    tasks::TaskProgram built = build(golden);
    for (ir::Component& c : built.program.components)
      passes::run_pipeline(c.graph, [](const ir::Node&) { return false; });
    run_case(golden, built.program, in_interpreter(built.program));
  }
}

/// A folder of its own for each test, gone afterwards.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path(std::filesystem::temp_directory_path() / ("tranship-parity-" + name)) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  const std::filesystem::path path;
};

TEST_P(Parity, OnnxRuntimeComputesWhatTransformersDoesWithoutAWarning) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) {
    const tasks::TaskProgram built = build(golden);
    const Folder folder(GetParam());
    onnx::OnnxProgram::lower(built.program, {}).save(folder.path);
    std::vector<std::string> warnings;
    const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                       .progress = {}};
    std::map<std::string, onnx::Session> sessions;
    for (const ir::Component& c : built.program.components) {
      sessions.emplace(c.name, onnx::Session::open(folder.path / (c.name + ".onnx"),
                                                   {.intra_op_threads = 1}, sink));
    }
    run_case(golden, built.program, [&](const std::string& component, const NamedTensors& inputs) {
      return sessions.at(component).run(inputs);
    });
    EXPECT_THAT(warnings, ::testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Parity, ::testing::ValuesIn(golden_cases()),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace tranship::testing

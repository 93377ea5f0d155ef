// Every golden case: the graph as a definition builds it and as the passes leave it, in the
// interpreter; and in each format, in its runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/onnx_sessions.h"
#include "support/run_golden.h"

namespace tranship::testing {
namespace {

class Parity : public ::testing::TestWithParam<std::string> {};

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

TEST_P(Parity, OnnxRuntimeComputesWhatTransformersDoesWithoutAWarning) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) {
    const tasks::TaskProgram built = build(golden);
    std::vector<std::string> warnings;
    const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                       .progress = {}};
    const OnnxSessions sessions(built.program, {}, sink);
    run_case(golden, built.program, sessions.runner());
    EXPECT_THAT(warnings, ::testing::IsEmpty());
  }
}

TEST_P(Parity, TheCompositesOfNewerOpsetsComputeItWithoutAWarning) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) {
    const tasks::TaskProgram built = build(golden);
    for (const int opset_version : {23, 24}) {
      std::vector<std::string> warnings;
      const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                         .progress = {}};
      const OnnxSessions sessions(built.program, {.opset_version = opset_version}, sink);
      run_case(golden, built.program, sessions.runner());
      EXPECT_THAT(warnings, ::testing::IsEmpty());
    }
  }
}

TEST_P(Parity, OnnxRuntimesOwnOperatorsComputeIt) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) {
    const tasks::TaskProgram built = build(golden);
    for (const auto provider : {onnx::Provider::kCpu, onnx::Provider::kCuda,
                                onnx::Provider::kWebGpu, onnx::Provider::kDml}) {
      SCOPED_TRACE(onnx::capabilities(provider).name);
      const OnnxSessions sessions(built.program, {.fusions = provider});
      run_case(golden, built.program, sessions.runner());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Parity, ::testing::ValuesIn(golden_cases()),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace tranship::testing

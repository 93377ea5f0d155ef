// Every golden case against the definitions: the graph as built, and as the passes leave it, in the interpreter.
#include <gtest/gtest.h>

#include "interpret/interpret.h"
#include "passes/passes.h"
#include "support/golden.h"

namespace tranship::testing {
namespace {

class Parity : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> optional_inputs_of(const GoldenCase& golden) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : golden.runs.at(0).at(0).inputs) names.push_back(name);
  return names;
}

void expect_near(const NamedTensors& found, const GoldenCall& call, const GoldenCase& golden, const std::string& what) {
  for (const auto& [name, expected] : call.outputs) {
    ASSERT_TRUE(found.contains(name)) << what << ": no output " << name;
    EXPECT_LE(distance(found.at(name), expected, golden.longest_reduction), 1) << what << ": " << name;
  }
}

NamedTensors with_defaults(const GoldenCall& call, const NamedTensors& more) {
  NamedTensors inputs = call.inputs;
  for (const auto& [name, tensor] : more) inputs.emplace(name, tensor);
  return inputs;
}

/// A case's calls in order; what a call leaves in its cache goes into the next one.
void run_case(const GoldenCase& golden, const ir::Program& program) {
  for (size_t run = 0; run < golden.runs.size(); ++run) {
    NamedTensors cache;
    for (size_t step = 0; step < golden.runs[run].size(); ++step) {
      const GoldenCall& call = golden.runs[run][step];
      const std::string component = !golden.generation ? "model" : (step == 0 ? "prefill" : "decode");
      const NamedTensors outputs = interpret(program, component, with_defaults(call, cache));
      expect_near(outputs, call, golden, component + ", run " + std::to_string(run) + ", step " + std::to_string(step));
      cache.clear();
      for (const ir::Component& c : program.components) {
        if (c.name != "decode") continue;
        for (const ir::State& s : c.states) cache.emplace(s.input, outputs.at(step == 0 ? s.name : s.output));
      }
    }
  }
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
  return golden.generation ? tasks::generation(checkpoint, options) : tasks::forward(checkpoint, options);
}

TEST_P(Parity, ADefinitionComputesWhatTransformersDoes) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) run_case(golden, build(golden).program);
}

TEST_P(Parity, PassesKeepWhatIsComputed) {
  for (const GoldenCase& golden : by_inputs(read_golden(GetParam()))) {
    tasks::TaskProgram built = build(golden);
    for (ir::Component& c : built.program.components) passes::run_pipeline(c.graph, [](const ir::Node&) { return false; });
    run_case(golden, built.program);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Parity, ::testing::ValuesIn(golden_cases()), [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace tranship::testing

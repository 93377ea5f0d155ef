#include "support/run_golden.h"

#include <gtest/gtest.h>

#include <set>

#include "interpret/interpret.h"

namespace tranship::testing {
namespace {

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

}  // namespace

Runner in_interpreter(const ir::Program& program) {
  return [&program](const std::string& component, const NamedTensors& inputs) {
    return interpret(program, component, inputs);
  };
}

std::vector<std::string> optional_inputs_of(const GoldenCase& golden) {
  std::set<std::string> names;
  for (const GoldenCall& call : golden.runs.at(0)) {
    for (const auto& [name, tensor] : call.inputs) names.insert(name);
  }
  return {names.begin(), names.end()};
}

void run_case(const GoldenCase& golden, const ir::Program& program, const Runner& runner,
              const NamedTensors& empty) {
  for (size_t run = 0; run < golden.runs.size(); ++run) {
    NamedTensors kept = empty;  // what one call leaves for the next
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

}  // namespace tranship::testing

// Runs golden cases: the calls in order, with what each leaves in its cache for the next.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/golden.h"

namespace tranship::testing {

/// Runs a component of a program: inputs -> outputs.
using Runner =
    std::function<NamedTensors(const std::string& component, const NamedTensors& inputs)>;

Runner in_interpreter(const ir::Program& program);

/// Names of all inputs that the case's first run gives.
std::vector<std::string> optional_inputs_of(const GoldenCase& golden);

/// Expects of each call what Transformers gave. kept: what the first calls find in the cache.
void run_case(const GoldenCase& golden, const ir::Program& program, const Runner& runner,
              const NamedTensors& kept = {});

}  // namespace tranship::testing

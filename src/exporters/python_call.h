// How Transformers calls a component, and what it gets: ModelOutputs and caches, with the graph's
// inputs and outputs at their leaves.
#pragma once

#include "formats/pt2/pt2_program.h"
#include "ir/program.h"
#include "tasks/task.h"

namespace tranship::exporters {

/// example_sizes: of the axes; a static cache, which Python must match to the letter, has them.
/// Source: transformers/modeling_outputs.py, cache_utils.py (5.23).
pt2::PythonCall call_of(const tasks::Signature& signature, const ir::Component& component,
                        const std::map<std::string, int64_t>& example_sizes);

}  // namespace tranship::exporters

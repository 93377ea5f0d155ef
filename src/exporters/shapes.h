// Which axes of a program stay open, and the sizes of the others: what dynamic, dynamic_shapes,
// static_shapes, dims and sample inputs say, put together.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "exporters/export_options.h"
#include "ir/program.h"

namespace tranship::exporters {

struct ShapePlan {
  std::map<std::string, int64_t> sizes;     // of axes that are fixed
  std::map<std::string, ir::Range> ranges;  // of those that stay open, where somebody said one
  /// A size for each axis, fixed or open: those of the sample inputs, or made up within the range.
  std::map<std::string, int64_t> examples;
};

/// The length of a cache that grows stays open unless static_shapes names it.
/// usual_sizes: of axes that nobody need name: fixed at these where nothing is dynamic.
/// Errors: invalid_argument for axes whose size nobody said (how to say it is in the message),
/// sizes that contradict each other or the model, and unknown inputs or axes.
ShapePlan plan_shapes(const ir::Program& program, const NamedTensors& sample_inputs,
                      const ExportOptions& config,
                      const std::map<std::string, int64_t>& usual_sizes = {});

/// Gives all graphs the plan's sizes and ranges.
void apply_shapes(const ShapePlan& plan, ir::Program& program);

}  // namespace tranship::exporters

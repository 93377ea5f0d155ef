#include "exporters/ranges.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace tranship::exporters {

Ranges ranges_of(const ExportMetadata& metadata, const std::vector<Port>& inputs) {
  OnnxConfig config;
  try {
    config = OnnxConfig::from_json(metadata.export_config);
  } catch (const Error&) {
    return {};
  }
  Ranges ranges;
  for (const auto& [name, dim] : config.dims) ranges[name] = {dim.min, dim.max};
  for (const auto& [name, axes] : config.dynamic_shapes) {
    const auto input = std::ranges::find_if(inputs, [&name = name](const Port& port) {
      return port.name == name || port.name == "input." + name;
    });
    if (input == inputs.end()) continue;
    for (const auto& [axis, dim] : axes) {
      if (axis >= 0 && axis < std::ssize(input->shape))
        ranges[input->shape[static_cast<size_t>(axis)]] = {dim.min, dim.max};
    }
  }
  return ranges;
}

std::string text_of(const ir::Range& range) {
  return fmt::format("{} to {}", range.min, range.max ? std::to_string(*range.max) : "any");
}

}  // namespace tranship::exporters

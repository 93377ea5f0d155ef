// The ranges of an export's open axes, as export.json records them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "tranship/exporters.h"

namespace tranship::exporters {

/// By the graph's name for an axis: "sequence".
using Ranges = std::map<std::string, ir::Range>;

/// What export_config says of the axes of a program's inputs: dims, and dynamic_shapes under the
/// names that the graph has for them. Empty for a configuration that cannot be read: another
/// program's, or a newer one's.
Ranges ranges_of(const ExportMetadata& metadata, const std::vector<Port>& inputs);

/// "1 to 16", "1 to any".
std::string text_of(const ir::Range& range);

}  // namespace tranship::exporters

// What Transformers' loader needs to know about a component: export.json's metadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "exporters/export_options.h"
#include "ir/program.h"
#include "tasks/task.h"

namespace tranship::exporters {

/// `example_sizes`: a size for each symbol of the graph's inputs, for the shapes that are recorded.
/// Source: transformers/exporters/metadata.py build_export_metadata (5.23).
ExportMetadata describe(const tasks::Signature& signature, const ir::Component& component,
                        const std::string& architecture, DType dtype, const ExportOptions& options,
                        const std::map<std::string, int64_t>& example_sizes);

}  // namespace tranship::exporters

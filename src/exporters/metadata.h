// What Transformers' loader needs to know about a component: export.json's metadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "exporters/export_options.h"
#include "formats/pt2/pt2_program.h"
#include "ir/graph.h"

namespace tranship::exporters {

/// `example_sizes`: a size for each symbol of the graph's inputs, for the shapes that are recorded.
/// Source: transformers/exporters/metadata.py build_export_metadata (5.23).
ExportMetadata describe(const pt2::Call& call, const ir::Graph& graph,
                        const std::string& architecture, DType dtype, const ExportOptions& options,
                        const std::map<std::string, int64_t>& example_sizes);

}  // namespace tranship::exporters

// What exports to ONNX share: options, and a program's inputs and outputs as its graph has them.
#pragma once

#include "formats/onnx/onnx_program.h"
#include "ir/graph.h"
#include "tranship/exporters.h"

namespace tranship::exporters {

/// `num_nodes`: of the program in its format.
ExportedProgram describe_ports(const ir::Graph& graph, size_t num_nodes);

onnx::OnnxOptions onnx_options(const OnnxConfig& config);

}  // namespace tranship::exporters

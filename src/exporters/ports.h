// What exports to ONNX share: options, and a program's inputs and outputs as its graph has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "ir/graph.h"
#include "tranship/exporters.h"

namespace tranship::exporters {

/// `num_nodes`: of the program in its format.
ExportedProgram describe_ports(const ir::Graph& graph, size_t num_nodes);

/// How the name of a counter ends: of the slots of a static cache that are taken.
inline constexpr std::string_view kCounter = ".cumulative_length";

/// Part of the names of what a decoder keeps of an encoder.
inline constexpr std::string_view kCrossCache = ".cross_attention_cache.";

/// The size of an axis of a port that has one; nothing for a name or an expression.
std::optional<int64_t> fixed_size(const std::string& axis);

/// The size of an axis of a port as an expression ("batch", "past + 1"); nothing for a name that
/// somebody else gave it.
std::optional<ir::Dim> declared(const std::string& axis);

/// Errors: a provider that there is not.
onnx::OnnxOptions onnx_options(const OnnxConfig& config);

onnx::SessionOptions session_options(const RunOptions& options);

}  // namespace tranship::exporters

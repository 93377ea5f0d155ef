// An .onnx that also gives what its modules compute: so that two programs can be compared module by
// module.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tranship::onnx {

/// What a module's operator gives.
struct ModuleValue {
  std::string path;   // "model.layers.0.mlp.up_proj"
  std::string value;  // the graph's name for it
};

struct ModuleOutputs {
  std::vector<ModuleValue> modules;  // in the order in which they run; empty if no node is named so
  std::string model;  // the .onnx with these values as outputs; a file may be its data
};

/// Modules with weights: nodes of operators that take them (Gemm, Gather, LayerNormalization),
/// named as tranship names them, "model.layers.0.mlp.up_proj/Gemm". The file stays as it is.
/// Errors: io; corrupt if it is not an ONNX model; unsupported if it is too large to be one in
/// memory.
ModuleOutputs with_module_outputs(const std::filesystem::path& path);

}  // namespace tranship::onnx

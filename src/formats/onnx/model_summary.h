// What an .onnx file says about itself; its weights are named, not read. Needs no runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "formats/onnx/session.h"

namespace tranship::onnx {

/// An initializer, of the main graph or of a sub-graph.
struct WeightInfo {
  std::string name;
  std::string dtype;           // "f32"; "element type 8" for one without a DType
  std::vector<int64_t> shape;  // as the file says it
  uint64_t size_bytes = 0;     // where it lies
  std::string data_file;       // empty: inside the .onnx
  uint64_t offset = 0;         // in data_file
};

struct ModelSummary {
  int64_t ir_version = 0;
  std::string producer;                   // "tranship 0.1.0"
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  std::vector<ValueInfo> inputs;          // without those that are initializers
  std::vector<ValueInfo> outputs;
  std::map<std::string, size_t>
      operators;         // nodes by operator ("com.microsoft.Gelu"), sub-graphs included
  size_t num_nodes = 0;  // of the main graph
  size_t num_weights = 0;
  std::vector<WeightInfo> weights;  // in the file's order
  /// Inputs that an operator can write where they are, with the outputs that this gives: the caches
  /// of GroupQueryAttention. Nothing else looks at them, so that they may have room for more.
  std::map<std::string, std::string> in_place = {};
  std::set<std::string> data_files;  // what weights outside of the file lie in, as the file says it
};

/// Errors: io if it cannot be read; corrupt if it is not an ONNX model; unsupported for an input or
/// output that is not a tensor of a known dtype.
ModelSummary read_summary(const std::filesystem::path& path);
ModelSummary read_summary(const MappedFile& file);

}  // namespace tranship::onnx

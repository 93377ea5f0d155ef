// A program in ONNX's words: lowered once, written as <component>.onnx and <component>.onnx.data.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/onnx/fusions/provider.h"
#include "ir/program.h"
#include "tranship/sink.h"

namespace tranship::onnx {

enum class Weights {
  kExternal,   // copied into <first component>.onnx.data, which the other components point into
  kInline,     // inside each .onnx; at most 2 GB
  kReference,  // the .onnx points into the checkpoint's own safetensors, which must lie in the
               // target directory
};

struct OnnxOptions {
  int opset_version = 20;  // 18 to 24
  Weights weights = Weights::kExternal;
  std::optional<Provider> fusions = {};  // whose own operators may be used; absent: standard ONNX
};

/// A file that save() will write, or has written.
struct PlannedFile {
  std::string name;
  uint64_t size_bytes = 0;
  std::string hash = {};  // base/file_hash.h's, once it is written
};

/// Cheap to copy. Holds the graphs as protobuf and the weights as promises; nothing is read before
/// save().
class OnnxProgram {
 public:
  /// Runs the passes and lowers every component. The program may go afterwards.
  /// Errors: unsupported for an op or dtype that ONNX cannot say at this opset (all of them at
  /// once), and for an opset outside 18 to 24.
  static OnnxProgram lower(const ir::Program& program, const OnnxOptions& options);

  std::vector<std::string> components() const;
  /// Nodes of a component's main graph. Errors: invalid_argument for an unknown component.
  size_t num_nodes(const std::string& component) const;
  /// Inputs that a component can write where they are, with the outputs that this gives. Errors: as
  /// num_nodes().
  std::map<std::string, std::string> in_place(const std::string& component) const;
  /// Sizes are exact. For Weights::kReference the data files of Transformers' layout are there, but
  /// empty.
  std::vector<PlannedFile> files() const;
  /// Files of the checkpoint that the graphs point into (kReference); sizes are those of now.
  std::vector<PlannedFile> referred_files() const;

  /// Writes files() into an existing directory, each beside its name and renamed when all are
  /// complete -> files() with their hashes, made on the way. Errors: io; invalid_argument for a
  /// weight that overflows the export's dtype; for kReference unsupported if a weight does not lie
  /// as it is in a regular file of that directory.
  std::vector<PlannedFile> save(const std::filesystem::path& directory,
                                const Sink& sink = {}) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tranship::onnx

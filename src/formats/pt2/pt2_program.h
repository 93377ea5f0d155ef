// A program in PyTorch's words: each component an archive that torch.export.load reads.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/pt2/python_value.h"
#include "ir/program.h"
#include "tranship/sink.h"

namespace tranship::pt2 {

/// How Python calls a component, and what it gets. The leaves are the graph's inputs and outputs.
struct PythonCall {
  PythonValue kwargs;  // a dict
  PythonValue result;
};

/// The same as PyTorch records it: what an imported program has.
struct RecordedCall {
  std::string in_spec, out_spec;  // tree specs
  std::vector<std::string> argument_names;
  std::vector<Leaf> inputs, outputs;
  std::string sample_inputs;  // a pickle
};

/// A file that save() will write, or has written.
struct PlannedFile {
  std::string name;
  uint64_t size_bytes = 0;
  std::string hash = {};  // base/file_hash.h's, once it is written
};

/// Cheap to copy. Holds the graphs as JSON and the weights as promises; nothing is read before
/// save(). Each archive has its own copy of the weights it uses: PyTorch knows no other way.
class Pt2Program {
 public:
  /// Runs the passes and lowers every component. The program may go afterwards.
  /// calls: one a component. examples: a size for each symbol; sample inputs have these sizes.
  /// Errors: unsupported for an op or dtype that ATen has no word for (all of them at once).
  static Pt2Program lower(const ir::Program& program, const std::vector<PythonCall>& calls,
                          const std::map<std::string, int64_t>& examples);
  static Pt2Program lower(const ir::Program& program, const std::vector<RecordedCall>& calls,
                          const std::map<std::string, int64_t>& examples);

  std::vector<std::string> components() const;
  /// Errors: invalid_argument for an unknown component.
  size_t num_nodes(const std::string& component) const;
  /// model.json of a component. Errors: as above.
  const std::string& model_json(const std::string& component) const;
  /// <component>.pt2 each; sizes are exact.
  std::vector<PlannedFile> files() const;

  /// Writes files() into an existing directory, each beside its name and renamed when all are
  /// complete -> files() with their hashes, made on the way. Errors: io; invalid_argument for a
  /// weight that overflows the export's dtype.
  std::vector<PlannedFile> save(const std::filesystem::path& directory,
                                const Sink& sink = {}) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tranship::pt2

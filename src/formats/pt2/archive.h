// A .pt2 file: its program, and its weights and constants as promises.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "formats/pt2/schema.h"
#include "ir/tensor_source.h"

namespace tranship::pt2 {

struct StoredTensor {
  TensorSourcePtr source;
  /// The first name, in order, of those that are the same elements of the same storage: tied
  /// weights are one tensor.
  std::string first_name;
};

struct Archive {
  ExportedProgram program;
  std::map<std::string, StoredTensor> weights;    // parameters and persistent buffers
  std::map<std::string, StoredTensor> constants;  // other buffers and tensor constants
  std::string sample_inputs;  // a pickle, which is not run; empty if there is none, or a huge one
};

/// Opens what torch.export.save of torch 2.8 or newer wrote; weights stay in the mapped file, which
/// the archive's sources keep open.
/// Errors: io; corrupt for an archive that is not whole, a tensor outside of its storage, a missing
/// record; unsupported for older files, several models none of which is "model", dtypes that no
/// tensor of ours can have, pickled subclasses.
Archive open_archive(const std::filesystem::path& path);
Archive open_archive(const std::shared_ptr<const MappedFile>& file);

}  // namespace tranship::pt2

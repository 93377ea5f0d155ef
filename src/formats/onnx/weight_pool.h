// The weights of several models, in memory once.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "formats/onnx/ort_library.h"
#include "formats/onnx/ort_value.h"

namespace tranship::onnx {

/// What the sessions of one artifact on the CPU have in common: the files of their weights, mapped
/// once, and the weights in the order in which kernels want them, made once. Without it each
/// session has its own of both. For sessions of one library, opened one after the other.
class WeightPool {
 public:
  /// library: as SessionOptions'. Errors: those of OrtLibrary::open; what ONNX Runtime says.
  explicit WeightPool(const std::filesystem::path& library, const Sink& sink = {});
  WeightPool(const WeightPool&) = delete;
  WeightPool& operator=(const WeightPool&) = delete;

  /// Gives `options` the weights that a model has in files beside it. Those that do not lie there
  /// as it says are left to ONNX Runtime, which says why.
  void lend(const std::filesystem::path& model, OrtSessionOptions* options);
  /// Lets the files' pages go that were only read to be reordered; those that are looked at later
  /// come back.
  void forget_pages() const;
  /// What sessions keep the reordered weights in. Outlived by none of them.
  OrtPrepackedWeights* prepacked() const { return prepacked_.get(); }

 private:
  const MappedFile* file(const std::filesystem::path& path);

  const OrtLibrary& library_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;
  std::map<std::string, Value> values_;  // by file and offset
  OrtPtr<OrtPrepackedWeights, &OrtApi::ReleasePrepackedWeightsContainer> prepacked_;
};

}  // namespace tranship::onnx

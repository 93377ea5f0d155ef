// Where a model comes from: a Hugging Face checkpoint on disk, or one that is made up.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tranship/error.h"
#include "tranship/sink.h"

namespace tranship {

struct CheckpointData;

/// A configuration, the weights' index, and the files that go along. Weights are mapped, never
/// loaded. Cheap to copy; the mapped files live as long as the last copy.
class Checkpoint {
 public:
  /// Opens one of:
  ///   a directory with config.json and model.safetensors, or model.safetensors.index.json and its
  ///   shards (links are followed, so a snapshot of the Hub's cache is one); a .gguf file, or a
  ///   directory whose only checkpoint is one.
  /// Errors: io if nothing is there; corrupt if a file is not what it claims to be, with the place;
  /// unsupported for a pickled checkpoint (pytorch_model.bin), which is never unpickled: the
  /// message says how to convert it.
  static Checkpoint open(const std::filesystem::path& path, const Sink& sink = {});

  /// A checkpoint without files: the configuration is `config_json`, and each tensor that a
  /// definition asks for exists, with numbers that are a fixed function of its name (the same one
  /// in tools/hash_weights.py).
  static Checkpoint synthetic(std::string_view config_json);

  /// The configuration as JSON text, as Transformers writes it (for a GGUF: translated).
  std::string config_json() const;
  /// The generation configuration as JSON text; empty if the checkpoint has none.
  std::string generation_config_json() const;

  const CheckpointData& data() const { return *data_; }
  explicit Checkpoint(std::shared_ptr<const CheckpointData> data) : data_(std::move(data)) {}

 private:
  std::shared_ptr<const CheckpointData> data_;
};

}  // namespace tranship

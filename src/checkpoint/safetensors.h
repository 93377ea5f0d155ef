// Hugging Face's safetensors files: mapped and checked, with nothing read until it is asked for.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "ir/tensor_source.h"
#include "tranship/tensor.h"

namespace tranship {

struct SafetensorsFile {
  std::map<std::string, TensorSourcePtr> tensors;
  std::map<std::string, std::string> metadata;
};

/// Opens one file. Only its header is read.
/// Errors: corrupt, with file, tensor and byte, unless every tensor's dtype x shape is its span,
/// and the spans follow each other without holes from the header to the end of the file;
/// unsupported for dtypes without a DType (F4, C64 ...). Source: the format's README and the checks
/// of the `safetensors` package (0.8).
SafetensorsFile open_safetensors(const std::filesystem::path& path);
SafetensorsFile open_safetensors(std::shared_ptr<const MappedFile> file);

/// Opens the shards that a model.safetensors.index.json beside them names.
/// Errors: as open_safetensors; io if shards are absent (all are named); corrupt if the index names
/// a file outside its folder, or if index and shards do not have the same tensors (all are named).
std::map<std::string, TensorSourcePtr> open_sharded_safetensors(const std::filesystem::path& index);
/// The same, of an index that was read.
std::map<std::string, TensorSourcePtr> open_sharded_safetensors(const std::filesystem::path& index,
                                                                std::string_view text);

/// Reads all of a small file.
NamedTensors read_safetensors(const std::filesystem::path& path);

/// Writes a file, whole or not at all, with the bytes that the `safetensors` package would write.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace tranship

// Opens a GGUF file as a checkpoint.
#pragma once

#include <filesystem>
#include <memory>

#include "base/mapped_file.h"
#include "checkpoint/checkpoint_data.h"
#include "tranship/sink.h"

namespace tranship {

/// Configuration, tensors by Transformers' name, and the tokenizer as tokenizer.json and
/// tokenizer_config.json in `made_companions`. A tokenizer that cannot be read is a warning: the
/// weights can be exported without one. Nothing of the tensors' data is read (but for Llama 3's
/// frequency factors: see gguf_config.h). Errors: those of GgufFile::open, gguf_config_json and
/// gguf_tensors; corrupt for a broken tokenizer.
CheckpointData open_gguf(const std::filesystem::path& path, const Sink& sink);
CheckpointData open_gguf(std::shared_ptr<const MappedFile> file, const Sink& sink);

}  // namespace tranship

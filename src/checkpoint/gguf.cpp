#include "checkpoint/gguf.h"

#include <utility>

#include "base/error.h"
#include "checkpoint/gguf_config.h"
#include "checkpoint/gguf_tokenizer.h"

namespace tranship {
namespace {

void make_tokenizer(const GgufFile& gguf, const Sink& sink, CheckpointData& data) {
  if (!has_tokenizer(gguf)) return;
  try {
    data.made_companions["tokenizer.json"] = gguf_tokenizer_json(gguf);
    data.made_companions["tokenizer_config.json"] = gguf_tokenizer_config_json(gguf);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    data.made_companions.clear();
    sink.warn(error.what());
  }
  const auto pre = gguf.find_text("tokenizer.ggml.pre").value_or("default");
  if (gguf.find_text("tokenizer.ggml.model") == "gpt2" && pre == "default") {
    sink.warn(
        fmt::format("[gguf] '{}' does not say how its tokenizer splits text (tokenizer.ggml.pre): "
                    "GPT-2's way is used, as "
                    "Transformers does. If the model has a tokenizer.json of its own, use that",
                    gguf.label()));
  }
}

}  // namespace

CheckpointData open_gguf(const std::filesystem::path& path, const Sink& sink) {
  return open_gguf(MappedFile::open(path), sink);
}

CheckpointData open_gguf(std::shared_ptr<const MappedFile> file, const Sink& sink) {
  const GgufFile gguf = GgufFile::open(std::move(file));
  CheckpointData data;
  data.kind = CheckpointKind::kGguf;
  data.path = gguf.path();
  data.config = Config::parse(gguf.label(), gguf_config_json(gguf));
  data.generation_config = Config::parse(gguf.label(), gguf_generation_config_json(gguf));
  data.tensors = gguf_tensors(gguf);
  make_tokenizer(gguf, sink, data);
  return data;
}

}  // namespace tranship

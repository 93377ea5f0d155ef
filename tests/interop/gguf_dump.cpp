// gguf_dump MODEL.gguf FOLDER: writes what tranship makes of a GGUF, for test_gguf.py to compare
// with what Transformers makes of it: config.json, generation_config.json, the tokenizer's files,
// and model.safetensors.
#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "base/atomic_file.h"
#include "base/json.h"
#include "checkpoint/gguf.h"

namespace {

using namespace tranship;

// safetensors' names of the dtypes that a GGUF can have are PyTorch's short ones in capitals.
std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

void write_tensors(const CheckpointData& data, const std::filesystem::path& path) {
  Json header = Json::object();
  size_t offset = 0;
  for (const auto& [name, source] : data.tensors) {
    header[name] = {{"dtype", upper(tranship::name(source->dtype()))},
                    {"shape", source->shape()},
                    {"data_offsets", {offset, offset + source->size_bytes()}}};
    offset += source->size_bytes();
  }
  const std::string text = header.dump();
  AtomicFile file(path);
  const uint64_t length = text.size();
  file.write(Bytes(reinterpret_cast<const std::byte*>(&length), sizeof(length)));
  file.write(text);
  for (const auto& [name, source] : data.tensors) file.write(read_all(*source).bytes());
  file.commit();
}

void dump(const std::filesystem::path& model, const std::filesystem::path& folder) {
  const Sink sink{.warning = [](std::string_view text) { fmt::print("{}\n", text); },
                  .progress = {}};
  const CheckpointData data = open_gguf(model, sink);
  std::filesystem::create_directories(folder);
  write_text(folder / "config.json", data.config.to_json());
  write_text(folder / "generation_config.json", data.generation_config->to_json());
  for (const auto& [name, text] : data.made_companions) write_text(folder / name, text);
  write_tensors(data, folder / "model.safetensors");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: gguf_dump MODEL.gguf FOLDER\n");
    return 2;
  }
  try {
    dump(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

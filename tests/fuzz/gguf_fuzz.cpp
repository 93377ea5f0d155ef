// The container, its configuration and its tokenizer in Hugging Face's words, and its tensors.
#include "base/json.h"
#include "checkpoint/gguf.h"
#include "fuzz.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CheckpointData opened;
  if (!fuzz::accepts([&] { opened = open_gguf(fuzz::file_of(data, size), {}); })) return 0;
  for (const auto& [name, text] : opened.made_companions) parse_json("fuzz", name, text);
  for (const auto& [name, source] : opened.tensors) {
    fuzz::require(source->size_bytes() / 32 <= size, "a tensor is not larger than its file");
    fuzz::accepts([&] { read_all(*source); });
  }
  return 0;
}

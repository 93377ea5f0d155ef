#include "checkpoint/safetensors.h"
#include "fuzz.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    for (const auto& [name, source] : open_safetensors(fuzz::file_of(data, size)).tensors) {
      fuzz::require(read_all(*source).bytes().size() == source->size_bytes(),
                    "a tensor has as many bytes as its source says");
      fuzz::require(source->size_bytes() <= size, "a tensor is not larger than its file");
    }
  });
  return 0;
}

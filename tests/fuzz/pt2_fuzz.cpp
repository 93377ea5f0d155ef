// A .pt2 of a stranger: the archive, its JSON, its weights, and the whole import.
#include "formats/pt2/import.h"
#include "fuzz.h"
#include "ir/verify.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const pt2::Archive archive = pt2::open_archive(fuzz::file_of(data, size));
    for (const auto* tensors : {&archive.weights, &archive.constants}) {
      for (const auto& [name, tensor] : *tensors) {
        constexpr size_t kMostBytes = 1 << 20;
        if (tensor.source->size_bytes() > kMostBytes) continue;
        fuzz::require(read_all(*tensor.source).bytes().size() == tensor.source->size_bytes(),
                      "a tensor has as many bytes as its source says");
      }
    }
    const pt2::ImportedProgram program = pt2::import_program(archive, "fuzz");
    for (const ir::Component& component : program.program.components) ir::verify(*component.graph);
  });
  return 0;
}

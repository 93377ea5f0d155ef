// What `inspect` reads of anybody's .onnx file.
#include "formats/onnx/model_summary.h"
#include "fuzz.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFile file;
  fuzz::accepts([&] {
    const onnx::ModelSummary summary = onnx::read_summary(file.write(data, size));
    fuzz::require(summary.weights.size() == summary.num_weights, "each weight is counted");
  });
  return 0;
}

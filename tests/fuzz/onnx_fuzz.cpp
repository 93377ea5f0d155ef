// What `inspect` reads of anybody's .onnx file.
#include "formats/onnx/model_summary.h"
#include "fuzz.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const onnx::ModelSummary summary = onnx::read_summary(*fuzz::file_of(data, size));
    fuzz::require(summary.weights.size() == summary.num_weights, "each weight is counted");
  });
  return 0;
}

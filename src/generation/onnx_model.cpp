#include "generation/onnx_model.h"

#include <utility>

namespace tranship::generation {

Logits OnnxModel::prefill(const PromptBatch& batch) {
  decoder_.begin(batch.num_rows);
  return decoder_.read(batch);
}
Logits OnnxModel::decode(std::span<const int64_t> ids) { return decoder_.read_on(ids, 1); }
Logits OnnxModel::extend(std::span<const int64_t> ids) {
  return decoder_.read_on(ids, std::ssize(ids));
}

std::unique_ptr<OnnxModel> open_onnx_model(const ExportedModel& exported, const RunOptions& options,
                                           const Sink& sink) {
  return std::make_unique<OnnxModel>(Decoder::open(exported, options, {}, sink));
}

}  // namespace tranship::generation

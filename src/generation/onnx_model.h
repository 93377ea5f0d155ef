// A model that ONNX Runtime runs: the components prefill and decode of an artifact.
#pragma once

#include <memory>

#include "generation/causal_model.h"
#include "generation/decoder.h"
#include "tranship/exporters.h"
#include "tranship/sink.h"

namespace tranship::generation {

/// The cache stays where the runtime has it: what a step gives ("output.X", "X" of prefill) goes
/// into the next one ("input.X") as it is, or is written in place. Inputs besides the cache:
/// input_ids, and attention_mask and position_ids where there are any.
class OnnxModel : public CausalModel {
 public:
  explicit OnnxModel(Decoder decoder) : decoder_(std::move(decoder)) {}

  Logits prefill(const PromptBatch& batch) override;
  Logits decode(std::span<const int64_t> ids) override;
  Logits extend(std::span<const int64_t> ids) override;
  bool rewind(int64_t length) override { return decoder_.rewind(length); }
  void set_chunk_size(int64_t num_tokens) override { decoder_.set_chunk_size(num_tokens); }
  Room room() const override { return decoder_.room(); }
  Use use() const override { return decoder_.use(); }

  const Decoder& decoder() const { return decoder_; }

 private:
  Decoder decoder_;
};

/// Errors: those of Decoder::open.
std::unique_ptr<OnnxModel> open_onnx_model(const ExportedModel& exported, const RunOptions& options,
                                           const Sink& sink);

}  // namespace tranship::generation

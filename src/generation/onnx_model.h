// A model that ONNX Runtime runs: the components prefill and decode of an artifact.
#pragma once

#include <memory>

#include "generation/causal_model.h"
#include "tranship/exporters.h"
#include "tranship/sink.h"

namespace tranship::generation {

/// Opens prefill.onnx and decode.onnx of a loaded artifact. The cache stays where the runtime has
/// it: what a step gives ("output.X", "X" of prefill) goes into the next one ("input.X") as it is.
/// Inputs besides the cache: input_ids, and attention_mask and position_ids where there are any.
/// Errors: those of onnx::Session::open; unsupported for other inputs, a static cache among them,
/// or no logits; corrupt if a part of the cache goes in and does not come out.
std::unique_ptr<CausalModel> open_onnx_model(const ExportedModel& exported,
                                             const RunOptions& options, const Sink& sink);

}  // namespace tranship::generation

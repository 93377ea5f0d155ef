// A model whose decoder continues a text while it looks at what an encoder made of something else.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "generation/causal_model.h"
#include "tranship/exporters.h"
#include "tranship/sink.h"

namespace tranship::generation {

/// As a CausalModel it is its decoder: prompts are the decoder's.
class EncoderDecoderModel : public CausalModel {
 public:
  /// What the encoder takes: "input_ids", "attention_mask".
  virtual std::vector<std::string> encoder_input_names() const = 0;
  /// What the next prefills are about. The encoder runs once, at the first of them.
  virtual void set_encoder_inputs(NamedTensors inputs) = 0;
};

/// Loads the components encoder, prefill and decode of an artifact. Transformers' own exports have
/// no encoder: then its export, as model.get_encoder() gives it, is looked for in the folder
/// "encoder" inside. Errors: as open_onnx_model(); invalid_argument if there is no encoder.
std::unique_ptr<EncoderDecoderModel> open_onnx_encoder_decoder(const ExportedModel& exported,
                                                               const RunOptions& options,
                                                               const Sink& sink);

}  // namespace tranship::generation

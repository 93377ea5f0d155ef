// What a Generator holds.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exporters/ranges.h"
#include "generation/encoder_decoder_model.h"
#include "tranship/generation.h"

namespace tranship {

struct GeneratorImpl {
  std::filesystem::path directory;
  Sink sink;
  std::string config_json;
  std::string generation_config_json;
  std::unique_ptr<generation::CausalModel> model;
  exporters::Ranges ranges = {};  // of batch, sequence and past, where the export has some
  generation::EncoderDecoderModel* encoder_decoder = nullptr;  // the model, if it is one
  double load_seconds = 0;
  MemoryUse loaded = {};
  /// What the model's only row has read; empty if it has several, or an encoder.
  std::vector<int64_t> read_ids = {};
  std::optional<Tokenizer> tokenizer = {};
};

}  // namespace tranship

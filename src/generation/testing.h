// A model that says what a test wrote down, and the golden numbers. For *_test.cpp files only.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/json.h"
#include "generation/causal_model.h"

namespace tranship::generation {

using Ids = std::vector<int64_t>;

inline const std::filesystem::path kTests = std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests";

inline Json sampling_golden() {
  const std::filesystem::path path = kTests / "golden" / "sampling.json";
  return parse_json("test", path.string(), read_text(path));
}

/// Each row's most likely tokens are those of its script, one a step, then the last one again and
/// again. Remembers what it was asked.
class ScriptedModel : public CausalModel {
 public:
  ScriptedModel(std::vector<Ids> scripts, int64_t vocab_size)
      : scripts_(std::move(scripts)), vocab_size_(vocab_size) {}

  Logits prefill(const PromptBatch& batch) override {
    prompts = batch;
    steps.clear();
    extended.clear();
    return say();
  }
  /// Says its script from the beginning.
  Logits extend(std::span<const int64_t> ids) override {
    extended.assign(ids.begin(), ids.end());
    steps.clear();
    return say();
  }
  bool rewind(int64_t length) override {
    rewound = length;
    return can_rewind;
  }
  void set_chunk_size(int64_t num_tokens) override { chunk_size = num_tokens; }
  Room room() const override { return kept; }
  Use use() const override { return {}; }
  Logits decode(std::span<const int64_t> ids) override {
    steps.emplace_back(ids.begin(), ids.end());
    return say();
  }

  PromptBatch prompts;
  std::vector<Ids> steps;  // what decode() was given
  float unsaid = -1;       // the logit of all other tokens
  Ids extended;            // what extend() was given last
  int64_t rewound = -1;    // what rewind() was given last
  bool can_rewind = true;
  int64_t chunk_size = -1;
  Room kept = {};

 private:
  Logits say() {
    const auto vocab = static_cast<size_t>(vocab_size_);
    logits_.assign(scripts_.size() * vocab, unsaid);
    for (size_t row = 0; row < scripts_.size(); ++row) {
      const int64_t id = scripts_[row].at(std::min(steps.size(), scripts_[row].size() - 1));
      logits_[row * vocab + static_cast<size_t>(id)] = 5;
    }
    return {logits_, vocab_size_, vocab_size_};
  }

  std::vector<Ids> scripts_;
  int64_t vocab_size_;
  std::vector<float> logits_;
};

}  // namespace tranship::generation

// Small checkpoints on disk, what is said while they are exported, and how near two results are.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing.h"
#include "checkpoint/checkpoint_data.h"
#include "checkpoint/safetensors.h"
#include "tasks/task.h"
#include "tranship/exporters.h"

namespace tranship::anomalies {

inline constexpr std::string_view kLlama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64})";
inline constexpr std::string_view kBert =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64})";
inline constexpr std::string_view kMistral =
    R"({"model_type": "mistral", "architectures": ["MistralForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "sliding_window": 3})";

/// A copy of a configuration with some keys set: with(kLlama, {{"head_dim", "12"}}).
inline std::string with(std::string_view config,
                        const std::vector<std::pair<std::string, std::string>>& changes) {
  Config changed = Config::parse("config.json", config);
  for (const auto& [key, json] : changes) changed = changed.with(key, json);
  return changed.to_json();
}

/// The weights that a model of that configuration has, with hash weights.
inline NamedTensors weights_of(std::string_view config) {
  NamedTensors weights;
  const tasks::TaskProgram made = tasks::forward(Checkpoint::synthetic(config).data(), {});
  for (const auto& [name, source] : made.program.parameters)
    weights.emplace(name, read_all(*source));
  return weights;
}

/// Writes config.json and model.safetensors, and opens them.
inline Checkpoint write_checkpoint(const TestFolder& folder, std::string_view config,
                                   const NamedTensors& weights) {
  folder.write("config.json", config);
  write_safetensors(folder / "model.safetensors", weights);
  return Checkpoint::open(folder.path());
}
inline Checkpoint write_checkpoint(const TestFolder& folder, std::string_view config) {
  return write_checkpoint(folder, config, weights_of(config));
}

/// A copy in another dtype.
inline Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor out(dtype, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) out.set(i, tensor.at(i));
  return out;
}

/// Keeps warnings.
struct Warnings {
  std::vector<std::string> all;
  Sink sink() {
    return {.warning = [this](std::string_view text) { all.emplace_back(text); }, .progress = {}};
  }
};

inline Tensor ints(const std::vector<int64_t>& values, std::vector<int64_t> shape) {
  return Tensor::of(values, std::move(shape));
}

/// Elements [first, first + count) of a tensor, as numbers.
inline std::vector<double> slice(const Tensor& tensor, int64_t first, int64_t count) {
  std::vector<double> out;
  for (int64_t i = first; i < first + count; ++i) out.push_back(tensor.at(i));
  return out;
}

/// Within 4 eps sqrt(K) max|expected| (architecture.md 7); K: the longest sum of the tiny models.
inline void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  constexpr double kLongestSum = 64;
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0, worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(worst, 4 * std::numeric_limits<float>::epsilon() * std::sqrt(kLongestSum) * largest);
}

}  // namespace tranship::anomalies

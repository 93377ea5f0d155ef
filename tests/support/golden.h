// Golden logits: a configuration, inputs, and what Transformers computes (tests/golden/README.md).
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_data.h"
#include "tasks/task.h"
#include "tranship/tensor.h"

namespace tranship::testing {

/// An output as Transformers gave it; with `positions`, only these places along axis 1.
struct ExpectedOutput {
  std::vector<int64_t> shape;
  std::vector<int64_t> positions;
  std::vector<float> values;
};

struct GoldenCall {
  std::string component;  // "model", "encoder", "prefill", "decode"
  NamedTensors inputs;
  std::map<std::string, ExpectedOutput> outputs;
};

struct GoldenCase {
  std::string name;
  std::string config_json;
  std::string architecture;
  bool generation = false;
  std::vector<std::string> absent_tensors;
  std::map<std::string, std::vector<int64_t>> own_tensors;  // by name, with their shape
  /// forward: each run is one call. generation: an encoder if there is one, prefill, decode steps.
  std::vector<std::vector<GoldenCall>> runs;
  /// The longest sum in the model: what the tolerance grows with.
  int64_t longest_reduction = 1;
};

/// Names of all cases in tests/golden/logits, sorted.
std::vector<std::string> golden_cases();
GoldenCase read_golden(const std::string& name);

/// The case's checkpoint, with hash weights.
CheckpointData golden_checkpoint(const GoldenCase& golden);

/// How far `found` is from what is expected, in units of the tolerance 4 eps sqrt(K) max|expected|
/// (architecture.md 7).
double distance(const Tensor& found, const ExpectedOutput& expected, int64_t longest_reduction);

}  // namespace tranship::testing

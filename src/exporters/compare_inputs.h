// Inputs for a comparison: small, random, and the same everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tranship/exporters.h"

namespace tranship::exporters {

/// Sizes of what is open. What a graph has fixed stays so.
struct InputSizes {
  std::optional<int64_t> batch = {};  // 2 where nothing speaks against it
  int64_t sequence = 4;
  int64_t past = 3;
  uint64_t seed = 0;
};

/// What inputs are made for.
struct InputPlan {
  const std::string& component;
  const ExportedProgram& program;
  const std::string& config;  // config.json; empty if there is none
  /// Sizes of axes by name, where InputSizes says nothing.
  std::map<std::string, int64_t> fixed_sizes = {};
  /// Optional inputs that keep the model's default.
  std::set<std::string> defaults = {};
};

/// Inputs for all that a component takes: tokens and token types below what the configuration has
/// of them, caches in [-1, 1), one token of the last sequence masked, positions counted on.
NamedTensors make_inputs(const InputPlan& plan, const InputSizes& sizes);

/// A number of config.json; `absent` if there is none.
int64_t config_number(const std::string& config, const std::string& key, int64_t absent);

}  // namespace tranship::exporters

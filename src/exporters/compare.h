// What an artifact computes, beside what it should: its checkpoint's definition, or another
// artifact, on the same inputs.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exporters/compare_inputs.h"
#include "tranship/exporters.h"

namespace tranship::exporters {

/// What one call of a component gave.
struct Computed {
  NamedTensors outputs;
  /// What modules with weights gave, by their paths ("model.layers.0.mlp.up_proj"), in the order in
  /// which they run; empty unless they were asked for.
  std::vector<std::pair<std::string, Tensor>> modules = {};
};

/// One side of a comparison.
struct Side {
  std::function<Computed(const std::string& component, const NamedTensors& inputs)> run;
  DType dtype = DType::kF32;  // that it computes in
  int64_t longest_sum = 1;    // of its products with weights
  /// Axes that it can only run with one size of, by name ("batch": 1).
  std::map<std::string, int64_t> fixed_sizes = {};
  /// Optional inputs that it does not take, though others might.
  std::set<std::string> lacking_inputs = {};
};

/// An artifact on ONNX Runtime; numbers that go in are cast to what its graphs take. Modules come
/// from the same .onnx with more outputs, so they are those of the artifact itself; they are there
/// if its nodes have the names that tranship gives. The model is kept.
Side side_of(const ExportedModel& model, bool with_modules, const Sink& sink = {});

/// What an artifact of this checkpoint must compute: the definition in the interpreter, with the
/// options that the artifact's export.json recorded. Both are kept.
/// Errors: those of an export; corrupt for options that are none.
Side side_of(const Checkpoint& checkpoint, const ExportedModel& artifact, bool with_modules,
             const Sink& sink = {});

/// The largest difference of one output, or of what one module gave.
struct Difference {
  std::string component;
  std::string name;
  double largest_difference = 0;  // infinite for another shape, NaN, or what one side lacks
  double largest_reference = 0;
  double tolerance = 0;
  bool is_same() const { return largest_difference <= tolerance; }
};

struct Comparison {
  std::vector<Difference> outputs;
  std::vector<Difference> modules;  // that both sides have, in the order of `found`
};

/// Runs both sides on the same inputs, each component of `model`; optional inputs that one side
/// lacks have their default on the other. The tolerance is 4 eps sqrt(K) max|reference|
/// (tests/TOLERANCES.md), eps of the coarser dtype, K the reference's longest sum. Errors: what the
/// sides say.
Comparison compare(const ExportedModel& model, const Side& found, const Side& reference,
                   const InputSizes& sizes);

}  // namespace tranship::exporters

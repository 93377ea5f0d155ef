// What an artifact computes, beside what it should: its checkpoint's definition, or another
// artifact, on the same inputs.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
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
  /// What each component takes, its axes by the names that this side has for them.
  std::map<std::string, std::vector<Port>> inputs = {};
};

/// An artifact: on ONNX Runtime, or of .pt2 what is read from it in the interpreter; numbers that
/// go in are cast to what its graphs take. Modules come from the same file with more outputs, so
/// they are those of the artifact itself; of an .onnx they are there if its nodes have the names
/// that tranship gives. The model is kept. Errors: those of the format's reader.
Side side_of(const ExportedModel& model, bool with_modules, const Sink& sink = {});

/// What an artifact of this checkpoint must compute: the definition in the interpreter, with the
/// options that the artifact's export.json recorded. Both are kept.
/// Errors: those of an export; corrupt for options that are none.
Side side_of(const Checkpoint& checkpoint, const ExportedModel& artifact, bool with_modules,
             const Sink& sink = {});

/// The program that PyTorch captured and the artifact was exported from: a .pt2, as it is read, in
/// the interpreter. It is kept. Errors: those of the reader; unsupported for operators that nobody
/// has mapped.
Side side_of_capture(const std::filesystem::path& pt2, const ExportedModel& artifact,
                     bool with_modules);

/// The largest difference of one output, or of what one module gave.
struct Difference {
  std::string component;
  std::string name;
  /// Infinite for another shape, what one side lacks, and infinity or NaN on one side alone.
  double largest_difference = 0;
  double largest_reference = 0;  // of the finite ones
  double tolerance = 0;
  bool is_same() const { return largest_difference <= tolerance; }
};

struct Comparison {
  std::vector<Difference> outputs;
  std::vector<Difference> modules;  // that both sides have, in the order of `found`
};

/// Runs both sides on the same inputs, each component of `model`; optional inputs that one side
/// lacks have their default on the other. The tolerance is max|reference| times 4 eps sqrt(K L) in
/// f32, and more by 4 eps sqrt(16 L) in f16 and bf16 (tests/TOLERANCES.md): K the reference's
/// longest sum, L the layers. Errors: what the sides say.
Comparison compare(const ExportedModel& model, const Side& found, const Side& reference,
                   const InputSizes& sizes);

}  // namespace tranship::exporters

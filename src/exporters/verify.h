// Proof on demand: whether an artifact is as it was written, and whether it computes what another
// does.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tranship/exporters.h"

namespace tranship::exporters {

/// What is known of one file of an artifact.
struct FileVerdict {
  enum class Kind { kSame, kWrong, kUnknown };
  std::string file;
  Kind kind = Kind::kSame;
  std::string text;  // what is wrong, or why it is not known
};

/// Reads every file of an artifact and compares it with what export.json recorded. All faults are
/// found, not the first. Of an artifact that Transformers wrote, nothing is recorded: then it is
/// checked that files are there, can be read, and hold the weights that the graphs point to.
/// Errors: io without an export.json.
std::vector<FileVerdict> check_files(const std::filesystem::path& directory, const Sink& sink = {});

/// Runs a component: inputs -> outputs.
using Runner =
    std::function<NamedTensors(const std::string& component, const NamedTensors& inputs)>;

/// The largest difference of one output.
struct OutputVerdict {
  std::string component;
  std::string output;
  double largest_difference = 0;  // infinite for another shape, or NaN on one side
  double largest_reference = 0;
  double tolerance = 0;
  bool is_same() const { return largest_difference <= tolerance; }
};

struct Inputs {
  int64_t batch = 2;
  int64_t sequence = 4;
  int64_t past = 3;
  int64_t image_side = 64;  // of images of any height and width
  uint64_t seed = 0;
};

/// Small random inputs for all that a component takes, the second sequence padded (its second
/// token masked). Axes with a number have that size. Tokens are below `vocab_size`.
NamedTensors make_inputs(const std::string& component, const ExportedProgram& program,
                         int64_t vocab_size, const Inputs& inputs);

/// Runs both on the same inputs. The tolerance is 4 eps sqrt(K) max|reference|
/// (tests/TOLERANCES.md) of the dtype, K the longest sum.
std::vector<OutputVerdict> compare(const ExportedModel& model, const Runner& found,
                                   const Runner& reference, int64_t longest_sum,
                                   const Inputs& inputs);

/// What an artifact must compute: the definition of its checkpoint in the interpreter, exported
/// with the options that export.json recorded.
struct Reference {
  Runner runner;
  int64_t longest_sum = 1;
};
/// Errors: those of an export; corrupt for options that are none.
Reference reference_of(const ExportedModel& model, const Checkpoint& checkpoint,
                       const Sink& sink = {});

}  // namespace tranship::exporters

// What the exporters of all formats do: a checkpoint's definition gives graphs, the graphs get
// their shapes; and around the format's program, an artifact.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exporters/exported_model.h"
#include "exporters/shapes.h"
#include "formats/pt2/pt2_program.h"
#include "tasks/task.h"

namespace tranship::exporters {

enum class Task { kForward, kGeneration };

/// A model's graphs with their shapes, before any format's words.
struct Built {
  Task task = Task::kForward;
  DType dtype = DType::kF32;
  tasks::TaskProgram made;
  ShapePlan shapes;
  std::vector<pt2::Call> calls;  // one a component
};

/// dtype: of weights and activations. Errors: invalid_argument for another dtype than f32, f16 and
/// bf16; those of tasks, choose_graph_inputs and plan_shapes.
Built build(Task task, const Checkpoint& checkpoint, const NamedTensors& sample_inputs,
            const ExportOptions& options, DType dtype, const Sink& sink);

/// A format's program, as an artifact needs it.
struct ProgramFiles {
  std::string export_format;
  std::string suffix;               // of the file of a component: ".onnx"
  std::vector<ArtifactFile> files;  // without hashes
  std::function<size_t(const std::string& component)> num_nodes;
  SavePrograms save;
  bool refers_to_checkpoint = false;
};
/// A format's list of files as an artifact's.
template <class PlannedFile>
std::vector<ArtifactFile> artifact_files(const std::vector<PlannedFile>& files) {
  std::vector<ArtifactFile> out;
  for (const PlannedFile& file : files) out.push_back({file.name, file.size_bytes, file.hash});
  return out;
}

ExportedModel assemble(const Checkpoint& checkpoint, const Built& built,
                       const ExportOptions& options, ProgramFiles program);

}  // namespace tranship::exporters

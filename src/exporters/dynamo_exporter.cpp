// The story of an export to PyTorch: a checkpoint's definition gives graphs, the graphs get their
// shapes, ATen its words. No weight is read here; save_pretrained does that.
#include <algorithm>

#include "exporters/build.h"
#include "exporters/python_call.h"

namespace tranship {

using exporters::Task;

namespace {

/// What from_pretrained gives the weights: what the configuration says, else what they have.
/// Source: transformers/modeling_utils.py, dtype="auto" (5.23).
DType dtype_of(const CheckpointData& checkpoint) {
  for (const std::string_view key : {"dtype", "torch_dtype"}) {
    const std::optional<DType> dtype = find_dtype(checkpoint.config.text(key, ""));
    if (dtype && is_floating(*dtype)) return *dtype;
  }
  for (const auto& [name, source] : checkpoint.tensors) {
    if (is_floating(source->dtype())) return source->dtype();
  }
  return DType::kF32;
}

/// Python compares a static cache that it is given with the sample's, to the batch size: that is
/// one sequence, unless somebody said otherwise.
void expect_one_sequence(exporters::Built& built) {
  constexpr const char* kBatch = "batch";
  const bool is_static = std::ranges::any_of(
      built.made.signatures, [](const auto& signature) { return signature.max_cache_len > 0; });
  if (!is_static || built.shapes.sizes.contains(kBatch)) return;
  const auto range = built.shapes.ranges.find(kBatch);
  const int64_t least = range == built.shapes.ranges.end() ? 1 : range->second.min;
  built.shapes.examples[kBatch] = std::max<int64_t>(least, 1);
}

DType dtype_of(const DynamoConfig& config, const Checkpoint& checkpoint) {
  return config.dtype ? *config.dtype : dtype_of(checkpoint.data());
}

exporters::Part make_part(Task task, const Checkpoint& checkpoint,
                          const NamedTensors& sample_inputs, const DynamoConfig& config,
                          const GenerationOptions& generation, const Sink& sink) {
  const DType dtype = dtype_of(config, checkpoint);
  exporters::Built built =
      exporters::build(task, checkpoint, sample_inputs, config, generation, dtype, sink);
  expect_one_sequence(built);
  std::vector<pt2::PythonCall> calls;
  for (size_t i = 0; i < built.made.signatures.size(); ++i) {
    calls.push_back(exporters::call_of(built.made.signatures[i], built.made.program.components[i],
                                       built.shapes.examples));
  }
  const auto program = pt2::Pt2Program::lower(built.made.program, calls, built.shapes.examples);
  return exporters::assemble(
      checkpoint, built, config,
      exporters::program_files(DynamoExporter::kExportFormat, ".pt2", program));
}

}  // namespace

ExportedModel DynamoExporter::export_model(const Checkpoint& checkpoint,
                                           const NamedTensors& sample_inputs,
                                           const DynamoConfig& config, const Sink& sink) const {
  return exporters::finish(make_part(Task::kForward, checkpoint, sample_inputs, config, {}, sink));
}

ExportedModel DynamoExporter::export_for_generation(const Checkpoint& checkpoint,
                                                    const DynamoConfig& config,
                                                    const GenerationOptions& generation,
                                                    const Sink& sink) const {
  return exporters::finish(make_part(Task::kGeneration, checkpoint, {}, config, generation, sink));
}

ExportedModel DynamoExporter::export_for_generation(const Checkpoint& checkpoint,
                                                    const ConfigByComponent<DynamoConfig>& configs,
                                                    const GenerationOptions& generation,
                                                    const Sink& sink) const {
  return exporters::export_each(configs.by_name(), *this, checkpoint, generation,
                                [&](const DynamoConfig& config, const GenerationOptions& part) {
                                  return make_part(Task::kGeneration, checkpoint, {}, config, part,
                                                   sink);
                                });
}

std::vector<GenerationComponent> DynamoExporter::decompose_for_generation(
    const Checkpoint& checkpoint, const DynamoConfig& config,
    const GenerationOptions& generation) const {
  const exporters::Built built = exporters::build(Task::kGeneration, checkpoint, {}, config,
                                                  generation, dtype_of(config, checkpoint), {});
  return exporters::list_components(built.made.program);
}

}  // namespace tranship

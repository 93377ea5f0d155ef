// The story of an export to ONNX: a checkpoint's definition gives graphs, the graphs get their
// shapes, ONNX its words. No weight is read here; save_pretrained does that.
#include "base/error.h"
#include "exporters/build.h"
#include "formats/onnx/onnx_program.h"

namespace tranship {

using exporters::Task;

namespace {

/// Errors: for what no export here can do, before anything is done.
void check_config(const Checkpoint& checkpoint, const OnnxConfig& config) {
  if (config.ort_fusions) {
    fail(ErrorKind::kUnsupported,
         "[export] ort_fusions = '{}': fusions for ONNX Runtime are not built in yet; leave it "
         "out, and "
         "ONNX Runtime fuses what it can when it loads the graph",
         *config.ort_fusions);
  }
  if (config.weights != WeightsPlacement::kReference) return;
  if (!config.external_data) {
    fail(ErrorKind::kInvalidArgument,
         "[export] weights cannot both be inside the .onnx (external_data = false) and stay in the "
         "checkpoint (weights = reference)");
  }
  if (checkpoint.data().kind != CheckpointKind::kSafetensors) {
    fail(ErrorKind::kUnsupported,
         "[export] weights = reference needs a checkpoint in safetensors, for ONNX to point into");
  }
}

onnx::OnnxOptions onnx_options(const OnnxConfig& config) {
  onnx::OnnxOptions options;
  if (config.opset_version) options.opset_version = *config.opset_version;
  if (!config.external_data) options.weights = onnx::Weights::kInline;
  if (config.weights == WeightsPlacement::kReference) options.weights = onnx::Weights::kReference;
  return options;
}

ExportedModel export_task(Task task, const Checkpoint& checkpoint,
                          const NamedTensors& sample_inputs, const OnnxConfig& config,
                          const Sink& sink) {
  check_config(checkpoint, config);
  const DType dtype =
      config.dtype.value_or(DType::kF32);  // what ONNX Runtime's CPU has kernels for
  const exporters::Built built =
      exporters::build(task, checkpoint, sample_inputs, config, dtype, sink);
  const auto program = onnx::OnnxProgram::lower(built.made.program, onnx_options(config));
  exporters::ProgramFiles files = {
      .export_format = std::string(OnnxExporter::kExportFormat),
      .suffix = ".onnx",
      .files = exporters::artifact_files(program.files()),
      .num_nodes = [&](const std::string& component) { return program.num_nodes(component); },
      .save =
          [program](const auto& directory, const Sink& to) {
            return exporters::artifact_files(program.save(directory, to));
          },
      .refers_to_checkpoint = config.weights == WeightsPlacement::kReference};
  return exporters::assemble(checkpoint, built, config, std::move(files));
}

}  // namespace

ExportedModel OnnxExporter::export_model(const Checkpoint& checkpoint,
                                         const NamedTensors& sample_inputs,
                                         const OnnxConfig& config, const Sink& sink) const {
  return export_task(Task::kForward, checkpoint, sample_inputs, config, sink);
}

ExportedModel OnnxExporter::export_for_generation(const Checkpoint& checkpoint,
                                                  const OnnxConfig& config,
                                                  const Sink& sink) const {
  return export_task(Task::kGeneration, checkpoint, {}, config, sink);
}

}  // namespace tranship

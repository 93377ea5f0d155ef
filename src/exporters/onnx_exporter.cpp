// The story of an export to ONNX: a checkpoint's definition gives graphs, the graphs get their
// shapes, ONNX its words. No weight is read here; save_pretrained does that.
#include "base/error.h"
#include "exporters/build.h"
#include "exporters/ports.h"
#include "formats/onnx/onnx_program.h"

namespace tranship {

using exporters::Task;

namespace {

/// Errors: for what no export here can do, before anything is done.
void check_config(const Checkpoint& checkpoint, const OnnxConfig& config) {
  if (config.ort_fusions && !onnx::find_provider(*config.ort_fusions)) {
    fail(ErrorKind::kInvalidArgument, "[export] ort_fusions is '{}', expected {}",
         *config.ort_fusions, listed(onnx::provider_names()));
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

ExportedModel export_task(Task task, const Checkpoint& checkpoint,
                          const NamedTensors& sample_inputs, const OnnxConfig& config,
                          const GenerationOptions& generation, const Sink& sink) {
  check_config(checkpoint, config);
  const DType dtype =
      config.dtype.value_or(DType::kF32);  // what ONNX Runtime's CPU has kernels for
  if (dtype == DType::kBF16) {
    sink.warn(
        "[export] ONNX Runtime's CPU has next to no kernels for bf16: the artifact will not load "
        "there. f32 runs everywhere");
  }
  const exporters::Built built =
      exporters::build(task, checkpoint, sample_inputs, config, generation, dtype, sink);
  const auto program =
      onnx::OnnxProgram::lower(built.made.program, exporters::onnx_options(config));
  return exporters::assemble(
      checkpoint, built, config,
      exporters::program_files(OnnxExporter::kExportFormat, ".onnx", program),
      config.weights == WeightsPlacement::kReference);
}

}  // namespace

ExportedModel OnnxExporter::export_model(const Checkpoint& checkpoint,
                                         const NamedTensors& sample_inputs,
                                         const OnnxConfig& config, const Sink& sink) const {
  return export_task(Task::kForward, checkpoint, sample_inputs, config, {}, sink);
}

ExportedModel OnnxExporter::export_for_generation(const Checkpoint& checkpoint,
                                                  const OnnxConfig& config,
                                                  const GenerationOptions& generation,
                                                  const Sink& sink) const {
  return export_task(Task::kGeneration, checkpoint, {}, config, generation, sink);
}

}  // namespace tranship

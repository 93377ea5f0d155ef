// The story of an export to ONNX: a checkpoint's definition gives graphs, the graphs get their
// shapes, ONNX its words. No weight is read here; save_pretrained does that.
#include "base/error.h"
#include "exporters/build.h"
#include "exporters/genai_config.h"
#include "exporters/ports.h"
#include "formats/onnx/onnx_program.h"

namespace tranship {

using exporters::Task;

namespace {

/// Errors: for what no export here can do, before anything is done.
void check_config(const Checkpoint& checkpoint, const OnnxConfig& config) {
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

/// Errors: for what else there shall be beside the graphs, if it is not known or not of this task.
bool is_for_genai(Task task, const OnnxConfig& config) {
  for (const std::string& other : config.also) {
    if (other != "genai") {
      fail(ErrorKind::kInvalidArgument, "[export] also = '{}', expected genai", other);
    }
    if (task != Task::kGeneration) {
      fail(ErrorKind::kInvalidArgument,
           "[export] also = genai is for exports that generate: export_for_generation (--task "
           "generation)");
    }
  }
  return !config.also.empty();
}

/// By default, what ONNX Runtime's CPU has kernels for.
DType dtype_of(const OnnxConfig& config) { return config.dtype.value_or(DType::kF32); }

exporters::Part make_part(Task task, const Checkpoint& checkpoint,
                          const NamedTensors& sample_inputs, const OnnxConfig& config,
                          GenerationOptions generation, const Sink& sink) {
  check_config(checkpoint, config);
  const onnx::OnnxOptions options = exporters::onnx_options(config);
  const DType dtype = dtype_of(config);
  if (dtype == DType::kBF16) {
    sink.warn(
        "[export] ONNX Runtime's CPU has next to no kernels for bf16: the artifact will not load "
        "there. f32 runs everywhere");
  }
  const bool for_genai = is_for_genai(task, config);
  if (for_genai) generation.multi_token_decode = true;
  const exporters::Built built =
      exporters::build(task, checkpoint, sample_inputs, config, generation, dtype, sink);
  const auto program = onnx::OnnxProgram::lower(built.made.program, options);
  exporters::Part part =
      exporters::assemble(checkpoint, built, config,
                          exporters::program_files(OnnxExporter::kExportFormat, ".onnx", program));
  part.artifact.refers_to_checkpoint = config.weights == WeightsPlacement::kReference;
  if (for_genai) {
    part.artifact.small_files.texts.emplace(exporters::kGenaiConfigFile,
                                            exporters::genai_config(part.artifact, program));
  }
  return part;
}

}  // namespace

ExportedModel OnnxExporter::export_model(const Checkpoint& checkpoint,
                                         const NamedTensors& sample_inputs,
                                         const OnnxConfig& config, const Sink& sink) const {
  return exporters::finish(make_part(Task::kForward, checkpoint, sample_inputs, config, {}, sink));
}

ExportedModel OnnxExporter::export_for_generation(const Checkpoint& checkpoint,
                                                  const OnnxConfig& config,
                                                  const GenerationOptions& generation,
                                                  const Sink& sink) const {
  return exporters::finish(make_part(Task::kGeneration, checkpoint, {}, config, generation, sink));
}

ExportedModel OnnxExporter::export_for_generation(const Checkpoint& checkpoint,
                                                  const ConfigByComponent<OnnxConfig>& configs,
                                                  const GenerationOptions& generation,
                                                  const Sink& sink) const {
  return exporters::export_each(configs.by_name(), *this, checkpoint, generation,
                                [&](const OnnxConfig& config, const GenerationOptions& part) {
                                  return make_part(Task::kGeneration, checkpoint, {}, config, part,
                                                   sink);
                                });
}

std::vector<GenerationComponent> OnnxExporter::decompose_for_generation(
    const Checkpoint& checkpoint, const OnnxConfig& config,
    const GenerationOptions& generation) const {
  const exporters::Built built =
      exporters::build(Task::kGeneration, checkpoint, {}, config, generation, dtype_of(config), {});
  return exporters::list_components(built.made.program);
}

}  // namespace tranship

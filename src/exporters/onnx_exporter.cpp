// The story of an export to ONNX: a checkpoint's definition gives graphs, the graphs get their
// shapes, ONNX its words. No weight is read here; save_pretrained does that.
#include "base/error.h"
#include "exporters/exported_model.h"
#include "exporters/graph_inputs.h"
#include "exporters/metadata.h"
#include "exporters/ports.h"
#include "exporters/shapes.h"
#include "tasks/task.h"

namespace tranship {

using exporters::Artifact;
using exporters::ShapePlan;

namespace {

enum class Task { kForward, kGeneration };

/// Errors: for what no export here can do, before anything is done.
void check_config(const Checkpoint& checkpoint, const OnnxConfig& config) {
  if (config.ort_fusions) {
    fail(ErrorKind::kUnsupported,
         "[export] ort_fusions = '{}': fusions for ONNX Runtime are not built in yet; leave it "
         "out, and "
         "ONNX Runtime fuses what it can when it loads the graph",
         *config.ort_fusions);
  }
  if (config.dtype && *config.dtype != DType::kF32 && *config.dtype != DType::kF16 &&
      *config.dtype != DType::kBF16) {
    fail(ErrorKind::kInvalidArgument, "[export] dtype is {}, expected f32, f16 or bf16",
         name(*config.dtype));
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

void add_components(const tasks::TaskProgram& made, const ShapePlan& shapes, DType dtype,
                    const OnnxConfig& config, Artifact& artifact) {
  for (size_t i = 0; i < made.signatures.size(); ++i) {
    const ir::Component& component = made.program.components[i];
    ExportMetadata metadata = exporters::describe(
        made.signatures[i], *component.graph, made.architecture, dtype, config, shapes.examples);
    artifact.manifest.components.push_back({component.name, component.name + ".onnx", metadata});
    ExportedProgram program =
        exporters::describe_ports(*component.graph, artifact.program->num_nodes(component.name));
    artifact.ranges.emplace(component.name, exporters::ranges_of(metadata, program.inputs()));
    artifact.components.emplace_back(component.name,
                                     ExportedComponent{std::move(program), std::move(metadata)});
  }
  artifact.manifest.export_format = OnnxExporter::kExportFormat;
  for (const onnx::PlannedFile& file : artifact.program->files()) {
    artifact.manifest.files.push_back(
        {file.name, file.size_bytes, std::string(exporters::kNoHashYet)});
  }
  for (const onnx::PlannedFile& file : artifact.program->referred_files()) {
    artifact.manifest.referred_files.push_back(
        {file.name, file.size_bytes, std::string(exporters::kNoHashYet)});
  }
}

/// A graph that takes one length only is no use for text of any length.
void warn_of_fixed_lengths(const ShapePlan& shapes, const Sink& sink) {
  for (const auto& [axis, what] :
       {std::pair("sequence", "prefill takes prompts of exactly so many tokens"),
        std::pair("past", "decode takes exactly so many cached tokens")}) {
    const auto fixed = shapes.sizes.find(axis);
    if (fixed == shapes.sizes.end()) continue;
    sink.warn(fmt::format(
        "[export] '{}' is fixed at {}: {}, and `tranship generate` needs any number. Leave '{}' "
        "open to generate text (--dim gives it a range)",
        axis, fixed->second, what, axis));
  }
}

/// A model of text without a tokenizer is a result that people must know of.
void report_tokenizer(const CheckpointData& checkpoint, const ir::Program& program,
                      const Sink& sink) {
  if (checkpoint.kind == CheckpointKind::kSynthetic) return;
  for (const ir::Component& component : program.components) {
    for (const ir::Node* node : component.graph->inputs()) {
      if (!ir::as<ir::Input>(*node->op).name.ends_with("input_ids")) continue;
      const std::string problem = exporters::tokenizer_problem(checkpoint);
      if (!problem.empty()) sink.warn(problem);
      return;
    }
  }
}

ExportedModel export_task(Task task, const Checkpoint& checkpoint,
                          const NamedTensors& sample_inputs, const OnnxConfig& config,
                          const Sink& sink) {
  check_config(checkpoint, config);
  const DType dtype =
      config.dtype.value_or(DType::kF32);  // what ONNX Runtime's CPU has kernels for
  if (dtype == DType::kBF16) {
    sink.warn(
        "[export] ONNX Runtime's CPU has next to no kernels for bf16: the artifact will not load "
        "there. f32 runs everywhere");
  }
  const tasks::TaskOptions options = {
      .dtype = dtype,
      .architecture = config.architecture,
      .graph_inputs = exporters::choose_graph_inputs(checkpoint, sample_inputs, config),
      .cache_name = config.cache_name,
      .ignored_config_keys = config.ignored_config_keys};
  tasks::TaskProgram made = task == Task::kForward
                                ? tasks::forward(checkpoint.data(), options, sink)
                                : tasks::generation(checkpoint.data(), options, sink);
  report_tokenizer(checkpoint.data(), made.program, sink);
  const ShapePlan shapes = exporters::plan_shapes(made.program, sample_inputs, config);
  exporters::apply_shapes(shapes, made.program);
  if (task == Task::kGeneration) warn_of_fixed_lengths(shapes, sink);

  Artifact artifact;
  artifact.program = onnx::OnnxProgram::lower(made.program, exporters::onnx_options(config));
  artifact.refers_to_checkpoint = config.weights == WeightsPlacement::kReference;
  add_components(made, shapes, dtype, config, artifact);
  artifact.small_files = exporters::small_files_of(
      checkpoint.data(),
      exporters::exported_config(checkpoint.data().config, made.architecture, dtype),
      task == Task::kGeneration);
  artifact.manifest.small_files = exporters::list(artifact.small_files);
  for (ArtifactFile& file : artifact.manifest.small_files) file.hash = exporters::kNoHashYet;
  auto impl = std::make_shared<ExportedModel::Impl>();
  impl->artifact = std::make_shared<const Artifact>(std::move(artifact));
  return ExportedModel(std::move(impl));
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

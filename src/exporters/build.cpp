#include "exporters/build.h"

#include "base/error.h"
#include "exporters/graph_inputs.h"
#include "exporters/metadata.h"
#include "exporters/python_call.h"

namespace tranship::exporters {
namespace {

Port port(std::string name, const ir::Type& type) {
  Port out{std::move(name), type.dtype, {}};
  for (const ir::Dim& dim : type.shape.dims) out.shape.push_back(dim.text());
  return out;
}

ExportedProgram program_of(const ir::Graph& graph, size_t num_nodes) {
  std::vector<Port> inputs, outputs;
  for (const ir::Node* node : graph.inputs()) {
    inputs.push_back(port(ir::as<ir::Input>(*node->op).name, graph.type(node->outputs.front())));
  }
  for (const ir::Output& output : graph.outputs())
    outputs.push_back(port(output.name, graph.type(output.value)));
  return {std::move(inputs), std::move(outputs), num_nodes};
}

void check_dtype(DType dtype) {
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) return;
  fail(ErrorKind::kInvalidArgument, "[export] dtype is {}, expected f32, f16 or bf16", name(dtype));
}

}  // namespace

Built build(Task task, const Checkpoint& checkpoint, const NamedTensors& sample_inputs,
            const ExportOptions& options, DType dtype, const Sink& sink) {
  check_dtype(dtype);
  const tasks::TaskOptions task_options = {
      .dtype = dtype,
      .architecture = options.architecture,
      .graph_inputs = choose_graph_inputs(checkpoint, sample_inputs, options),
      .cache_name = options.cache_name,
      .ignored_config_keys = options.ignored_config_keys};
  Built built;
  built.task = task;
  built.dtype = dtype;
  built.made = task == Task::kForward ? tasks::forward(checkpoint.data(), task_options, sink)
                                      : tasks::generation(checkpoint.data(), task_options, sink);
  built.shapes = plan_shapes(built.made.program, sample_inputs, options);
  apply_shapes(built.shapes, built.made.program);
  for (size_t i = 0; i < built.made.signatures.size(); ++i)
    built.calls.push_back(call_of(built.made.signatures[i], built.made.program.components[i]));
  return built;
}

ExportedModel assemble(const Checkpoint& checkpoint, const Built& built,
                       const ExportOptions& options, ProgramFiles program) {
  Artifact artifact;
  const tasks::TaskProgram& made = built.made;
  for (size_t i = 0; i < built.calls.size(); ++i) {
    const ir::Component& component = made.program.components[i];
    ExportMetadata metadata = describe(built.calls[i], *component.graph, made.architecture,
                                       built.dtype, options, built.shapes.examples);
    artifact.manifest.components.push_back(
        {component.name, component.name + program.suffix, metadata});
    artifact.components.emplace_back(
        component.name,
        ExportedComponent{program_of(*component.graph, program.num_nodes(component.name)),
                          std::move(metadata)});
  }
  artifact.manifest.export_format = program.export_format;
  artifact.manifest.files = std::move(program.files);
  for (ArtifactFile& file : artifact.manifest.files) file.hash = kNoHashYet;
  artifact.save_programs = std::move(program.save);
  artifact.refers_to_checkpoint = program.refers_to_checkpoint;
  artifact.small_files = small_files_of(
      checkpoint.data(), exported_config(checkpoint.data().config, made.architecture, built.dtype),
      built.task == Task::kGeneration);
  artifact.manifest.small_files = list(artifact.small_files);
  for (ArtifactFile& file : artifact.manifest.small_files) file.hash = kNoHashYet;
  auto impl = std::make_shared<ExportedModel::Impl>();
  impl->artifact = std::make_shared<const Artifact>(std::move(artifact));
  return ExportedModel(std::move(impl));
}

}  // namespace tranship::exporters

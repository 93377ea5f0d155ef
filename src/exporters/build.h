// What exporters share: a checkpoint's definition gives graphs, the graphs get their shapes; and
// around a format's program, an artifact.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "exporters/export_options.h"
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
};

/// How many slots the cache has; nothing if it grows. Errors: invalid_argument for another
/// cache_implementation than dynamic and static, and for a length that is missing or not used.
std::optional<int64_t> cache_slots(const GenerationOptions& generation);

/// generation: of Task::kGeneration; its components alone are kept. dtype: of weights and
/// activations. Errors: invalid_argument for another dtype than f32, f16 and bf16, and unknown
/// components; those of cache_slots, tasks, choose_graph_inputs and plan_shapes.
Built build(Task task, const Checkpoint& checkpoint, const NamedTensors& sample_inputs,
            const ExportOptions& options, const GenerationOptions& generation, DType dtype,
            const Sink& sink);

/// A format's program, as an artifact needs it.
struct ProgramFiles {
  std::string export_format;
  std::string suffix;                        // of the file of a component: ".onnx"
  std::vector<ArtifactFile> files;           // without hashes
  std::vector<ArtifactFile> referred_files;  // the checkpoint's, that its weights stay in
  std::function<size_t(const std::string& component)> num_nodes;
  SavePrograms save;
};

template <class Program>
ProgramFiles program_files(std::string_view export_format, std::string_view suffix,
                           const Program& program) {
  const auto listed_files = [](const auto& planned) {
    std::vector<ArtifactFile> files;
    for (const auto& file : planned) files.push_back({file.name, file.size_bytes, file.hash});
    return files;
  };
  std::vector<ArtifactFile> referred;
  if constexpr (requires { program.referred_files(); })
    referred = listed_files(program.referred_files());
  return {.export_format = std::string(export_format),
          .suffix = std::string(suffix),
          .files = listed_files(program.files()),
          .referred_files = std::move(referred),
          .num_nodes = [program](const std::string& name) { return program.num_nodes(name); },
          .save = [program, listed_files](
                      const std::filesystem::path& directory,
                      const Sink& sink) { return listed_files(program.save(directory, sink)); }};
}

/// Adds a component with its metadata to an artifact.
void add_component(const ir::Component& component, ExportMetadata metadata,
                   const ProgramFiles& program, Artifact& artifact);
/// An artifact with its components and small files, to be finished with its program.
struct Part {
  Artifact artifact;
  ProgramFiles program;
};

/// The artifact with all its files, as a fresh export.
ExportedModel finish(Part part);

/// The artifact of a checkpoint's graphs.
Part assemble(const Checkpoint& checkpoint, const Built& built, const ExportOptions& options,
              ProgramFiles program);
/// One export of several, which are of one checkpoint and have other components each: these come in
/// the order of `names`, the small files from the first.
ExportedModel join(std::vector<Part> parts, const std::vector<std::string>& names);

/// The components of a program with the ports that they have now.
std::vector<GenerationComponent> list_components(const ir::Program& program);

/// Errors: invalid_argument unless `given` are `names`, each once: what is missing or too much.
void check_components(const std::vector<std::string>& given, const std::vector<std::string>& names);

/// What a configuration says, but that all axes stay open: for looking at the components.
template <class Config>
Config with_open_axes(Config config) {
  config.dynamic = true;
  config.static_shapes.clear();
  config.dynamic_shapes.clear();
  config.dims.clear();
  return config;
}

/// An export with a configuration for each component: make_part(config, generation) exports those
/// of one configuration together.
template <class Config, class Exporter, class MakePart>
ExportedModel export_each(const std::map<std::string, Config>& configs, const Exporter& exporter,
                          const Checkpoint& checkpoint, GenerationOptions generation,
                          MakePart make_part) {
  std::vector<std::string> given, names;
  for (const auto& [name, config] : configs) given.push_back(name);
  const Config any = with_open_axes(configs.empty() ? Config() : configs.begin()->second);
  for (const auto& component : exporter.decompose_for_generation(checkpoint, any, generation))
    names.push_back(component.name);
  check_components(given, names);
  std::map<std::string, std::vector<std::string>> groups;  // by what the configuration says
  for (const std::string& name : names) groups[configs.at(name).to_json()].push_back(name);
  std::vector<Part> parts;
  for (const auto& [text, group] : groups) {
    generation.components = group;
    parts.push_back(make_part(configs.at(group.front()), generation));
  }
  return join(std::move(parts), names);
}

}  // namespace tranship::exporters

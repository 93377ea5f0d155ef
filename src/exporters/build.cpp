#include "exporters/build.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "exporters/graph_inputs.h"
#include "exporters/metadata.h"
#include "exporters/ports.h"

namespace tranship::exporters {
namespace {

void check_dtype(DType dtype) {
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) return;
  fail(ErrorKind::kInvalidArgument, "[export] dtype is {}, expected f32, f16 or bf16", name(dtype));
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

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// The first names without the second.
std::vector<std::string> without(std::vector<std::string> names,
                                 const std::vector<std::string>& others) {
  std::erase_if(names, [&](const std::string& name) { return is_in(others, name); });
  return names;
}

/// Errors: invalid_argument for a name of no component, and for no name at all.
void keep_components(const std::vector<std::string>& wanted, tasks::TaskProgram& made) {
  std::vector<std::string> names;
  for (const ir::Component& component : made.program.components) names.push_back(component.name);
  const std::vector<std::string> unknown = without(wanted, names);
  if (!unknown.empty() || wanted.empty()) {
    fail(ErrorKind::kInvalidArgument, "[export] components {}: expected some of {}",
         unknown.empty() ? "are none" : listed(unknown), listed(names));
  }
  for (size_t i = names.size(); i-- > 0;) {
    if (is_in(wanted, names[i])) continue;
    const auto at = static_cast<ptrdiff_t>(i);
    made.program.components.erase(made.program.components.begin() + at);
    made.signatures.erase(made.signatures.begin() + at);
  }
}

/// A model of text without a tokenizer is a result that people must know of.
void report_tokenizer(const CheckpointData& checkpoint, const ir::Program& program,
                      const Sink& sink) {
  if (checkpoint.kind == CheckpointKind::kSynthetic) return;
  for (const ir::Component& component : program.components) {
    for (const ir::Node* node : component.graph->inputs()) {
      if (!ir::as<ir::Input>(*node->op).name.ends_with("input_ids")) continue;
      const std::string problem = tokenizer_problem(checkpoint);
      if (!problem.empty()) sink.warn(problem);
      return;
    }
  }
}

}  // namespace

std::optional<int64_t> cache_slots(const GenerationOptions& generation) {
  const std::string& kind = generation.cache_implementation;
  if (kind != "dynamic" && kind != "static") {
    fail(ErrorKind::kInvalidArgument,
         "[export] cache_implementation is '{}', expected 'dynamic' or 'static'", kind);
  }
  if (kind == "static" && !generation.max_cache_len) {
    fail(ErrorKind::kInvalidArgument,
         "[export] a static cache needs its length: max_cache_len (--max-cache-len), the most "
         "tokens of a sequence");
  }
  if (kind == "dynamic" && generation.max_cache_len) {
    fail(ErrorKind::kInvalidArgument,
         "[export] max_cache_len is {} and the cache is dynamic: it grows with each token. Did you "
         "mean cache_implementation = static?",
         *generation.max_cache_len);
  }
  return generation.max_cache_len;
}

Built build(Task task, const Checkpoint& checkpoint, const NamedTensors& sample_inputs,
            const ExportOptions& options, const GenerationOptions& generation, DType dtype,
            const Sink& sink) {
  check_dtype(dtype);
  const tasks::TaskOptions task_options = {
      .dtype = dtype,
      .architecture = options.architecture,
      .graph_inputs = choose_graph_inputs(checkpoint, sample_inputs, options),
      .cache_name = options.cache_name,
      .max_cache_len = cache_slots(generation),
      .multi_token_decode = generation.multi_token_decode,
      .last_token_logits = generation.last_token_logits,
      .ignored_config_keys = options.ignored_config_keys};
  Built built;
  built.task = task;
  built.dtype = dtype;
  built.made = task == Task::kForward ? tasks::forward(checkpoint.data(), task_options, sink)
                                      : tasks::generation(checkpoint.data(), task_options, sink);
  if (generation.components) keep_components(*generation.components, built.made);
  report_tokenizer(checkpoint.data(), built.made.program, sink);
  built.shapes = plan_shapes(built.made.program, sample_inputs, options, built.made.sizes);
  apply_shapes(built.shapes, built.made.program);
  if (task == Task::kGeneration) warn_of_fixed_lengths(built.shapes, sink);
  return built;
}

void add_component(const ir::Component& component, ExportMetadata metadata,
                   const ProgramFiles& program, Artifact& artifact) {
  artifact.manifest.components.push_back(
      {component.name, component.name + program.suffix, metadata});
  ExportedProgram ports = describe_ports(*component.graph, program.num_nodes(component.name));
  artifact.ranges.emplace(component.name, ranges_of(metadata, ports.inputs()));
  artifact.components.emplace_back(component.name,
                                   ExportedComponent{std::move(ports), std::move(metadata)});
}

ExportedModel finish(Part part) {
  auto& [artifact, program] = part;
  artifact.manifest.export_format = program.export_format;
  artifact.manifest.files = program.files;
  artifact.manifest.referred_files = program.referred_files;
  artifact.manifest.small_files = list(artifact.small_files);
  for (auto* files : {&artifact.manifest.files, &artifact.manifest.referred_files,
                      &artifact.manifest.small_files}) {
    for (ArtifactFile& file : *files) file.hash = kNoHashYet;
  }
  artifact.save_programs = program.save;
  auto impl = std::make_shared<ExportedModel::Impl>();
  impl->artifact = std::make_shared<const Artifact>(std::move(artifact));
  return ExportedModel(std::move(impl));
}

Part assemble(const Checkpoint& checkpoint, const Built& built, const ExportOptions& options,
              ProgramFiles program) {
  Artifact artifact;
  const tasks::TaskProgram& made = built.made;
  for (size_t i = 0; i < made.signatures.size(); ++i) {
    const ir::Component& component = made.program.components[i];
    add_component(component,
                  describe(made.signatures[i], component, made.architecture, built.dtype, options,
                           built.shapes.examples),
                  program, artifact);
  }
  artifact.small_files = small_files_of(
      checkpoint.data(), exported_config(checkpoint.data().config, made.architecture, built.dtype),
      built.task == Task::kGeneration);
  return {std::move(artifact), std::move(program)};
}

ExportedModel join(std::vector<Part> parts, const std::vector<std::string>& names) {
  Part whole = std::move(parts.front());
  std::vector<SavePrograms> saves = {whole.program.save};
  for (size_t i = 1; i < parts.size(); ++i) {
    Part& part = parts[i];
    std::ranges::move(part.artifact.components, std::back_inserter(whole.artifact.components));
    std::ranges::move(part.artifact.manifest.components,
                      std::back_inserter(whole.artifact.manifest.components));
    whole.artifact.ranges.merge(part.artifact.ranges);
    std::ranges::move(part.program.files, std::back_inserter(whole.program.files));
    for (ArtifactFile& file : part.program.referred_files) {
      if (std::ranges::find(whole.program.referred_files, file.name, &ArtifactFile::name) ==
          whole.program.referred_files.end())
        whole.program.referred_files.push_back(std::move(file));
    }
    saves.push_back(part.program.save);
    whole.artifact.refers_to_checkpoint |= part.artifact.refers_to_checkpoint;
    whole.artifact.small_files.texts.merge(part.artifact.small_files.texts);
  }
  const auto place = [&](const std::string& name) { return std::ranges::find(names, name); };
  std::ranges::sort(whole.artifact.components, {},
                    [&](const auto& component) { return place(component.first); });
  std::ranges::sort(whole.artifact.manifest.components, {},
                    [&](const auto& component) { return place(component.name); });
  whole.program.save = [saves](const std::filesystem::path& directory, const Sink& sink) {
    std::vector<ArtifactFile> files;
    for (const SavePrograms& save : saves)
      std::ranges::move(save(directory, sink), std::back_inserter(files));
    return files;
  };
  return finish(std::move(whole));
}

std::vector<GenerationComponent> list_components(const ir::Program& program) {
  std::vector<GenerationComponent> list;
  for (const ir::Component& component : program.components) {
    const ExportedProgram ports = describe_ports(*component.graph, 0);
    list.push_back({component.name, ports.inputs(), ports.outputs()});
  }
  return list;
}

void check_components(const std::vector<std::string>& given,
                      const std::vector<std::string>& names) {
  const std::vector<std::string> missing = without(names, given), unknown = without(given, names);
  if (missing.empty() && unknown.empty()) return;
  fail(ErrorKind::kInvalidArgument, "[export] the components are {}: {}{}{}", listed(names),
       missing.empty() ? "" : "there is no configuration for " + listed(missing),
       missing.empty() || unknown.empty() ? "" : ", and ",
       unknown.empty() ? "" : "there is no component " + listed(unknown));
}

}  // namespace tranship::exporters

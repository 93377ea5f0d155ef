// A side of a comparison: a program in the interpreter, be it a checkpoint's definition or a .pt2.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "exporters/compare_sides.h"
#include "exporters/exported_model.h"
#include "exporters/ports.h"
#include "formats/pt2/import.h"
#include "interpret/interpret.h"
#include "tasks/task.h"

namespace tranship::exporters {
namespace {

/// What stands before a module's path in the name of an output that is not the graph's own.
constexpr std::string_view kModule = "module:";

bool has_weight(const ir::Node& node) {
  switch (node.kind()) {
    case ir::OpKind::kLinear:
    case ir::OpKind::kEmbedding:
    case ir::OpKind::kRmsNorm:
    case ir::OpKind::kLayerNorm:
      return true;
    default:
      return false;
  }
}

/// The module that a node computes: what the graph says, else whose weight it takes. Empty if it is
/// none with a weight.
std::string module_of(const ir::Graph& graph, const ir::Node& node) {
  if (!has_weight(node)) return {};
  if (!node.name.empty()) return node.name;
  constexpr std::string_view kWeight = ".weight";
  for (const ir::ValueId input : node.inputs) {
    const ir::Node& from = graph.producer(input);
    if (from.kind() != ir::OpKind::kParam) continue;
    const std::string& name = ir::as<ir::Param>(*from.op).name;
    if (name.ends_with(kWeight)) return name.substr(0, name.size() - kWeight.size());
  }
  return {};
}

void add_module_outputs(ir::Graph& graph) {
  std::set<std::string> seen;
  for (const ir::Node& node : graph.nodes()) {
    const std::string module = module_of(graph, node);
    if (!module.empty() && seen.insert(module).second)
      graph.add_output(std::string(kModule) + module, graph.value(node.outputs.front()));
  }
}

/// The longest sum: the widest row of a matrix, or of a convolution's window.
int64_t longest_sum_of(const ir::Program& program) {
  int64_t longest = 1;
  for (const auto& [name, source] : program.parameters) {
    if (source->shape().size() >= 2) longest = std::max(longest, source->shape().back());
  }
  for (const ir::Component& component : program.components) {
    for (const ir::Node& node : component.graph->nodes()) {
      if (node.kind() != ir::OpKind::kConv) continue;
      const std::vector<int64_t> window = component.graph->type(node.inputs[1]).shape.sizes();
      longest = std::max(longest, std::accumulate(window.begin() + 1, window.end(), int64_t{1},
                                                  std::multiplies<>()));
    }
  }
  return longest;
}

std::map<std::string, int64_t> fixed_sizes_of(const ir::Program& program) {
  std::map<std::string, int64_t> sizes;
  for (const ir::Component& component : program.components) {
    for (const ir::Assumption& a : component.graph->assumptions()) {
      if (a.a.as_symbol() && a.b.is_static()) sizes.emplace(*a.a.as_symbol(), a.b.value());
      if (a.b.as_symbol() && a.a.is_static()) sizes.emplace(*a.b.as_symbol(), a.a.value());
    }
  }
  return sizes;
}

/// The slots of a static cache that the export makes; nothing if its cache grows.
std::optional<int64_t> slots_of(const ExportedModel& artifact) {
  const auto counts = [](const Port& port) { return port.name.ends_with(kCounter); };
  for (const auto& [name, part] : artifact.components()) {
    if (std::ranges::none_of(part.program.outputs(), counts)) continue;
    for (const Port& port : part.program.outputs()) {
      const bool is_buffer = port.name.ends_with(".keys") && port.shape.size() == 4 &&
                             port.name.find(kCrossCache) == std::string::npos;
      if (is_buffer && fixed_size(port.shape[2])) return fixed_size(port.shape[2]);
    }
  }
  return std::nullopt;
}

/// Whether decode takes any number of tokens.
bool decodes_many(const ExportedModel& artifact) {
  for (const auto& [name, part] : artifact.components()) {
    if (name != "decode") continue;
    for (const Port& port : part.program.inputs()) {
      if (port.name == "input_ids" || port.name == "decoder_input_ids") return port.shape[1] != "1";
    }
  }
  return false;
}

bool keeps_last_logits(const ExportedModel& artifact) {
  const auto& components = artifact.components();
  return std::ranges::any_of(components, [](const auto& component) {
    return component.second.metadata.logits_to_keep == 1;
  });
}

struct RecordedNames {
  std::string cache_name;
  std::vector<std::string> ignored_config_keys;
};

/// What a definition needs of the configuration of an export. Other exporters have configurations
/// of their own, with nothing that it would need.
RecordedNames recorded_names(const ExportedModel& artifact) {
  const auto names = [](const auto& config) {
    return RecordedNames{config.cache_name, config.ignored_config_keys};
  };
  const ExportMetadata& metadata = artifact.components().front().second.metadata;
  if (!metadata.packages.contains("tranship")) return names(OnnxConfig{});
  if (artifact.export_format() == DynamoExporter::kExportFormat)
    return names(DynamoConfig::from_json(metadata.export_config));
  return names(OnnxConfig::from_json(metadata.export_config));
}

/// The options of the export, from what it recorded and from the graph that it made. Other
/// exporters have options of their own, and none that a definition would need.
tasks::TaskOptions options_of(const ExportedModel& artifact) {
  const ExportedComponent& component = artifact.components().front().second;
  const auto [cache_name, ignored_config_keys] = recorded_names(artifact);
  std::set<std::string> taken;
  for (const auto& [name, part] : artifact.components()) {
    for (const Port& port : part.program.inputs()) {
      if (optional_inputs().contains(port.name)) taken.insert(port.name);
    }
  }
  return {.dtype = dtype_of(artifact),
          .architecture = component.metadata.architecture,
          .graph_inputs = std::vector<std::string>(taken.begin(), taken.end()),
          .cache_name = cache_name,
          .max_cache_len = slots_of(artifact),
          .multi_token_decode = decodes_many(artifact),
          .last_token_logits = keeps_last_logits(artifact),
          .ignored_config_keys = ignored_config_keys};
}

Computed interpreted(const ir::Program& program, const ir::Component& component,
                     const NamedTensors& inputs) {
  Computed computed;
  NamedTensors all = interpret(program, component.name, inputs);
  for (const ir::Output& output : component.graph->outputs()) {
    Tensor& value = all.at(output.name);
    if (output.name.starts_with(kModule)) {
      computed.modules.emplace_back(output.name.substr(kModule.size()), std::move(value));
    } else {
      computed.outputs.emplace(output.name, std::move(value));
    }
  }
  return computed;
}

Computed interpreted(const std::vector<ir::Program>& programs, const std::string& name,
                     const NamedTensors& inputs) {
  for (const ir::Program& program : programs) {
    const auto found = std::ranges::find(program.components, name, &ir::Component::name);
    if (found != program.components.end()) return interpreted(program, *found, inputs);
  }
  fail(ErrorKind::kInvalidArgument, "[verify] the reference has no component '{}'", name);
}

std::vector<ir::Program> alone(ir::Program program) {
  std::vector<ir::Program> programs;
  programs.push_back(std::move(program));
  return programs;
}

}  // namespace

ir::Program read_pt2(const std::filesystem::path& file, const std::string& component) {
  pt2::ImportedProgram imported = pt2::import_mapped(file);
  imported.program.components.front().name = component;
  return std::move(imported.program);
}

Side side_of(std::vector<ir::Program> programs, DType dtype, bool with_modules) {
  Side side{.run = {}, .dtype = dtype};
  for (const ir::Program& program : programs) {
    side.longest_sum = std::max(side.longest_sum, longest_sum_of(program));
    side.fixed_sizes.merge(fixed_sizes_of(program));
    for (const ir::Component& component : program.components) {
      side.inputs[component.name] = describe_ports(*component.graph, 0).inputs();
      if (with_modules) add_module_outputs(*component.graph);
    }
  }
  const auto kept = std::make_shared<const std::vector<ir::Program>>(std::move(programs));
  side.run = [kept](const std::string& component, const NamedTensors& inputs) {
    return interpreted(*kept, component, inputs);
  };
  return side;
}

Side side_of(const Checkpoint& checkpoint, const ExportedModel& artifact, bool with_modules,
             const Sink& sink) {
  const tasks::TaskOptions options = options_of(artifact);
  const bool is_forward =
      artifact.components().size() == 1 && artifact.components().front().first == "model";
  tasks::TaskProgram made = is_forward ? tasks::forward(checkpoint.data(), options, sink)
                                       : tasks::generation(checkpoint.data(), options, sink);
  return side_of(alone(std::move(made.program)), options.dtype, with_modules);
}

Side side_of_capture(const std::filesystem::path& pt2, const ExportedModel& artifact,
                     bool with_modules) {
  const std::string& component = artifact.components().front().first;
  return side_of(alone(read_pt2(pt2, component)), dtype_of(artifact), with_modules);
}

}  // namespace tranship::exporters

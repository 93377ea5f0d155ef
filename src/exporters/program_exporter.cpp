// The universal way in: a program that PyTorch captured, raised to our composites and exported.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "exporters/build.h"
#include "exporters/ports.h"
#include "exporters/small_files.h"
#include "formats/pt2/import.h"
#include "passes/recognize/recognize.h"
#include "tranship/version.h"

namespace tranship {

using exporters::Artifact;
using exporters::Manifest;

namespace {

namespace fs = std::filesystem;

/// Options that would change what was captured, those of any format.
template <class Config>
std::vector<std::string> decided_options(const Config& config) {
  std::vector<std::string> decided;
  if (!config.dynamic_shapes.empty()) decided.emplace_back("dynamic_shapes");
  if (!config.static_shapes.empty()) decided.emplace_back("static_shapes");
  if (!config.dims.empty()) decided.emplace_back("dims");
  if (config.dtype) decided.emplace_back("dtype");
  if (!config.architecture.empty()) decided.emplace_back("architecture");
  if (config.graph_inputs) decided.emplace_back("graph_inputs");
  return decided;
}

void refuse(const std::vector<std::string>& decided) {
  if (decided.empty()) return;
  fail(ErrorKind::kInvalidArgument,
       "[export] a .pt2 has been captured already: {} would have to be decided at its capture",
       listed(decided));
}

/// export.json's metadata if Transformers exported the file: names of classes and arguments.
std::optional<ExportMetadata> recorded_metadata(const fs::path& pt2, const Sink& sink) {
  const fs::path path = pt2.parent_path() / exporters::kManifestFile;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  const Manifest manifest = exporters::read_manifest(path.string(), read_text(path), sink);
  for (const Manifest::Component& component : manifest.components) {
    if (component.file == pt2.filename()) return component.metadata;
  }
  return std::nullopt;
}

DType dtype_of(const ir::Program& program) {
  for (const auto& [name, source] : program.parameters) {
    if (is_floating(source->dtype())) return source->dtype();
  }
  return DType::kF32;
}

using Sizes = std::map<std::string, int64_t>;

/// The shape as it was in the sample; an axis that the file says nothing of by its name.
Json describe_input(const ir::Graph& graph, const ir::Node& node, const Sizes& sample) {
  const ir::Type& type = graph.type(node.outputs.front());
  Json shape = Json::array();
  for (const ir::Dim& dim : type.shape.dims) {
    const std::set<std::string> symbols = dim.symbols();
    const bool known = std::ranges::all_of(
        symbols, [&](const std::string& symbol) { return sample.contains(symbol); });
    shape.push_back(known ? Json(dim.evaluate(sample)) : Json(dim.text()));
  }
  return {{"rank", type.shape.rank()},
          {"shape", std::move(shape)},
          {"dtype", std::string(torch_name(type.dtype))}};
}

/// The arguments: a tensor by itself, what is nested by its leaves.
Json describe_arguments(const ir::Graph& graph, const Sizes& sample) {
  Json kwargs = Json::object();
  constexpr std::string_view kInput = "input.";
  for (const ir::Node* node : graph.inputs()) {
    std::string name = ir::as<ir::Input>(*node->op).name;
    if (name.starts_with(kInput)) name = name.substr(kInput.size());
    const size_t dot = name.find('.');
    Json input = describe_input(graph, *node, sample);
    if (dot == std::string::npos) {
      kwargs[name] = std::move(input);
    } else {
      kwargs[name.substr(0, dot)]["leaves"][name.substr(dot + 1)] = std::move(input);
    }
  }
  return kwargs;
}

/// recorded: what Transformers said of the file, if it did.
ExportMetadata describe(const pt2::ImportedProgram& imported, const fs::path& pt2,
                        const std::optional<ExportMetadata>& recorded, const std::string& config) {
  const ir::Graph& graph = *imported.program.components.front().graph;
  ExportMetadata metadata;
  if (recorded) {
    metadata = *recorded;
  } else {
    metadata.architecture =
        imported.module_class.empty() ? pt2.stem().string() : imported.module_class;
    metadata.export_dtype = torch_name(dtype_of(imported.program));
    metadata.export_device = "cpu";
    metadata.kwargs = to_python_json_line(describe_arguments(graph, imported.example_sizes));
    Json constants = Json::object();
    for (const pt2::ConstantLeaf& leaf : imported.input_constants)
      constants[leaf.name] = parse_json("pt2", "a constant", leaf.json);
    metadata.in_constants = to_python_json_line(constants);
  }
  Json constants = Json::array();
  for (const pt2::ConstantLeaf& leaf : imported.output_constants)
    constants.push_back({leaf.index, parse_json("pt2", "a constant", leaf.json)});
  metadata.out_constants = to_python_json_line(constants);
  metadata.in_spec = imported.in_spec;
  metadata.out_spec = imported.out_spec;
  metadata.packages["tranship"] = std::string(version());
  metadata.export_config = config;
  return metadata;
}

pt2::ImportedProgram read_program(const fs::path& pt2) {
  pt2::ImportedProgram imported = pt2::import_mapped(pt2);
  for (ir::Component& component : imported.program.components) passes::recognize(component.graph);
  return imported;
}

ExportedModel assemble(const pt2::ImportedProgram& imported, const fs::path& pt2,
                       const std::string& config, const exporters::ProgramFiles& program,
                       const Sink& sink) {
  const std::optional<ExportMetadata> recorded = recorded_metadata(pt2, sink);
  Artifact artifact;
  exporters::add_component(imported.program.components.front(),
                           describe(imported, pt2, recorded, config), program, artifact);
  if (recorded) {
    artifact.small_files =
        exporters::small_files_in(pt2.has_parent_path() ? pt2.parent_path() : fs::path("."));
    artifact.small_files.home.clear();
  }
  return exporters::finish({std::move(artifact), program});
}

/// What a call in Python cannot say. An argument that the program writes is a buffer of slots.
void check_call(pt2::ImportedProgram& imported, const std::string& file) {
  if (imported.in_spec.empty() || imported.out_spec.empty()) {
    fail(ErrorKind::kUnsupported,
         "[export] '{}' does not say how it is called: save it again with torch.export.save", file);
  }
  if (!imported.sizes.empty()) {
    fail(ErrorKind::kUnsupported,
         "[export] '{}': {} are no tensors but numbers that each call may change, which an export "
         "to dynamo cannot have",
         file, listed(imported.sizes));
  }
  ir::Component& component = imported.program.components.front();
  const auto is_leaf = [](const std::vector<pt2::Leaf>& leaves, const std::string& port) {
    return std::ranges::find(leaves, port, &pt2::Leaf::port) != leaves.end();
  };
  std::vector<std::string> buffers;
  for (const ir::Node* node : component.graph->inputs()) {
    const std::string& name = ir::as<ir::Input>(*node->op).name;
    if (!is_leaf(imported.inputs, name)) buffers.push_back(name);
  }
  if (!buffers.empty()) {
    fail(ErrorKind::kUnsupported,
         "[export] '{}' changes its own buffers {}, which an export to dynamo cannot have", file,
         listed(buffers));
  }
  for (ir::State& state : component.states) {
    if (!is_leaf(imported.outputs, state.output)) state.kind = ir::State::Kind::kSlots;
  }
}

/// A size for each symbol of the inputs: the sample's where the file says it.
Sizes example_sizes(const pt2::ImportedProgram& imported) {
  const ir::Graph& graph = *imported.program.components.front().graph;
  Sizes sizes = imported.example_sizes;
  for (const auto& [symbol, range] : graph.symbols())
    sizes.emplace(symbol, std::min(std::max<int64_t>(range.min, 2), range.max.value_or(2)));
  return sizes;
}

}  // namespace

ExportedModel OnnxExporter::export_program(const fs::path& pt2, const OnnxConfig& config,
                                           const Sink& sink) const {
  std::vector<std::string> decided = decided_options(config);
  if (config.weights == WeightsPlacement::kReference) decided.emplace_back("weights");
  if (!config.also.empty()) decided.emplace_back("also");
  refuse(decided);
  const onnx::OnnxOptions options = exporters::onnx_options(config);
  const pt2::ImportedProgram imported = read_program(pt2);
  const auto program = onnx::OnnxProgram::lower(imported.program, options);
  return assemble(imported, pt2, config.to_json(),
                  exporters::program_files(kExportFormat, ".onnx", program), sink);
}

ExportedModel DynamoExporter::export_program(const fs::path& pt2, const DynamoConfig& config,
                                             const Sink& sink) const {
  refuse(decided_options(config));
  pt2::ImportedProgram imported = read_program(pt2);
  check_call(imported, pt2.string());
  const pt2::RecordedCall call = {.in_spec = imported.in_spec,
                                  .out_spec = imported.out_spec,
                                  .argument_names = imported.argument_names,
                                  .inputs = imported.inputs,
                                  .outputs = imported.outputs,
                                  .sample_inputs = imported.sample_inputs};
  const auto program =
      pt2::Pt2Program::lower(imported.program, std::vector{call}, example_sizes(imported));
  return assemble(imported, pt2, config.to_json(),
                  exporters::program_files(kExportFormat, ".pt2", program), sink);
}

}  // namespace tranship

// What a .pt2 holds, as JSON: what PyTorch captured, and what cannot be exported of it.
#include "base/json.h"
#include "cli/format.h"
#include "cli/inspect.h"
#include "formats/pt2/import.h"
#include "passes/recognize/recognize.h"

namespace tranship::cli {
namespace {

Json port_entry(const std::string& name, const ir::Type& type) {
  Json entry;
  entry["name"] = printable(name);
  entry["dtype"] = std::string(tranship::name(type.dtype));
  entry["shape"] = Json::array();
  for (const ir::Dim& dim : type.shape.dims)
    entry["shape"].push_back(dim.is_static() ? Json(dim.value()) : Json(dim.text()));
  return entry;
}

Json weight_entries(const ir::Program& program) {
  Json out = Json::array();
  for (const auto& [name, source] : program.parameters) {
    Json entry;
    entry["name"] = printable(name);
    entry["dtype"] = std::string(tranship::name(source->dtype()));
    entry["shape"] = source->shape();
    entry["bytes"] = source->size_bytes();
    out.push_back(std::move(entry));
  }
  return out;
}

Json operator_counts(const std::vector<pt2::Node>& nodes) {
  std::map<std::string, size_t> counts;
  for (const pt2::Node& node : nodes) ++counts[node.target];
  Json out = Json::object();
  constexpr std::string_view kPrefix = "torch.ops.";
  for (const auto& [target, count] : counts) {
    const bool plain = target.starts_with(kPrefix);
    out[printable(plain ? target.substr(kPrefix.size()) : target)] = count;
  }
  return out;
}

}  // namespace

ir::Program open_program(const std::filesystem::path& path) {
  ir::Program program = pt2::import_program(pt2::open_archive(path), path.string()).program;
  for (ir::Component& component : program.components) passes::recognize(component.graph);
  return program;
}

namespace {

void add_imported(const pt2::Archive& archive, const pt2::ImportedProgram& imported, Json& report) {
  const ir::Graph& graph = *imported.program.components.front().graph;
  report["torch_version"] = printable(archive.program.torch_version);
  report["nodes"] = archive.program.graph.nodes.size();
  report["operators"] = operator_counts(archive.program.graph.nodes);
  report["inputs"] = Json::array();
  report["outputs"] = Json::array();
  for (const ir::Node* node : graph.inputs()) {
    report["inputs"].push_back(
        port_entry(ir::as<ir::Input>(*node->op).name, graph.type(node->outputs.front())));
  }
  for (const ir::Output& output : graph.outputs())
    report["outputs"].push_back(port_entry(output.name, graph.type(output.value)));
  report["weights"] = weight_entries(imported.program);
  report["unmapped"] = Json::array();
  for (const pt2::Unmapped& unmapped : imported.unmapped) {
    report["unmapped"].push_back({{"what", printable(unmapped.what)},
                                  {"count", unmapped.count},
                                  {"where", printable(unmapped.where)}});
  }
}

}  // namespace

void add_program(const std::filesystem::path& file, Json& report) {
  const pt2::Archive archive = pt2::open_archive(file);
  add_imported(archive, pt2::import_program(archive, file.string()), report);
}

Json report_program(const std::filesystem::path& path) {
  const pt2::Archive archive = pt2::open_archive(path);
  const pt2::ImportedProgram imported = pt2::import_program(archive, path.string());
  Json report;
  report["kind"] = "pt2";
  report["path"] = printable(path.string());
  report["architecture"] = printable(imported.module_class);
  add_imported(archive, imported, report);
  return report;
}

}  // namespace tranship::cli

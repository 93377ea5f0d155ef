#include "exporters/program_summary.h"

#include "base/error.h"
#include "exporters/ports.h"
#include "formats/onnx/model_summary.h"
#include "formats/pt2/import.h"

namespace tranship::exporters {
namespace {

std::vector<Port> ports_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<Port> ports;
  for (const onnx::ValueInfo& value : values) {
    Port port{value.name, value.dtype, {}};
    for (size_t i = 0; i < value.shape.size(); ++i) {
      const std::string& name = value.dim_names[i];
      port.shape.push_back(value.shape[i] >= 0 ? std::to_string(value.shape[i])
                           : name.empty()      ? "?"
                                               : name);
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace

void check_format(std::string_view export_format, const std::filesystem::path& where) {
  if (export_format == OnnxExporter::kExportFormat ||
      export_format == DynamoExporter::kExportFormat)
    return;
  fail(ErrorKind::kUnsupported,
       "[load] '{}' is an export to '{}'; this tranship reads exports to 'onnx' and 'dynamo'",
       where.string(), export_format);
}

ProgramSummary summarize_program(std::string_view export_format,
                                 const std::filesystem::path& file) {
  if (export_format == OnnxExporter::kExportFormat) {
    const onnx::ModelSummary summary = onnx::read_summary(file);
    ProgramSummary out{{ports_of(summary.inputs), ports_of(summary.outputs), summary.num_nodes},
                       {},
                       summary.in_place};
    for (const std::string& name : summary.data_files) out.data_files.emplace(name, 0);
    for (const onnx::WeightInfo& weight : summary.weights) {
      if (!weight.data_file.empty()) out.data_files[weight.data_file] += weight.size_bytes;
    }
    return out;
  }
  const pt2::Archive archive = pt2::open_archive(file);
  const pt2::ImportedProgram imported = pt2::import_program(archive, file.string());
  return {describe_ports(*imported.program.components.front().graph,
                         archive.program.graph.nodes.size()),
          {}};
}

}  // namespace tranship::exporters

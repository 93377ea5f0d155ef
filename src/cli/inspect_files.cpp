// What an artifact, an .onnx file or a .safetensors file holds, as JSON.
#include <algorithm>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "cli/format.h"
#include "cli/inspect.h"
#include "exporters/export_json.h"
#include "formats/onnx/model_summary.h"

namespace tranship::cli {
namespace {

Json port_entries(const std::vector<onnx::ValueInfo>& values) {
  Json out = Json::array();
  for (const onnx::ValueInfo& value : values) {
    Json entry;
    entry["name"] = printable(value.name);
    entry["dtype"] = std::string(name(value.dtype));
    entry["shape"] = Json::array();
    for (size_t i = 0; i < value.shape.size(); ++i) {
      if (value.shape[i] >= 0) {
        entry["shape"].push_back(value.shape[i]);
      } else {
        entry["shape"].push_back(value.dim_names[i].empty() ? "?" : printable(value.dim_names[i]));
      }
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Json weight_entries(const onnx::ModelSummary& summary) {
  Json out = Json::array();
  for (const onnx::WeightInfo& weight : summary.weights) {
    Json entry;
    entry["name"] = printable(weight.name);
    entry["dtype"] = weight.dtype;
    entry["shape"] = weight.shape;
    entry["bytes"] = weight.size_bytes;
    entry["file"] = printable(weight.data_file);
    out.push_back(std::move(entry));
  }
  return out;
}

/// Only what lies in the model's own folder is looked for: the name is whatever a stranger wrote.
Json data_file_entries(const onnx::ModelSummary& summary, const std::filesystem::path& folder) {
  Json out = Json::array();
  for (const std::string& file : summary.data_files) {
    Json entry;
    entry["name"] = printable(file);
    const bool is_name = !file.empty() && file != "." && file != ".." &&
                         file.find_first_of(std::string_view("/\0", 2)) == file.npos;
    std::error_code error;
    const auto size = is_name ? std::filesystem::file_size(folder / file, error) : 0;
    entry["present"] = is_name && !error;
    entry["bytes"] = error ? 0 : size;
    out.push_back(std::move(entry));
  }
  return out;
}

void add_summary(const onnx::ModelSummary& summary, const std::filesystem::path& folder,
                 Json& report) {
  report["ir_version"] = summary.ir_version;
  report["producer"] = printable(summary.producer);
  report["opsets"] = Json::object();
  for (const auto& [domain, version] : summary.opsets)
    report["opsets"][domain.empty() ? "ai.onnx" : printable(domain)] = version;
  report["nodes"] = summary.num_nodes;
  report["operators"] = Json::object();
  for (const auto& [op, count] : summary.operators) report["operators"][printable(op)] = count;
  report["inputs"] = port_entries(summary.inputs);
  report["outputs"] = port_entries(summary.outputs);
  report["weights"] = weight_entries(summary);
  report["data_files"] = data_file_entries(summary, folder);
}

Json files_of(const std::filesystem::path& directory) {
  Json out = Json::array();
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    Json entry;
    entry["name"] = printable(path.filename().string());
    entry["bytes"] = std::filesystem::file_size(path);
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Json report_onnx(const std::filesystem::path& path) {
  Json report;
  report["kind"] = "onnx";
  report["path"] = printable(path.string());
  add_summary(onnx::read_summary(path), path.parent_path(), report);
  return report;
}

Json report_artifact(const std::filesystem::path& path, const Sink& sink) {
  const std::filesystem::path file = path / exporters::kManifestFile;
  const exporters::Manifest manifest =
      exporters::read_manifest(file.string(), exporters::manifest_text(path), sink);
  Json report;
  report["kind"] = "artifact";
  report["path"] = printable(path.string());
  report["export_format"] = manifest.export_format;
  report["components"] = Json::array();
  for (const exporters::Manifest::Component& component : manifest.components) {
    Json entry;
    entry["name"] = component.name;
    entry["file"] = component.file;
    entry["architecture"] = component.metadata.architecture;
    const std::optional<DType> dtype = find_dtype(component.metadata.export_dtype);
    entry["dtype"] = dtype ? std::string(name(*dtype)) : component.metadata.export_dtype;
    entry["packages"] = component.metadata.packages;
    if (manifest.export_format == OnnxExporter::kExportFormat)
      add_summary(onnx::read_summary(path / component.file), path, entry);
    report["components"].push_back(std::move(entry));
  }
  report["files"] = files_of(path);
  return report;
}

Json report_safetensors(const std::filesystem::path& path) {
  const SafetensorsFile file = open_safetensors(path);
  Json report;
  report["kind"] = "safetensors";
  report["path"] = printable(path.string());
  report["metadata"] = file.metadata;
  report["tensors"] = Json::array();
  for (const auto& [tensor, source] : file.tensors) {
    Json entry;
    entry["name"] = tensor;
    entry["dtype"] = std::string(name(source->dtype()));
    entry["shape"] = source->shape();
    entry["bytes"] = source->size_bytes();
    report["tensors"].push_back(std::move(entry));
  }
  return report;
}

}  // namespace tranship::cli

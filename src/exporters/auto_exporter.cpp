#include "base/error.h"
#include "base/json.h"
#include "tranship/exporters.h"

namespace tranship {

AutoExportConfig AutoExportConfig::from_json(std::string_view json) {
  const Json object = parse_json("config", "AutoExportConfig", json);
  const bool named =
      object.is_object() && object.contains("export_format") && object["export_format"].is_string();
  AutoExportConfig config;
  config.export_format_ = named ? object["export_format"].get<std::string>() : "";
  if (config.export_format_ == OnnxExporter::kExportFormat) {
    config.onnx_ = OnnxConfig::from_json(json);
  } else if (config.export_format_ == DynamoExporter::kExportFormat) {
    config.dynamo_ = DynamoConfig::from_json(json);
  } else {
    fail(ErrorKind::kInvalidArgument, "[config] export_format is '{}', expected 'dynamo' or 'onnx'",
         config.export_format_);
  }
  return config;
}

AutoHfExporter AutoHfExporter::from_config(const AutoExportConfig& config) {
  return AutoHfExporter(config);
}

ExportedModel AutoHfExporter::export_model(const Checkpoint& checkpoint,
                                           const NamedTensors& sample_inputs,
                                           const Sink& sink) const {
  if (config_.export_format() == DynamoExporter::kExportFormat)
    return DynamoExporter().export_model(checkpoint, sample_inputs, config_.dynamo(), sink);
  return OnnxExporter().export_model(checkpoint, sample_inputs, config_.onnx(), sink);
}

ExportedModel AutoHfExporter::export_for_generation(const Checkpoint& checkpoint,
                                                    const GenerationOptions& generation,
                                                    const Sink& sink) const {
  if (config_.export_format() == DynamoExporter::kExportFormat)
    return DynamoExporter().export_for_generation(checkpoint, config_.dynamo(), generation, sink);
  return OnnxExporter().export_for_generation(checkpoint, config_.onnx(), generation, sink);
}

}  // namespace tranship

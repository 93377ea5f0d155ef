// An .onnx file as protobuf's classes. Internal to formats/onnx; users include onnx-ml.pb.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace onnx {  // the generated classes
class GraphProto;
class ModelProto;
}  // namespace onnx

namespace tranship::onnx {

/// Errors: io if it cannot be read; corrupt if it is not an ONNX model, or has 2 GB or more.
::onnx::ModelProto read_model(const std::filesystem::path& path);

/// ModelSummary::in_place of a graph.
std::map<std::string, std::string> find_in_place(const ::onnx::GraphProto& graph);

}  // namespace tranship::onnx

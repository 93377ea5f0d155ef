// An .onnx file as protobuf's classes. Internal to formats/onnx; users include onnx-ml.pb.h.
#pragma once

#include <filesystem>

namespace onnx {  // the generated classes
class ModelProto;
}  // namespace onnx

namespace tranship::onnx {

/// Errors: io if it cannot be read; corrupt if it is not an ONNX model, or has 2 GB or more.
::onnx::ModelProto read_model(const std::filesystem::path& path);

}  // namespace tranship::onnx

// genai_config.json, by which onnxruntime-genai runs an artifact for generation.
#pragma once

#include <string>

#include "exporters/exported_model.h"
#include "formats/onnx/onnx_program.h"

namespace tranship::exporters {

/// The file's text for an artifact whose "decode" reads a prompt too, with its program. If decode
/// can write all caches where they are, genai keeps one buffer a cache, of search.max_length
/// tokens: the model's context, 4096 at most, which a caller of genai may set to another length.
/// Errors: unsupported for what genai's loop for decoders cannot feed: an encoder,
/// caches that are no growing keys and values of one shape, inputs that it does not know.
std::string genai_config(const Artifact& artifact, const onnx::OnnxProgram& onnx_program);

}  // namespace tranship::exporters

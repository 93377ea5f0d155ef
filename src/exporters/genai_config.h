// genai_config.json, by which onnxruntime-genai runs an artifact for generation.
#pragma once

#include <map>
#include <string>

#include "exporters/exported_model.h"

namespace tranship::exporters {

/// The component that genai runs.
inline constexpr const char* kDecode = "decode";

/// The file's text for an artifact whose kDecode reads a prompt too. in_place: the caches that
/// decode can write where they are; if those are all, genai keeps one buffer a cache, of
/// search.max_length tokens: the model's context, 4096 at most, which a caller of genai may set to
/// another length. Errors: unsupported for what genai's loop for decoders cannot feed: an encoder,
/// caches that are no growing keys and values of one shape, inputs that it does not know.
std::string genai_config(const Artifact& artifact,
                         const std::map<std::string, std::string>& in_place);

}  // namespace tranship::exporters

// What decode loops over ONNX graphs share: components, the parts of a cache, logits, masks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/session.h"
#include "generation/causal_model.h"
#include "tranship/exporters.h"
#include "tranship/sink.h"

namespace tranship::generation {

inline constexpr std::string_view kCacheIn = "input.";
inline constexpr std::string_view kCacheOut = "output.";

using Ports = std::vector<onnx::ValueInfo>;

bool has_component(const ExportedModel& exported, std::string_view name);

/// Null if there is none.
const onnx::ValueInfo* find_port(const Ports& ports, std::string_view name);

/// Whether a port is i64 with two axes: ids, a mask, positions.
bool is_token_port(const onnx::ValueInfo& port);

/// A part of the cache under its three names.
struct CachePart {
  std::string prefill_output;
  std::string decode_input;
  std::string decode_output;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape = {};  // of decode's input; -1 where an axis is open
  bool is_read_only = false;        // of an encoder: comes out as it went in
};

/// What goes into decode and comes out of it.
struct CacheParts {
  std::vector<CachePart> kept;       // keys, values, states
  std::vector<CachePart> read_only;  // of an encoder
  /// Inputs that say how many slots are taken; none if the cache has no slots.
  std::vector<std::string> counters;
};

/// Whether a port counts the slots that are taken.
bool is_counter(const onnx::ValueInfo& port);

/// prefill: may be null. Errors: corrupt, for a part that prefill or decode does not give back.
CacheParts find_cache(const onnx::Session* prefill, const onnx::Session& decode);

/// Opens a component that gives logits [batch, sequence, vocabulary]. Errors: those of
/// onnx::Session::open; unsupported if it gives none. weights: shared with other components.
onnx::Session open_component(const std::filesystem::path& directory, const std::string& component,
                             const RunOptions& options,
                             const std::shared_ptr<onnx::WeightPool>& weights, const Sink& sink);

/// Says which inputs a loop has no value for, all at once. Errors: unsupported, if there are any.
void refuse_inputs(std::string_view component, const Ports& refused, std::string_view given);

/// The last position of logits [batch, sequence, vocab], as f32: where they lie, or through
/// `buffer`.
Logits last_logits(const onnx::Value& logits, std::vector<float>& buffer);

}  // namespace tranship::generation

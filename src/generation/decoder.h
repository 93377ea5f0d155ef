// A decoder that ONNX Runtime runs: prefill and decode of an artifact, or decode alone, with the
// cache between them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exporters/ranges.h"
#include "formats/onnx/session.h"
#include "generation/causal_model.h"
#include "generation/kept_cache.h"
#include "generation/onnx_parts.h"
#include "generation/token_mask.h"
#include "tranship/exporters.h"
#include "tranship/sink.h"

namespace tranship::generation {

/// What a decoder calls its inputs.
struct DecoderPorts {
  const char* ids = "input_ids";
  const char* mask = "attention_mask";
  const char* positions = "position_ids";
};

/// Inputs and outputs that somebody else has values for, of a component that is about to run.
using BindMore = std::function<void(onnx::Binding& binding, const onnx::Session& session)>;

struct DecoderOptions {
  DecoderPorts ports = {};
  std::vector<std::string> other_inputs = {};  // that `bind_more` binds
  BindMore bind_more = {};
};

/// Owns the sessions. For one thread at a time; may be moved.
class Decoder {
 public:
  /// Opens what an artifact has. prefill is not loaded if decode can read a prompt too. Errors:
  /// those of onnx::Session::open; unsupported for inputs that nobody has a value for, for graphs
  /// that take one length only, or no logits; corrupt if a part of the cache goes in and does not
  /// come out.
  static Decoder open(const ExportedModel& exported, const RunOptions& run, DecoderOptions options,
                      const Sink& sink);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Forgets what it has read; so many rows follow. Errors: invalid_argument if the graphs take
  /// another number.
  void begin(int64_t num_rows);
  /// Reads more tokens of each row -> the logits of the last ones, valid until the next call.
  /// Errors: unsupported if it cannot take padding and there is some; invalid_argument if there is
  /// no room; those of the runtime.
  Logits read(const PromptBatch& batch);
  /// Reads [rows, count] more tokens, none of them padding, at the positions that follow.
  Logits read_on(std::span<const int64_t> ids, int64_t count);
  bool rewind(int64_t length);

  void set_chunk_size(int64_t num_tokens);
  Room room() const;
  Use use() const;

  bool has_prefill() const;
  const onnx::Session& session() const;  // decode's
  const onnx::Binding& binding() const;  // decode's
  const KeptCache& cache() const;
  bool takes(std::string_view input) const;  // each of its graphs

 private:
  struct State;
  explicit Decoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tranship::generation

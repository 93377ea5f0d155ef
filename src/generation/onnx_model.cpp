#include "generation/onnx_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "formats/onnx/session.h"

namespace tranship::generation {
namespace {

constexpr std::string_view kCacheIn = "input.";
constexpr std::string_view kCacheOut = "output.";
constexpr const char* kInputIds = "input_ids";
constexpr const char* kAttentionMask = "attention_mask";
constexpr const char* kPositionIds = "position_ids";
constexpr const char* kLogits = "logits";
constexpr const char* kPrefill = "prefill";
constexpr const char* kDecode = "decode";

using Ports = std::vector<onnx::ValueInfo>;

const onnx::ValueInfo* find_port(const Ports& ports, std::string_view name) {
  const auto found = std::ranges::find(ports, name, &onnx::ValueInfo::name);
  return found == ports.end() ? nullptr : &*found;
}

/// A part of the cache under its three names.
struct CachePart {
  std::string prefill_output;
  std::string decode_input;
  std::string decode_output;
};

/// Errors: corrupt, for a part that prefill or decode does not give back.
std::vector<CachePart> find_cache(const onnx::Session& prefill, const onnx::Session& decode) {
  std::vector<CachePart> parts;
  std::vector<std::string> missing;
  for (const onnx::ValueInfo& input : decode.inputs()) {
    if (!input.name.starts_with(kCacheIn)) continue;
    const std::string name = input.name.substr(kCacheIn.size());
    parts.push_back({name, input.name, std::string(kCacheOut) + name});
    if (find_port(prefill.outputs(), parts.back().prefill_output) == nullptr) {
      missing.push_back("prefill's " + name);
    }
    if (find_port(decode.outputs(), parts.back().decode_output) == nullptr) {
      missing.push_back("decode's " + parts.back().decode_output);
    }
  }
  if (!missing.empty()) {
    fail(ErrorKind::kCorrupt, "[generate] parts of the cache go into decode and never come out: {}",
         listed(missing));
  }
  return parts;
}

/// Errors: unsupported, for graphs that take one length only: prompts and caches have any.
void check_lengths_are_open(const onnx::Session& session, std::string_view component) {
  for (const onnx::ValueInfo& input : session.inputs()) {
    const bool is_cache = input.name.starts_with(kCacheIn) && input.shape.size() == 4;
    const bool is_prompt = component == kPrefill && input.name == kInputIds;
    const int64_t size = is_cache ? input.shape[2] : is_prompt ? input.shape[1] : -1;
    if (size < 0) continue;
    fail(ErrorKind::kUnsupported,
         "[generate] {} takes exactly {} {} ('{}'), and a text may have any number: export it "
         "again without fixing {} (--static {}=...; --dim gives a range)",
         component, size, is_cache ? "cached tokens" : "tokens", input.name,
         is_cache ? "past" : "sequence", is_cache ? "past" : "sequence");
  }
}

/// Errors: unsupported, for what the loop has no value for.
void check_inputs(const onnx::Session& session, std::string_view component) {
  std::vector<std::string> refused;
  for (const onnx::ValueInfo& input : session.inputs()) {
    if (component == kDecode && input.name.starts_with(kCacheIn)) continue;
    const bool known =
        input.name == kInputIds || input.name == kAttentionMask || input.name == kPositionIds;
    if (!known || input.dtype != DType::kI64 || input.shape.size() != 2) {
      refused.push_back(
          fmt::format("{} ({}, {} axes)", input.name, name(input.dtype), input.shape.size()));
    }
  }
  if (refused.empty()) return;
  fail(ErrorKind::kUnsupported,
       "[generate] {} takes inputs that the decode loop cannot give: {}. It gives input_ids, "
       "attention_mask and position_ids, i64 with 2 axes, and a cache that grows",
       component, listed(refused));
}

onnx::Session open_session(const std::filesystem::path& directory, const std::string& component,
                           const RunOptions& options, const Sink& sink) {
  onnx::Session session = onnx::Session::open(directory / (component + ".onnx"),
                                              {.library = options.library,
                                               .intra_op_threads = options.threads,
                                               .device = options.device,
                                               .config = options.session_config},
                                              sink);
  check_inputs(session, component);
  check_lengths_are_open(session, component);
  const onnx::ValueInfo* logits = find_port(session.outputs(), kLogits);
  if (logits == nullptr || logits->shape.size() != 3 || !is_floating(logits->dtype)) {
    fail(ErrorKind::kUnsupported,
         "[generate] {} has no output '{}' [batch, sequence, vocabulary]: it is not a causal "
         "language model",
         component, kLogits);
  }
  return session;
}

/// The last position of logits [batch, sequence, vocab], as f32: where they lie, or through
/// `buffer`.
Logits last_logits(const onnx::Value& logits, std::vector<float>& buffer) {
  const std::vector<int64_t>& shape = logits.shape();
  check(shape.size() == 3 && shape[1] > 0, "logits have three axes, and a position");
  const int64_t vocab_size = shape[2];
  const int64_t skipped = (shape[1] - 1) * vocab_size;
  const std::span<const std::byte> bytes = logits.bytes();
  if (logits.dtype() == DType::kF32) {
    const auto* all = static_cast<const float*>(static_cast<const void*>(bytes.data()));
    const std::span<const float> values(all, bytes.size() / sizeof(float));
    return {values.subspan(static_cast<size_t>(skipped)), shape[1] * vocab_size, vocab_size};
  }
  buffer.resize(static_cast<size_t>(shape[0] * vocab_size));
  const size_t row_bytes = static_cast<size_t>(vocab_size) * size_bytes(logits.dtype());
  for (int64_t row = 0; row < shape[0]; ++row) {
    const auto first =
        static_cast<size_t>(row * shape[1] * vocab_size + skipped) * size_bytes(logits.dtype());
    const auto out = std::span(buffer).subspan(static_cast<size_t>(row * vocab_size),
                                               static_cast<size_t>(vocab_size));
    convert(logits.dtype(), bytes.subspan(first, row_bytes), DType::kF32,
            std::as_writable_bytes(out), out.size());
  }
  return {buffer, vocab_size, vocab_size};
}

class OnnxModel : public CausalModel {
 public:
  OnnxModel(onnx::Session prefill, onnx::Session decode)
      : prefill_session_(std::move(prefill)),
        decode_session_(std::move(decode)),
        cache_(find_cache(prefill_session_, decode_session_)),
        prefill_(prefill_session_),
        decode_(decode_session_) {}

  Logits prefill(const PromptBatch& batch) override {
    if (batch.is_padded() && find_port(prefill_session_.inputs(), kAttentionMask) == nullptr) {
      fail(ErrorKind::kUnsupported,
           "[generate] the prompts differ in length, but the model takes no attention_mask to tell "
           "padding from text: run them one by one, or export it with attention_mask");
    }
    const int64_t rows = find_port(prefill_session_.inputs(), kInputIds)->shape[0];
    if (rows >= 0 && rows != batch.num_rows) {
      fail(
          ErrorKind::kInvalidArgument,
          "[generate] the model was exported for exactly {} prompts at a time (--static batch={}), "
          "and there are {}",
          rows, rows, batch.num_rows);
    }
    decode_.clear();
    ids_ = batch.input_ids;
    positions_ = batch.position_ids;
    mask_ = batch.attention_mask;
    num_rows_ = batch.num_rows;
    length_ = batch.num_columns;
    bind_inputs(prefill_, prefill_session_, batch.num_columns);
    prefill_.bind_output(kLogits, onnx::Place::kHost);
    for (const CachePart& part : cache_) {
      prefill_.bind_output(part.prefill_output, onnx::Place::kDevice);
    }
    prefill_.run();
    std::map<std::string, onnx::Value> outputs = prefill_.outputs();
    prepare_decode();
    for (const CachePart& part : cache_) {
      decode_.bind_input(part.decode_input, outputs.at(part.prefill_output));
    }
    return keep_logits(std::move(outputs.at(kLogits)));
  }

  Logits decode(std::span<const int64_t> ids) override {
    prefill_.clear();  // the logits of a long prompt are large: let go of them
    logits_.reset();
    ids_.assign(ids.begin(), ids.end());
    for (int64_t& position : positions_) ++position;
    append_to_mask();
    bind_inputs(decode_, decode_session_, 1);
    decode_.run();
    std::map<std::string, onnx::Value> outputs = decode_.outputs();
    for (const CachePart& part : cache_) {
      decode_.bind_input(part.decode_input, outputs.at(part.decode_output));
    }
    return keep_logits(std::move(outputs.at(kLogits)));
  }

 private:
  /// Binds what a graph takes: ids and positions [rows, columns], mask [rows, length_].
  void bind_inputs(onnx::Binding& binding, const onnx::Session& session, int64_t columns) {
    const auto bind = [&](const char* name, std::vector<int64_t>& values, int64_t num_columns) {
      if (find_port(session.inputs(), name) == nullptr) return;
      const auto bytes = std::as_writable_bytes(std::span(values));
      binding.bind_input(name, session.over(DType::kI64, {num_rows_, num_columns}, bytes));
    };
    bind(kInputIds, ids_, columns);
    bind(kAttentionMask, mask_, length_);
    bind(kPositionIds, positions_, columns);
  }

  void prepare_decode() {
    std::vector<int64_t> last;
    for (int64_t row = 1; row <= num_rows_; ++row) {
      last.push_back(positions_[static_cast<size_t>(row * length_ - 1)]);
    }
    positions_ = std::move(last);
    decode_.bind_output(kLogits, onnx::Place::kHost);
    for (const CachePart& part : cache_) {
      decode_.bind_output(part.decode_output, onnx::Place::kDevice);
    }
  }

  /// A column of ones: rows move apart, the last one first.
  void append_to_mask() {
    const auto rows = static_cast<size_t>(num_rows_), old_length = static_cast<size_t>(length_);
    mask_.resize(rows * (old_length + 1));
    for (size_t row = rows; row-- > 0;) {
      const auto from = mask_.begin() + static_cast<std::ptrdiff_t>(row * old_length);
      const auto to = mask_.begin() + static_cast<std::ptrdiff_t>(row * (old_length + 1));
      std::copy_backward(from, from + length_, to + length_);
      to[length_] = 1;
    }
    ++length_;
  }

  Logits keep_logits(onnx::Value logits) {
    logits_ = std::move(logits);
    return last_logits(*logits_, converted_);
  }

  onnx::Session prefill_session_;
  onnx::Session decode_session_;
  std::vector<CachePart> cache_;
  onnx::Binding prefill_;
  onnx::Binding decode_;
  // The memory under the bound inputs.
  std::vector<int64_t> ids_;
  std::vector<int64_t> mask_;
  std::vector<int64_t> positions_;
  int64_t num_rows_ = 0;
  int64_t length_ = 0;  // tokens read so far, padding included
  std::optional<onnx::Value> logits_;
  std::vector<float> converted_;
};

}  // namespace

std::unique_ptr<CausalModel> open_onnx_model(const std::filesystem::path& directory,
                                             const RunOptions& options, const Sink& sink) {
  onnx::Session prefill = open_session(directory, kPrefill, options, sink);
  onnx::Session decode = open_session(directory, kDecode, options, sink);
  return std::make_unique<OnnxModel>(std::move(prefill), std::move(decode));
}

}  // namespace tranship::generation

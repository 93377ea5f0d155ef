#include "generation/onnx_model.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "exporters/exported_model.h"
#include "generation/cache_buffers.h"
#include "generation/onnx_parts.h"

namespace tranship::generation {
namespace {

constexpr const char* kInputIds = "input_ids";
constexpr const char* kAttentionMask = "attention_mask";
constexpr const char* kPositionIds = "position_ids";
constexpr const char* kLogits = "logits";
constexpr const char* kPrefill = "prefill";
constexpr const char* kDecode = "decode";

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
onnx::Session open_checked(const std::filesystem::path& directory, const std::string& component,
                           const RunOptions& options, const Sink& sink) {
  onnx::Session session = open_component(directory, component, options, sink);
  Ports refused;
  for (const onnx::ValueInfo& input : session.inputs()) {
    if (component == kDecode && input.name.starts_with(kCacheIn)) continue;
    const bool known =
        input.name == kInputIds || input.name == kAttentionMask || input.name == kPositionIds;
    if (!known || !is_token_port(input)) refused.push_back(input);
  }
  refuse_inputs(component, refused,
                "input_ids, attention_mask and position_ids, i64 with 2 axes, and a cache that "
                "grows");
  check_lengths_are_open(session, component);
  return session;
}

/// Whether decode can write all of its cache where it is, and does not care how much room there is.
bool writes_in_place(const ExportedModel& exported, const onnx::Session& decode) {
  const auto& in_place = exported.impl().artifact->in_place.at(kDecode);
  for (const onnx::ValueInfo& input : decode.inputs()) {
    if (!input.name.starts_with(kCacheIn)) continue;
    const std::string output = std::string(kCacheOut) + input.name.substr(kCacheIn.size());
    const auto found = in_place.find(input.name);
    if (found == in_place.end() || found->second != output) return false;
  }
  return find_port(decode.inputs(), kAttentionMask) != nullptr;
}

class OnnxModel : public CausalModel {
 public:
  /// in_place: decode writes its cache where it is.
  OnnxModel(onnx::Session prefill, onnx::Session decode, bool in_place)
      : prefill_session_(std::move(prefill)),
        decode_session_(std::move(decode)),
        cache_(find_cache(prefill_session_, decode_session_)),
        prefill_(prefill_session_),
        decode_(decode_session_) {
    if (in_place) buffers_.emplace(decode_session_, cache_);
  }

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
    if (buffers_) {
      buffers_->fill(outputs, length_, decode_);
    } else {
      for (const CachePart& part : cache_)
        decode_.bind_input(part.decode_input, outputs.at(part.prefill_output));
    }
    return keep_logits(std::move(outputs.at(kLogits)));
  }

  Logits decode(std::span<const int64_t> ids) override {
    prefill_.clear();  // the logits of a long prompt are large: let go of them
    logits_.reset();
    ids_.assign(ids.begin(), ids.end());
    for (int64_t& position : positions_) ++position;
    append_ones(mask_, num_rows_, length_);
    if (buffers_) buffers_->reserve(length_ + 1, length_, decode_);
    ++length_;
    bind_inputs(decode_, decode_session_, 1);
    decode_.run();
    if (buffers_) return keep_logits(decode_.output(kLogits));
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
      if (!buffers_) decode_.bind_output(part.decode_output, onnx::Place::kDevice);
    }
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
  std::optional<CacheBuffers> buffers_;  // where decode writes in place
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

std::unique_ptr<CausalModel> open_onnx_model(const ExportedModel& exported,
                                             const RunOptions& options, const Sink& sink) {
  const std::filesystem::path& directory = exported.directory();
  onnx::Session prefill = open_checked(directory, kPrefill, options, sink);
  onnx::Session decode = open_checked(directory, kDecode, options, sink);
  const bool in_place = options.device == "cpu" && writes_in_place(exported, decode);
  return std::make_unique<OnnxModel>(std::move(prefill), std::move(decode), in_place);
}

}  // namespace tranship::generation

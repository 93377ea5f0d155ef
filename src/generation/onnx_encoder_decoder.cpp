#include <algorithm>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "generation/encoder_decoder_model.h"
#include "generation/onnx_parts.h"

namespace tranship::generation {
namespace {

constexpr const char* kDecoderIds = "decoder_input_ids";
constexpr const char* kDecoderMask = "decoder_attention_mask";
constexpr const char* kEncoderMask = "attention_mask";
constexpr const char* kEncoderStates = "encoder_outputs.last_hidden_state";
constexpr const char* kEncoderStatesOut = "encoder_last_hidden_state";
constexpr const char* kHiddenState = "last_hidden_state";
constexpr const char* kLogits = "logits";
constexpr const char* kEncoder = "encoder";

/// Errors: unsupported, for what the loop has no value for.
onnx::Session open_decoder(const ExportedModel& exported, const std::string& component,
                           const RunOptions& options, const Sink& sink) {
  onnx::Session session = open_component(exported.directory(), component, options, sink);
  Ports refused;
  for (const onnx::ValueInfo& input : session.inputs()) {
    const bool is_known =
        input.name == kDecoderIds || input.name == kDecoderMask || input.name == kEncoderMask;
    const bool is_state = input.name == kEncoderStates || input.name.starts_with(kCacheIn);
    if (!is_state && !(is_known && is_token_port(input))) refused.push_back(input);
  }
  refuse_inputs(component, refused,
                "decoder_input_ids, decoder_attention_mask and the encoder's attention_mask, i64 "
                "with 2 axes, the encoder's states, and a cache that grows");
  return session;
}

/// An encoder: a component of an artifact, this one or one inside.
struct Encoder {
  ExportedModel model;
  std::string component;

  const ExportedProgram& program() const { return model.component(component).program; }
};

Encoder find_encoder(const ExportedModel& exported, const RunOptions& options, const Sink& sink) {
  for (const auto& [name, component] : exported.components()) {
    if (name == kEncoder) return {exported, name};
  }
  const std::filesystem::path inside = exported.directory() / kEncoder;
  std::error_code ignored;
  if (!std::filesystem::exists(inside / "export.json", ignored)) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] '{}' has no component '{}', and no export of one in '{}'. Transformers' "
         "export_for_generation leaves it out: save what its exporter makes of "
         "model.get_encoder() there",
         exported.directory().string(), kEncoder, inside.string());
  }
  ExportedModel encoder = ExportedModel::from_pretrained(inside, {.run = options}, sink);
  std::string name = encoder.components().front().first;
  return {std::move(encoder), std::move(name)};
}

class OnnxEncoderDecoder : public EncoderDecoderModel {
 public:
  OnnxEncoderDecoder(Encoder encoder, onnx::Session prefill, onnx::Session decode)
      : encoder_(std::move(encoder)),
        prefill_session_(std::move(prefill)),
        decode_session_(std::move(decode)),
        cache_(find_cache(prefill_session_, decode_session_)),
        prefill_(prefill_session_),
        decode_(decode_session_) {}

  std::vector<std::string> encoder_input_names() const override {
    std::vector<std::string> names;
    for (const Port& input : encoder_.program().inputs()) names.push_back(input.name);
    return names;
  }

  void set_encoder_inputs(NamedTensors inputs) override {
    encoder_inputs_ = std::move(inputs);
    states_.reset();
  }

  Logits prefill(const PromptBatch& batch) override {
    if (batch.is_padded()) need_input(kDecoderMask, true);
    decode_.clear();
    prefill_.clear();
    encode();
    ids_ = batch.input_ids;
    mask_ = batch.attention_mask;
    num_rows_ = batch.num_rows;
    length_ = batch.num_columns;
    bind_inputs(prefill_, prefill_session_, batch.num_columns);
    prefill_.bind_output(kLogits, onnx::Place::kHost);
    for (const CachePart& part : cache_)
      prefill_.bind_output(part.prefill_output, onnx::Place::kDevice);
    prefill_.run();
    std::map<std::string, onnx::Value> outputs = prefill_.outputs();
    prepare_decode(outputs);
    return keep_logits(std::move(outputs.at(kLogits)));
  }

  Logits decode(std::span<const int64_t> ids) override {
    prefill_.clear();
    logits_.reset();
    ids_.assign(ids.begin(), ids.end());
    append_ones(mask_, num_rows_, length_);
    ++length_;
    bind_inputs(decode_, decode_session_, 1);
    decode_.run();
    std::map<std::string, onnx::Value> outputs = decode_.outputs();
    for (const CachePart& part : cache_) {
      if (!part.is_read_only) decode_.bind_input(part.decode_input, outputs.at(part.decode_output));
    }
    return keep_logits(std::move(outputs.at(kLogits)));
  }

 private:
  bool takes(const onnx::Session& session, std::string_view name) const {
    return find_port(session.inputs(), name) != nullptr;
  }

  /// Errors: unsupported if a decoder lacks the input that tells padding from text.
  void need_input(const char* name, bool encoder_has_it) const {
    if (encoder_has_it && takes(prefill_session_, name) && takes(decode_session_, name)) return;
    fail(ErrorKind::kUnsupported,
         "[generate] the prompts differ in length, but the model takes no {} to tell padding from "
         "text: run them one by one, or export it with {}",
         name, name);
  }

  /// Runs the encoder, once for what was set.
  void encode() {
    if (states_) return;
    const auto mask = encoder_inputs_.find(kEncoderMask);
    if (mask != encoder_inputs_.end() && std::ranges::count(mask->second.i64(), 0) > 0) {
      need_input(kEncoderMask, std::ranges::count(encoder_input_names(), kEncoderMask) > 0);
    }
    NamedTensors outputs = encoder_.model.run(encoder_.component, encoder_inputs_);
    const auto found = outputs.find(kHiddenState);
    if (found == outputs.end() || found->second.shape().size() != 3) {
      fail(ErrorKind::kUnsupported,
           "[generate] the encoder has no output '{}' [batch, sequence, hidden]", kHiddenState);
    }
    states_ = std::move(found->second);
    encoder_mask_.assign(static_cast<size_t>(states_->shape()[0] * states_->shape()[1]), 1);
    if (mask != encoder_inputs_.end())
      encoder_mask_.assign(mask->second.i64().begin(), mask->second.i64().end());
  }

  void bind_inputs(onnx::Binding& binding, const onnx::Session& session, int64_t columns) {
    const auto bind = [&](const char* name, std::vector<int64_t>& values, int64_t num_columns) {
      if (!takes(session, name)) return;
      const auto bytes = std::as_writable_bytes(std::span(values));
      binding.bind_input(name, session.over(DType::kI64, {num_rows_, num_columns}, bytes));
    };
    bind(kDecoderIds, ids_, columns);
    bind(kDecoderMask, mask_, length_);
    bind(kEncoderMask, encoder_mask_, states_->shape()[1]);
    if (takes(session, kEncoderStates)) binding.bind_input(kEncoderStates, session.over(*states_));
  }

  /// What never changes is written over itself, so that the graph need not copy it.
  void prepare_decode(std::map<std::string, onnx::Value>& made) {
    decode_.bind_output(kLogits, onnx::Place::kHost);
    for (const CachePart& part : cache_) {
      onnx::Value& value = made.at(part.prefill_output);
      decode_.bind_input(part.decode_input, value);
      if (part.is_read_only) {
        decode_.bind_output(part.decode_output, value);
      } else {
        decode_.bind_output(part.decode_output, onnx::Place::kDevice);
      }
    }
    if (find_port(decode_session_.outputs(), kEncoderStatesOut) == nullptr) return;
    onnx::Value states = decode_session_.over(*states_);
    decode_.bind_output(kEncoderStatesOut, states);
  }

  Logits keep_logits(onnx::Value logits) {
    logits_ = std::move(logits);
    return last_logits(*logits_, converted_);
  }

  Encoder encoder_;
  onnx::Session prefill_session_;
  onnx::Session decode_session_;
  std::vector<CachePart> cache_;
  NamedTensors encoder_inputs_;
  std::optional<Tensor> states_;  // what the encoder made of them
  onnx::Binding prefill_;
  onnx::Binding decode_;
  // The memory under the bound inputs.
  std::vector<int64_t> ids_;
  std::vector<int64_t> mask_;
  std::vector<int64_t> encoder_mask_;
  int64_t num_rows_ = 0;
  int64_t length_ = 0;  // tokens that the decoder has read, padding included
  std::optional<onnx::Value> logits_;
  std::vector<float> converted_;
};

}  // namespace

std::unique_ptr<EncoderDecoderModel> open_onnx_encoder_decoder(const ExportedModel& exported,
                                                               const RunOptions& options,
                                                               const Sink& sink) {
  Encoder encoder = find_encoder(exported, options, sink);
  onnx::Session prefill = open_decoder(exported, "prefill", options, sink);
  onnx::Session decode = open_decoder(exported, "decode", options, sink);
  return std::make_unique<OnnxEncoderDecoder>(std::move(encoder), std::move(prefill),
                                              std::move(decode));
}

}  // namespace tranship::generation

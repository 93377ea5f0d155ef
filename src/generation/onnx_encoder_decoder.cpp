#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "generation/decoder.h"
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
constexpr const char* kEncoder = "encoder";

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

/// What the decoder takes of the encoder: the memory under it.
struct EncoderValues {
  std::optional<Tensor> states;
  std::vector<int64_t> mask;

  void bind(onnx::Binding& binding, const onnx::Session& session) {
    if (find_port(session.inputs(), kEncoderMask) != nullptr) {
      const auto bytes = std::as_writable_bytes(std::span(mask));
      binding.bind_input(
          kEncoderMask, session.over(DType::kI64, {states->shape()[0], states->shape()[1]}, bytes));
    }
    onnx::Value value = session.over(*states);
    if (find_port(session.inputs(), kEncoderStates) != nullptr)
      binding.bind_input(kEncoderStates, value);
    if (find_port(session.outputs(), kEncoderStatesOut) != nullptr)
      binding.bind_output(kEncoderStatesOut, value);  // over itself: nothing need be copied
  }
};

class OnnxEncoderDecoder : public EncoderDecoderModel {
 public:
  OnnxEncoderDecoder(Encoder encoder, Decoder decoder, std::shared_ptr<EncoderValues> values)
      : encoder_(std::move(encoder)), decoder_(std::move(decoder)), values_(std::move(values)) {}

  std::vector<std::string> encoder_input_names() const override {
    std::vector<std::string> names;
    for (const Port& input : encoder_.program().inputs()) names.push_back(input.name);
    return names;
  }

  void set_encoder_inputs(NamedTensors inputs) override {
    encoder_inputs_ = std::move(inputs);
    values_->states.reset();
  }

  Logits prefill(const PromptBatch& batch) override {
    encode();
    decoder_.begin(batch.num_rows);
    return decoder_.read(batch);
  }
  Logits decode(std::span<const int64_t> ids) override { return decoder_.read_on(ids, 1); }
  Logits extend(std::span<const int64_t> ids) override {
    return decoder_.read_on(ids, std::ssize(ids));
  }
  bool rewind(int64_t length) override { return decoder_.rewind(length); }
  void set_chunk_size(int64_t num_tokens) override { decoder_.set_chunk_size(num_tokens); }
  Room room() const override { return decoder_.room(); }
  Use use() const override {
    Use use = decoder_.use();
    use.run_seconds += encode_seconds_;
    return use;
  }

 private:
  /// Errors: unsupported if encoder or decoder lacks the input that tells padding from text.
  void need_encoder_mask() const {
    const std::vector<std::string> names = encoder_input_names();
    if (std::ranges::count(names, kEncoderMask) > 0 && decoder_.takes(kEncoderMask)) return;
    fail(ErrorKind::kUnsupported,
         "[generate] the prompts differ in length, but the model takes no {} to tell padding from "
         "text: run them one by one, or export it with {}",
         kEncoderMask, kEncoderMask);
  }

  /// Runs the encoder, once for what was set.
  void encode() {
    if (values_->states) return;
    const auto mask = encoder_inputs_.find(kEncoderMask);
    const bool has_mask = mask != encoder_inputs_.end();
    if (has_mask && std::ranges::count(mask->second.i64(), 0) > 0) need_encoder_mask();
    const auto start = std::chrono::steady_clock::now();
    NamedTensors outputs = encoder_.model.run(encoder_.component, encoder_inputs_);
    encode_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto found = outputs.find(kHiddenState);
    if (found == outputs.end() || found->second.shape().size() != 3) {
      fail(ErrorKind::kUnsupported,
           "[generate] the encoder has no output '{}' [batch, sequence, hidden]", kHiddenState);
    }
    const std::vector<int64_t>& shape = found->second.shape();
    values_->mask.assign(static_cast<size_t>(shape[0] * shape[1]), 1);
    if (has_mask) values_->mask.assign(mask->second.i64().begin(), mask->second.i64().end());
    values_->states = std::move(found->second);
  }

  Encoder encoder_;
  Decoder decoder_;
  std::shared_ptr<EncoderValues> values_;  // the decoder binds them too
  NamedTensors encoder_inputs_;
  double encode_seconds_ = 0;
};

}  // namespace

std::unique_ptr<EncoderDecoderModel> open_onnx_encoder_decoder(const ExportedModel& exported,
                                                               const RunOptions& options,
                                                               const Sink& sink) {
  Encoder encoder = find_encoder(exported, options, sink);
  const auto values = std::make_shared<EncoderValues>();
  Decoder decoder = Decoder::open(
      exported, options,
      {.ports = {kDecoderIds, kDecoderMask, "decoder_position_ids"},
       .other_inputs = {kEncoderMask, kEncoderStates},
       .bind_more = [values](onnx::Binding& binding,
                             const onnx::Session& session) { values->bind(binding, session); }},
      sink);
  return std::make_unique<OnnxEncoderDecoder>(std::move(encoder), std::move(decoder), values);
}

}  // namespace tranship::generation

#include "generation/onnx_parts.h"

#include <algorithm>

#include "base/error.h"
#include "base/half.h"
#include "exporters/ports.h"

namespace tranship::generation {
namespace {

constexpr std::string_view kLogits = "logits";

using exporters::kCounter;
using exporters::kCrossCache;

}  // namespace

bool has_component(const ExportedModel& exported, std::string_view name) {
  return std::ranges::any_of(exported.components(),
                             [&](const auto& part) { return part.first == name; });
}

const onnx::ValueInfo* find_port(const Ports& ports, std::string_view name) {
  const auto found = std::ranges::find(ports, name, &onnx::ValueInfo::name);
  return found == ports.end() ? nullptr : &*found;
}

bool is_token_port(const onnx::ValueInfo& port) {
  return port.dtype == DType::kI64 && port.shape.size() == 2;
}

bool is_counter(const onnx::ValueInfo& port) {
  return port.name.ends_with(kCounter) && port.name.find(kCrossCache) == std::string::npos &&
         port.dtype == DType::kI64 && port.shape.empty();
}

CacheParts find_cache(const onnx::Session* prefill, const onnx::Session& decode) {
  CacheParts parts;
  std::vector<std::string> missing;
  for (const onnx::ValueInfo& input : decode.inputs()) {
    if (!input.name.starts_with(kCacheIn)) continue;
    if (is_counter(input)) {
      parts.counters.push_back(input.name);
      continue;
    }
    const std::string name = input.name.substr(kCacheIn.size());
    const CachePart part = {name,        input.name,  std::string(kCacheOut) + name,
                            input.dtype, input.shape, name.find(kCrossCache) != std::string::npos};
    if (prefill != nullptr && find_port(prefill->outputs(), name) == nullptr)
      missing.push_back("prefill's " + name);
    if (find_port(decode.outputs(), part.decode_output) == nullptr)
      missing.push_back("decode's " + part.decode_output);
    (part.is_read_only ? parts.read_only : parts.kept).push_back(part);
  }
  if (!missing.empty()) {
    fail(ErrorKind::kCorrupt, "[generate] parts of the cache go into decode and never come out: {}",
         listed(missing));
  }
  return parts;
}

onnx::Session open_component(const std::filesystem::path& directory, const std::string& component,
                             const RunOptions& options,
                             const std::shared_ptr<onnx::WeightPool>& weights, const Sink& sink) {
  onnx::SessionOptions with_weights = exporters::session_options(options);
  with_weights.weights = weights;
  onnx::Session session =
      onnx::Session::open(directory / (component + ".onnx"), with_weights, sink);
  const onnx::ValueInfo* logits = find_port(session.outputs(), kLogits);
  if (logits == nullptr || logits->shape.size() != 3 || !is_floating(logits->dtype)) {
    fail(ErrorKind::kUnsupported,
         "[generate] {} has no output '{}' [batch, sequence, vocabulary]: it is not a language "
         "model",
         component, kLogits);
  }
  return session;
}

void refuse_inputs(std::string_view component, const Ports& refused, std::string_view given) {
  if (refused.empty()) return;
  std::vector<std::string> names;
  for (const onnx::ValueInfo& input : refused) {
    names.push_back(
        fmt::format("{} ({}, {} axes)", input.name, name(input.dtype), input.shape.size()));
  }
  fail(ErrorKind::kUnsupported,
       "[generate] {} takes inputs that the decode loop cannot give: {}. It gives {}", component,
       listed(names), given);
}

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

}  // namespace tranship::generation

#include "exporters/feed.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "exporters/ports.h"

namespace tranship::exporters {
namespace {

constexpr std::string_view kPrefix = "input.";

std::string without_prefix(const std::string& name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

/// The given name that stands for a graph's input; null if there is none.
NamedTensors::const_iterator find_given(const NamedTensors& given, const std::string& input) {
  const std::string bare = without_prefix(input);
  const auto plain = given.find(bare);
  const auto prefixed = given.find(std::string(kPrefix) + bare);
  if (plain != given.end() && prefixed != given.end()) {
    fail(ErrorKind::kInvalidArgument, "[run] '{}' is given twice, as '{}' too: give one of them",
         bare, prefixed->first);
  }
  return plain != given.end() ? plain : prefixed;
}

/// Sizes that defaults are made of.
struct CallSizes {
  int64_t batch = 0;
  int64_t length = 0;
  int64_t past = 0;  // tokens that are cached
};

constexpr std::string_view kDecoder = "decoder_";

/// How many tokens are cached, of the text itself: not what a decoder keeps of an encoder.
int64_t past_of(const NamedTensors& feed) {
  int64_t past = 0;
  for (const auto& [name, tensor] : feed) {
    if (name.find(kCrossCache) != std::string::npos) continue;
    if (name.ends_with(kCounter) && tensor.dtype() == DType::kI64 && tensor.num_elements() == 1)
      return tensor.i64()[0];
    if (name.ends_with(".keys") && tensor.shape().size() == 4) past = tensor.shape()[2];
  }
  return past;
}

std::optional<CallSizes> sizes_of(const NamedTensors& feed, const std::string& name, size_t rank) {
  const auto found = feed.find(name);
  if (found == feed.end() || found->second.shape().size() != rank) return std::nullopt;
  return CallSizes{found->second.shape()[0], found->second.shape()[1], 0};
}

/// The sizes of what an optional input belongs to: the tokens, the decoder's tokens, or what an
/// encoder made.
std::optional<CallSizes> sizes_for(const std::string& input, const NamedTensors& feed) {
  const bool is_decoders = input.starts_with(kDecoder);
  std::optional<CallSizes> sizes =
      sizes_of(feed, is_decoders ? "decoder_input_ids" : "input_ids", 2);
  if (!is_decoders && !sizes) sizes = sizes_of(feed, "encoder_outputs.last_hidden_state", 3);
  const bool is_encoders = !is_decoders && !feed.contains("input_ids");
  if (sizes && !is_encoders) sizes->past = past_of(feed);
  return sizes;
}

/// How many slots a static cache has: those of the buffers, else as the mask's port says.
std::optional<int64_t> slots_of(const Port& mask, const NamedTensors& feed) {
  for (const auto& [name, tensor] : feed) {
    const bool is_cross = name.find(kCrossCache) != std::string::npos;
    if (name.ends_with(".keys") && tensor.shape().size() == 4 && !is_cross)
      return tensor.shape()[2];
  }
  return fixed_size(mask.shape.back());
}

/// bool [batch, 1, queries, slots]: each token sees itself and all before it.
std::optional<Tensor> default_slot_mask(const Port& input, const NamedTensors& feed) {
  const std::optional<CallSizes> sizes = sizes_for(input.name, feed);
  const std::optional<int64_t> slots = slots_of(input, feed);
  if (!sizes || !slots) return std::nullopt;
  Tensor mask(DType::kBool, {sizes->batch, 1, sizes->length, *slots});
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    const int64_t query = i / *slots % sizes->length;
    mask.set(i, i % *slots <= sizes->past + query ? 1 : 0);
  }
  return mask;
}

/// What the model itself would take for an input that is not given.
std::optional<Tensor> default_of(const Port& input, const NamedTensors& feed) {
  const bool is_mask = input.name == "attention_mask" || input.name == "decoder_attention_mask";
  if (input.dtype == DType::kBool && input.shape.size() == 4 && is_mask)
    return default_slot_mask(input, feed);
  if (input.dtype != DType::kI64 || input.shape.size() != 2) return std::nullopt;
  const std::optional<CallSizes> sizes = sizes_for(input.name, feed);
  if (!sizes) return std::nullopt;
  if (input.name == "token_type_ids") return Tensor(DType::kI64, {sizes->batch, sizes->length});
  if (is_mask) {
    Tensor mask(DType::kI64, {sizes->batch, sizes->past + sizes->length});
    std::ranges::fill(mask.i64(), 1);
    return mask;
  }
  if (input.name == "position_ids") {
    Tensor positions(DType::kI64, {sizes->batch, sizes->length});
    for (int64_t i = 0; i < positions.num_elements(); ++i) {
      positions.i64()[static_cast<size_t>(i)] = sizes->past + i % sizes->length;
    }
    return positions;
  }
  return std::nullopt;
}

[[noreturn]] void fail_missing(std::string_view component, const std::vector<std::string>& missing,
                               const std::vector<Port>& inputs, const NamedTensors& given) {
  std::vector<std::string> taken, names;
  for (const Port& input : inputs) taken.push_back(input.name);
  for (const auto& [name, tensor] : given) names.push_back(name);
  fail(ErrorKind::kInvalidArgument,
       "[run] component '{}' needs {}, which the call does not have. It takes {}; given are {}",
       component, listed(missing), listed(taken), names.empty() ? "none" : listed(names));
}

using Symbols = std::map<std::string, int64_t>;

std::string shown(const Port& input, const Symbols& symbols) {
  std::string text;
  for (const std::string& axis : input.shape) {
    const auto known = symbols.find(axis);
    text += (text.empty() ? "" : ", ") + axis;
    if (known != symbols.end()) text += " = " + std::to_string(known->second);
  }
  return "[" + text + "]";
}

/// An input without axes is a scalar, or one of which the program does not say them.
void check_rank(const Port& input, const Tensor& tensor) {
  if (input.shape.empty() || tensor.shape().size() == input.shape.size()) return;
  fail(ErrorKind::kInvalidArgument, "[run] '{}' is {}: {} axes, expected {}: {}", input.name,
       ir::Shape::of(tensor.shape()).text(), tensor.shape().size(), input.shape.size(),
       shown(input, {}));
}

void check_axes(const Port& input, const Tensor& tensor, const Symbols& symbols) {
  for (size_t axis = 0; axis < input.shape.size(); ++axis) {
    const std::optional<ir::Dim> dim = declared(input.shape[axis]);
    if (!dim) continue;
    for (const std::string& symbol : dim->symbols()) {
      if (!symbols.contains(symbol)) return;
    }
    if (dim->evaluate(symbols) == tensor.shape()[axis]) continue;
    fail(ErrorKind::kInvalidArgument, "[run] '{}' is {}, expected {}", input.name,
         ir::Shape::of(tensor.shape()).text(), shown(input, symbols));
  }
}

/// How many tokens a call has, of the text itself.
int64_t num_tokens(const NamedTensors& given) {
  for (const char* name : {"decoder_input_ids", "input_ids"}) {
    if (const std::optional<CallSizes> sizes = sizes_of(given, name, 2)) return sizes->length;
  }
  return 0;
}

/// A static cache has room for what a call writes: kernels may write past its end.
void check_slots(const NamedTensors& given) {
  const int64_t tokens = num_tokens(given);
  for (const auto& [name, counter] : given) {
    const bool counts =
        name.ends_with(kCounter) && counter.dtype() == DType::kI64 && counter.num_elements() == 1;
    if (!counts || name.find(kCrossCache) != std::string::npos) continue;
    const auto keys = given.find(name.substr(0, name.size() - kCounter.size()) + ".keys");
    if (keys == given.end() || keys->second.shape().size() != 4) continue;
    const int64_t slots = keys->second.shape()[2], taken = counter.i64()[0];
    if (taken >= 0 && taken <= slots && tokens <= slots - taken) continue;
    fail(ErrorKind::kInvalidArgument,
         "[run] '{}' has {} slots; '{}' says that {} are taken, and the call has {} more: begin "
         "with longer buffers, or a new text with a counter of 0",
         keys->first, slots, name, taken,
         tokens == 1 ? "1 token" : fmt::format("{} tokens", tokens));
  }
}

}  // namespace

void check_sizes(const std::vector<Port>& inputs, const Ranges& ranges, const NamedTensors& given) {
  Symbols symbols;  // each from the first input that has it as an axis
  for (const Port& input : inputs) {
    const auto it = given.find(input.name);
    if (it == given.end()) continue;
    check_rank(input, it->second);
    for (size_t axis = 0; axis < input.shape.size(); ++axis) {
      const std::optional<ir::Dim> dim = declared(input.shape[axis]);
      if (dim && dim->as_symbol()) symbols.try_emplace(*dim->as_symbol(), it->second.shape()[axis]);
    }
  }
  for (const Port& input : inputs) {
    const auto it = given.find(input.name);
    if (it != given.end()) check_axes(input, it->second, symbols);
  }
  check_slots(given);
  for (const auto& [symbol, size] : symbols) {
    const auto range = ranges.find(symbol);
    if (range == ranges.end()) continue;
    if (size >= range->second.min && size <= range->second.max.value_or(size)) continue;
    fail(ErrorKind::kInvalidArgument,
         "[run] '{}' is {}, outside of the range that it was exported for, {}", symbol, size,
         text_of(range->second));
  }
}

bool is_complete(const std::vector<Port>& inputs, const NamedTensors& given) {
  return inputs.size() == given.size() &&
         std::ranges::all_of(inputs, [&](const Port& input) { return given.contains(input.name); });
}

Feed feed(std::string_view component, const std::vector<Port>& inputs, const NamedTensors& given) {
  Feed out;
  std::set<std::string> used;
  std::vector<const Port*> absent;
  for (const Port& input : inputs) {
    const auto found = find_given(given, input.name);
    if (found == given.end()) {
      absent.push_back(&input);
    } else {
      check_rank(input, found->second);
      out.tensors.emplace(input.name, found->second);
      used.insert(found->first);
    }
  }
  std::vector<std::string> missing;
  for (const Port* input : absent) {
    std::optional<Tensor> made = default_of(*input, out.tensors);
    if (made) {
      out.tensors.emplace(input->name, std::move(*made));
    } else {
      missing.push_back(input->name);
    }
  }
  if (!missing.empty()) fail_missing(component, missing, inputs, given);
  for (const auto& [name, tensor] : given) {
    if (!used.contains(name)) out.dropped.push_back(name);
  }
  return out;
}

}  // namespace tranship::exporters

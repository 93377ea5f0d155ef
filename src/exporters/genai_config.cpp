#include "exporters/genai_config.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config.h"
#include "exporters/ports.h"

namespace tranship::exporters {
namespace {

constexpr std::string_view kLayers = ".layers.";
/// Of the cache that genai allocates at once; a model's context may be a hundred times that.
constexpr int64_t kLongestCache = 4096;

/// An input or output of a layer's cache.
struct CachePort {
  int64_t layer = 0;
  std::string name_of_any;  // with %d for the layer: "input.past_key_values.layers.%d.keys"
  const Port* port = nullptr;
};

std::optional<CachePort> cache_port(const Port& port) {
  const size_t at = port.name.find(kLayers);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + kLayers.size();
  CachePort found{.layer = 0, .name_of_any = port.name, .port = &port};
  const char* const end = port.name.data() + port.name.size();
  const auto [stop, error] = std::from_chars(port.name.data() + begin, end, found.layer);
  if (error != std::errc()) return std::nullopt;
  const auto length = static_cast<size_t>(stop - port.name.data()) - begin;
  found.name_of_any.replace(begin, length, "%d");
  return found;
}

[[noreturn]] void fail_for(std::string_view what) {
  fail(ErrorKind::kUnsupported,
       "[export] also = genai: onnxruntime-genai's loop for decoders takes ids, a mask, positions, "
       "and keys and values that grow; this export has {}. Leave `also` out: tranship's own loop "
       "runs it",
       what);
}

int64_t size_of(const Port& port, size_t axis) {
  const std::optional<int64_t> size = fixed_size(port.shape.at(axis));
  if (!size) fail_for(fmt::format("'{}' with an open axis {}", port.name, axis));
  return *size;
}

/// The caches among a component's ports: the name for keys and for values, with %d for the layer.
struct Caches {
  int64_t num_layers = 0;
  std::string keys, values;
  const Port* first = nullptr;  // [batch, heads, tokens, size of a head]
};

void add_port(const CachePort& found, Caches& caches) {
  const bool is_keys = found.name_of_any.ends_with(".keys");
  if (!is_keys && !found.name_of_any.ends_with(".values"))
    fail_for(fmt::format("'{}'", found.port->name));
  std::string& name = is_keys ? caches.keys : caches.values;
  if (name.empty()) name = found.name_of_any;
  if (name != found.name_of_any)
    fail_for(fmt::format("both '{}' and '{}'", name, found.name_of_any));
  if (caches.first == nullptr) caches.first = found.port;
  for (const size_t axis : {1, 3}) {
    if (size_of(*found.port, axis) != size_of(*caches.first, axis))
      fail_for(fmt::format("'{}' and '{}' of other shapes", found.port->name, caches.first->name));
  }
  caches.num_layers = std::max(caches.num_layers, found.layer + 1);
}

Caches caches_among(const std::vector<Port>& ports) {
  Caches caches;
  for (const Port& port : ports) {
    if (const std::optional<CachePort> found = cache_port(port)) add_port(*found, caches);
  }
  if (caches.num_layers == 0) fail_for("no cache");
  return caches;
}

/// The inputs by genai's names, which are Transformers'.
Json inputs_of(const std::vector<Port>& ports, const Caches& caches) {
  Json inputs = {{"past_key_names", caches.keys}, {"past_value_names", caches.values}};
  for (const Port& port : ports) {
    if (cache_port(port)) continue;
    const bool known =
        port.name == "input_ids" || port.name == "attention_mask" || port.name == "position_ids";
    if (!known || port.dtype != DType::kI64) fail_for(fmt::format("the input '{}'", port.name));
    inputs[port.name] = port.name;
  }
  return inputs;
}

/// Ids of special tokens: generation_config.json's, else config.json's.
std::vector<int64_t> ids(std::string_view key, const Config& generation, const Config& config) {
  return generation.has(key) ? generation.integers(key) : config.integers(key);
}

void set_special_tokens(const Config& generation, const Config& config, Json& model) {
  const std::vector<int64_t> eos = ids("eos_token_id", generation, config);
  const std::vector<int64_t> bos = ids("bos_token_id", generation, config);
  std::vector<int64_t> pad = ids("pad_token_id", generation, config);
  if (pad.empty()) pad = eos;
  if (!eos.empty()) model["eos_token_id"] = eos.size() == 1 ? Json(eos[0]) : Json(eos);
  if (!bos.empty()) model["bos_token_id"] = bos[0];
  model["pad_token_id"] = pad.empty() ? 0 : pad[0];
}

Json search(const Config& generation, int64_t context_length, bool in_place) {
  return {{"do_sample", generation.boolean("do_sample", false)},
          {"max_length", std::min(context_length, kLongestCache)},
          {"num_beams", 1},
          {"past_present_share_buffer", in_place},
          {"repetition_penalty", generation.number("repetition_penalty", 1)},
          {"temperature", generation.number("temperature", 1)},
          {"top_k", generation.integer("top_k", 50)},
          {"top_p", generation.number("top_p", 1)}};
}

}  // namespace

std::string genai_config(const Artifact& artifact, const onnx::OnnxProgram& onnx_program) {
  const Manifest::Component* decode = nullptr;
  for (const Manifest::Component& component : artifact.manifest.components) {
    if (component.name == "encoder") fail_for("an encoder");
    if (component.name == "decode") decode = &component;
  }
  if (decode == nullptr) fail_for("no component 'decode'");
  const auto found = std::ranges::find(artifact.components, decode->name,
                                       [](const auto& component) { return component.first; });
  const ExportedProgram& program = found->second.program;
  const Caches past = caches_among(program.inputs()), present = caches_among(program.outputs());
  const Config config = Config::parse("config.json", artifact.small_files.config);
  const std::string& generation_text = artifact.small_files.generation_config;
  const Config generation =
      generation_text.empty() ? Config() : Config::parse("generation_config.json", generation_text);

  Json model = {{"type", "decoder"},
                {"vocab_size", size_of(program.outputs().front(), 2)},
                {"context_length", config.integer("max_position_embeddings", kLongestCache)}};
  set_special_tokens(generation, config, model);
  Json& decoder = model["decoder"];
  decoder = {{"filename", decode->file},
             {"head_size", size_of(*past.first, 3)},
             {"num_hidden_layers", past.num_layers},
             {"num_key_value_heads", size_of(*past.first, 1)},
             {"session_options", {{"provider_options", Json::array()}}},
             {"inputs", inputs_of(program.inputs(), past)},
             {"outputs",
              {{"logits", program.outputs().front().name},
               {"present_key_names", present.keys},
               {"present_value_names", present.values}}}};
  for (const std::string_view key : {"hidden_size", "num_attention_heads"}) {
    if (const auto size = config.find_integer(key)) decoder[std::string(key)] = *size;
  }
  const bool shares =
      onnx_program.in_place(decode->name).size() == 2 * static_cast<size_t>(past.num_layers);
  const Json whole = {{"model", model},
                      {"search", search(generation, model["context_length"], shares)}};
  return to_python_json(whole, true) + "\n";
}

}  // namespace tranship::exporters

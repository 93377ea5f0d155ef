#include "checkpoint/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/gguf_dequantize.h"

namespace tranship {
namespace {

constexpr std::string_view kRopeFactors = "rope_freqs.weight";

struct Architecture {
  std::string_view name;  // general.architecture
  std::string_view model_type;
  std::string_view model_class;
};

constexpr std::array<Architecture, 3> kArchitectures = {{
    {"llama", "llama", "LlamaForCausalLM"},
    {"qwen2", "qwen2", "Qwen2ForCausalLM"},
    {"qwen3", "qwen3", "Qwen3ForCausalLM"},
}};

// Keys under the architecture's name that are read below, or change nothing in what is computed.
constexpr std::array<std::string_view, 23> kKnownKeys = {"context_length",
                                                         "embedding_length",
                                                         "block_count",
                                                         "feed_forward_length",
                                                         "vocab_size",
                                                         "attention.head_count",
                                                         "attention.head_count_kv",
                                                         "attention.layer_norm_rms_epsilon",
                                                         "attention.key_length",
                                                         "attention.value_length",
                                                         "attention.sliding_window",
                                                         "rope.freq_base",
                                                         "rope.dimension_count",
                                                         "rope.scaling.type",
                                                         "rope.scaling.factor",
                                                         "rope.scaling.original_context_length",
                                                         "rope.scaling.yarn_beta_fast",
                                                         "rope.scaling.yarn_beta_slow",
                                                         "rope.scaling.finetuned",
                                                         "rope.scale_linear",
                                                         "tensor_data_layout",
                                                         "expert_count",
                                                         "expert_used_count"};

const Architecture& architecture(const GgufFile& gguf) {
  const auto found = gguf.find_text("general.architecture");
  if (!found)
    fail(ErrorKind::kCorrupt, "[gguf] '{}': metadata 'general.architecture' is absent",
         gguf.label());
  std::vector<std::string> known;
  for (const Architecture& row : kArchitectures) {
    if (row.name == *found) return row;
    known.emplace_back(row.name);
  }
  fail(ErrorKind::kUnsupported,
       "[gguf] '{}' holds a model of the architecture '{}'; {} can be read from GGUF. Use the "
       "model's safetensors "
       "checkpoint instead",
       gguf.label(), *found, listed(known));
}

/// The metadata under the architecture's name ("llama.block_count").
class Keys {
 public:
  Keys(const GgufFile& gguf, std::string_view prefix) : gguf_(gguf), prefix_(prefix) {}

  std::string key(std::string_view name) const { return fmt::format("{}.{}", prefix_, name); }

  std::optional<int64_t> find_size(std::string_view name) const {
    const auto found = gguf_.find_integer(key(name));
    if (found && (*found < 1 || *found > INT32_MAX)) {
      fail(ErrorKind::kCorrupt, "[gguf] '{}': metadata '{}' is {}, expected 1 to {}", gguf_.label(),
           key(name), *found, INT32_MAX);
    }
    return found;
  }

  int64_t size(std::string_view name) const {
    const auto found = find_size(name);
    if (!found) fail_absent(name);
    return *found;
  }

  std::optional<double> find_positive(std::string_view name) const {
    const auto found = gguf_.find_number(key(name));
    if (found && !(*found > 0 && std::isfinite(*found))) {
      fail(ErrorKind::kCorrupt, "[gguf] '{}': metadata '{}' is {}, expected a number over 0",
           gguf_.label(), key(name), *found);
    }
    return found;
  }

  double positive(std::string_view name) const {
    const auto found = find_positive(name);
    if (!found) fail_absent(name);
    return *found;
  }

  template <class Found, class Honoured>
  [[noreturn]] void fail_unsupported(std::string_view name, const Found& found,
                                     const Honoured& honoured) const {
    fail(ErrorKind::kUnsupported, "[gguf] '{}': metadata '{}' is {}, but only {} is supported",
         gguf_.label(), key(name), found, honoured);
  }

  void check_unknown() const {
    std::vector<std::string> unknown;
    for (const auto& [name, value] : gguf_.metadata()) {
      if (!name.starts_with(prefix_ + ".")) continue;
      const auto rest = std::string_view(name).substr(prefix_.size() + 1);
      if (std::find(kKnownKeys.begin(), kKnownKeys.end(), rest) == kKnownKeys.end())
        unknown.push_back(name);
    }
    if (unknown.empty()) return;
    fail(ErrorKind::kUnsupported,
         "[gguf] '{}': the metadata {} may change what the model computes and is not understood. "
         "Use the model's "
         "safetensors checkpoint instead",
         gguf_.label(), listed(unknown));
  }

  const GgufFile& gguf() const { return gguf_; }

 private:
  [[noreturn]] void fail_absent(std::string_view name) const {
    fail(ErrorKind::kCorrupt, "[gguf] '{}': metadata '{}' is absent", gguf_.label(), key(name));
  }

  const GgufFile& gguf_;
  std::string prefix_;
};

struct Heads {
  int64_t num_query;
  int64_t num_key_value;
  int64_t dim;
};

Heads heads(const Keys& keys) {
  Heads heads{};
  heads.num_query = keys.size("attention.head_count");
  heads.num_key_value = keys.find_size("attention.head_count_kv").value_or(heads.num_query);
  const int64_t hidden = keys.size("embedding_length");
  const auto key_length = keys.find_size("attention.key_length");
  if (!key_length && hidden % heads.num_query != 0) {
    fail(ErrorKind::kCorrupt, "[gguf] '{}': {} heads do not divide the hidden size {}",
         keys.gguf().label(), heads.num_query, hidden);
  }
  heads.dim = key_length.value_or(hidden / heads.num_query);
  const int64_t value_length = keys.find_size("attention.value_length").value_or(heads.dim);
  if (value_length != heads.dim)
    keys.fail_unsupported("attention.value_length", value_length, heads.dim);
  const int64_t rotated = keys.find_size("rope.dimension_count").value_or(heads.dim);
  if (rotated != heads.dim) keys.fail_unsupported("rope.dimension_count", rotated, heads.dim);
  return heads;
}

/// What Llama 3.1's scaling divides each rotary frequency by.
/// Source: modeling_rope_utils.py _compute_llama3_parameters (5.23).
struct Llama3Scaling {
  double factor;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;

  double divisor(double wavelength) const {
    const double cycles = static_cast<double>(original_max_position_embeddings) / wavelength;
    if (cycles > high_freq_factor) return 1;
    if (cycles < low_freq_factor) return factor;
    const double smooth = (cycles - low_freq_factor) / (high_freq_factor - low_freq_factor);
    return 1 / ((1 - smooth) / factor + smooth);
  }
};

std::vector<float> read_factors(const GgufFile& gguf, const GgufTensor& tensor, int64_t head_dim) {
  if (tensor.type != GgmlType::kF32 || tensor.shape != std::vector<int64_t>{head_dim / 2}) {
    fail(ErrorKind::kUnsupported, "[gguf] '{}': tensor '{}' is not a list of {} f32", gguf.label(),
         tensor.name, head_dim / 2);
  }
  std::vector<float> factors(static_cast<size_t>(head_dim / 2));
  std::memcpy(factors.data(), tensor.range.bytes().data(), tensor.range.size);
  return factors;
}

/// The parameters whose formula gives the factors in the file. Every released Llama 3 differs in
/// `factor` only, which is the largest of them. The converter computed in f32: a few parts in 10^7,
/// and the formula's slope makes at most a hundred times that of it where the wavelength is near
/// the border.
Json llama3_scaling(const GgufFile& gguf, const GgufTensor& tensor, const Heads& heads,
                    double theta) {
  const std::vector<float> factors = read_factors(gguf, tensor, heads.dim);
  const Llama3Scaling scaling{
      .factor = static_cast<double>(*std::max_element(factors.begin(), factors.end()))};
  for (size_t i = 0; i < factors.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(heads.dim);
    const double expected = scaling.divisor(2 * std::numbers::pi * std::pow(theta, exponent));
    if (std::abs(static_cast<double>(factors[i]) - expected) <= 1e-5 * expected) continue;
    fail(ErrorKind::kUnsupported,
         "[gguf] '{}': the frequency factors in '{}' are not those of Llama 3 with factor {} "
         "(element {} is {}, "
         "expected {}). Use the model's safetensors checkpoint instead",
         gguf.label(), tensor.name, scaling.factor, i, factors[i], expected);
  }
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
}

Json yarn_scaling(const Keys& keys) {
  Json rope = {
      {"rope_type", "yarn"},
      {"factor", keys.positive("rope.scaling.factor")},
      {"original_max_position_embeddings", keys.size("rope.scaling.original_context_length")}};
  if (const auto beta = keys.find_positive("rope.scaling.yarn_beta_fast"))
    rope["beta_fast"] = *beta;
  if (const auto beta = keys.find_positive("rope.scaling.yarn_beta_slow"))
    rope["beta_slow"] = *beta;
  return rope;
}

Json rope_parameters(const Keys& keys, const Heads& heads) {
  const double theta = keys.find_positive("rope.freq_base").value_or(10000.0);
  const std::string old_linear = keys.gguf().has(keys.key("rope.scale_linear")) ? "linear" : "none";
  const std::string type(keys.gguf().find_text(keys.key("rope.scaling.type")).value_or(old_linear));
  const GgufTensor* factors = keys.gguf().find_tensor(kRopeFactors);
  Json rope = {{"rope_type", "default"}};
  if (type == "linear") {
    const auto factor = keys.find_positive("rope.scaling.factor");
    rope = {{"rope_type", "linear"},
            {"factor", factor ? *factor : keys.positive("rope.scale_linear")}};
  } else if (type == "yarn") {
    rope = yarn_scaling(keys);
  } else if (type != "none") {
    keys.fail_unsupported("rope.scaling.type", type, "none, linear or yarn");
  }
  if (factors != nullptr) {
    if (type != "none")
      keys.fail_unsupported("rope.scaling.type", type, "none beside a tensor rope_freqs.weight");
    rope = llama3_scaling(keys.gguf(), *factors, heads, theta);
  }
  rope["rope_theta"] = theta;
  return rope;
}

int64_t vocabulary_size(const Keys& keys) {
  if (const auto size = keys.find_size("vocab_size")) return *size;
  if (const auto count = keys.gguf().find_count("tokenizer.ggml.tokens"))
    return static_cast<int64_t>(*count);
  const GgufTensor* embedding = keys.gguf().find_tensor("token_embd.weight");
  return embedding != nullptr ? embedding->shape.front() : keys.size("vocab_size");
}

bool has_suffix(const GgufFile& gguf, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(gguf.tensors().begin(), gguf.tensors().end(), [&](const GgufTensor& tensor) {
    return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) {
      return tensor.name.starts_with("blk.") && tensor.name.ends_with(suffix);
    });
  });
}

void set_token_ids(const GgufFile& gguf, Json& json) {
  for (const std::string_view token : {"bos", "eos", "padding"}) {
    const auto id = gguf.find_integer(fmt::format("tokenizer.ggml.{}_token_id", token));
    if (id) json[token == "padding" ? "pad_token_id" : fmt::format("{}_token_id", token)] = *id;
  }
}

void check_supported(const GgufFile& gguf, const Keys& keys) {
  const auto type = gguf.find_text("general.type").value_or("model");
  if (type != "model") {
    fail(ErrorKind::kUnsupported,
         "[gguf] '{}' holds a part of the type '{}'; a whole model is needed", gguf.label(), type);
  }
  if (gguf.find_integer("split.count").value_or(1) > 1) {
    fail(ErrorKind::kUnsupported,
         "[gguf] '{}' is one of {} parts of a model. Join them first: llama-gguf-split --merge "
         "FIRST_PART.gguf WHOLE.gguf",
         gguf.label(), *gguf.find_integer("split.count"));
  }
  if (const auto experts = gguf.find_integer(keys.key("expert_count")); experts.value_or(0) != 0) {
    keys.fail_unsupported("expert_count", *experts, 0);
  }
  keys.check_unknown();
}

// Names.

struct Rename {
  std::string_view gguf;
  std::string_view transformers;
};

constexpr std::array<Rename, 3> kTopNames = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
}};

constexpr std::array<Rename, 11> kLayerNames = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

template <size_t kSize>
std::optional<std::string_view> find_name(const std::array<Rename, kSize>& names,
                                          std::string_view gguf) {
  for (const Rename& row : names) {
    if (row.gguf == gguf) return row.transformers;
  }
  return std::nullopt;
}

/// A tensor's name taken apart: "blk.3.attn_q.weight" is layer "3", part "attn_q", suffix
/// ".weight".
struct TensorName {
  std::string_view layer;  // empty at the top
  std::string_view part;
  std::string_view suffix;
};

std::optional<TensorName> split_name(std::string_view name) {
  TensorName split;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  split.suffix = name.substr(dot);
  if (split.suffix != ".weight" && split.suffix != ".bias") return std::nullopt;
  split.part = name.substr(0, dot);
  if (!split.part.starts_with("blk.")) return split;
  const std::string_view rest = split.part.substr(4);
  const size_t end = rest.find('.');
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  split.layer = rest.substr(0, end);
  split.part = rest.substr(end + 1);
  const bool number = std::all_of(split.layer.begin(), split.layer.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (!number || (split.layer.size() > 1 && split.layer.front() == '0')) return std::nullopt;
  return split;
}

std::optional<std::string> find_transformers_name(const TensorName& name) {
  if (name.layer.empty()) {
    const auto part = find_name(kTopNames, name.part);
    return part ? std::optional(fmt::format("{}{}", *part, name.suffix)) : std::nullopt;
  }
  const auto part = find_name(kLayerNames, name.part);
  return part ? std::optional(fmt::format("model.layers.{}.{}{}", name.layer, *part, name.suffix))
              : std::nullopt;
}

/// llama.cpp rotates neighbours where Transformers rotates halves, so its converter interleaves the
/// halves of each head. Row h * D + j * D/2 + i of Transformers is row h * D + 2 i + j here.
/// Source: LlamaTensorProcessor._reverse_permute_weights (5.23).
TensorSourcePtr unpermuted(const GgufFile& gguf, TensorSourcePtr source, int64_t num_heads) {
  const int64_t rows = source->shape().front();
  if (rows % (2 * num_heads) != 0) {
    fail(ErrorKind::kCorrupt,
         "[gguf] '{}': tensor '{}' has {} rows, which is not an even number for each of {} heads",
         gguf.label(), source->name(), rows, num_heads);
  }
  const int64_t half = rows / num_heads / 2;
  return permute_rows_source(std::move(source), [half](int64_t row) {
    const int64_t within = row % (2 * half);
    return row - within + 2 * (within % half) + within / half;
  });
}

void check_types(const GgufFile& gguf) {
  std::set<std::string> unsupported;
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (!can_read(tensor.type)) unsupported.emplace(name(tensor.type));
  }
  if (unsupported.empty()) return;
  fail(ErrorKind::kUnsupported,
       "[gguf] '{}' has tensors of the types {}; supported are F32 F16 BF16 F64 I8 I16 I32 I64 "
       "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 "
       "Q4_K Q5_K Q6_K. Take another quantization of the model (Q4_K_M or Q8_0), or its "
       "safetensors checkpoint",
       gguf.label(), listed({unsupported.begin(), unsupported.end()}));
}

}  // namespace

std::string gguf_config_json(const GgufFile& gguf) {
  const Architecture& family = architecture(gguf);
  const Keys keys(gguf, family.name);
  check_supported(gguf, keys);
  const Heads head = heads(keys);
  const auto window = keys.find_size("attention.sliding_window");
  if (window && family.name != "llama")
    keys.fail_unsupported("attention.sliding_window", *window, "none");

  Json config = {
      {"architectures",
       Json::array({window ? "MistralForCausalLM" : std::string(family.model_class)})},
      {"model_type", window ? "mistral" : std::string(family.model_type)},
      {"dtype", "float32"},
      {"hidden_act", "silu"},
      {"hidden_size", keys.size("embedding_length")},
      {"intermediate_size", keys.size("feed_forward_length")},
      {"num_hidden_layers", keys.size("block_count")},
      {"num_attention_heads", head.num_query},
      {"num_key_value_heads", head.num_key_value},
      {"rms_norm_eps", keys.positive("attention.layer_norm_rms_epsilon")},
      {"rope_parameters", rope_parameters(keys, head)},
      {"max_position_embeddings", keys.size("context_length")},
      {"vocab_size", vocabulary_size(keys)},
      {"tie_word_embeddings", gguf.find_tensor("output.weight") == nullptr},
  };
  // Qwen2's configuration knows no head_dim: there the quotient is meant, unless one is given.
  if (family.name != "qwen2" || head.dim * head.num_query != keys.size("embedding_length"))
    config["head_dim"] = head.dim;
  if (window) config["sliding_window"] = *window;
  if (family.name != "qwen2" && !window) {
    config["attention_bias"] =
        has_suffix(gguf, {".attn_q.bias", ".attn_k.bias", ".attn_v.bias", ".attn_output.bias"});
  }
  if (config["model_type"] == "llama") {
    config["mlp_bias"] = has_suffix(gguf, {".ffn_gate.bias", ".ffn_up.bias", ".ffn_down.bias"});
  }
  set_token_ids(gguf, config);
  return to_python_json(config, true);
}

std::string gguf_generation_config_json(const GgufFile& gguf) {
  Json json = {{"_from_model_config", true},
               {"output_attentions", false},
               {"output_hidden_states", false},
               {"use_cache", true}};
  set_token_ids(gguf, json);
  return to_python_json(json, true);
}

std::map<std::string, TensorSourcePtr> gguf_tensors(const GgufFile& gguf) {
  check_types(gguf);
  const Architecture& family = architecture(gguf);
  const Heads head = heads(Keys(gguf, family.name));
  std::map<std::string, TensorSourcePtr> tensors;
  std::vector<std::string> unknown;
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (tensor.name == kRopeFactors) continue;
    const auto split = split_name(tensor.name);
    const auto renamed = split ? find_transformers_name(*split) : std::nullopt;
    if (!renamed) {
      unknown.push_back(tensor.name);
      continue;
    }
    TensorSourcePtr source = ggml_source(tensor.name, tensor.type, tensor.shape, tensor.range);
    if (family.name == "llama" && split->part == "attn_q")
      source = unpermuted(gguf, std::move(source), head.num_query);
    if (family.name == "llama" && split->part == "attn_k")
      source = unpermuted(gguf, std::move(source), head.num_key_value);
    tensors.emplace(*renamed, std::move(source));
  }
  if (!unknown.empty()) {
    fail(ErrorKind::kUnsupported, "[gguf] '{}': a {} model has no use for the tensors {}",
         gguf.label(), family.name, listed(unknown));
  }
  return tensors;
}

}  // namespace tranship

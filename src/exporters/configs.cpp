// Configurations as JSON: Transformers' names first, and ours only where they differ from their
// defaults, so that what Transformers knows it reads back.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "formats/onnx/fusions/provider.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

[[noreturn]] void fail_type(const std::string& key, const Json& value, std::string_view expected) {
  fail(ErrorKind::kInvalidArgument, "[config] {} is {}, expected {}", key, value.dump(), expected);
}

std::string child(const std::string& key, const std::string& name) {
  return fmt::format("{}.{}", key, name);
}

bool read_flag(const std::string& key, const Json& value) {
  if (!value.is_boolean()) fail_type(key, value, "true or false");
  return value.get<bool>();
}

std::string read_name(const std::string& key, const Json& value) {
  if (!value.is_string()) fail_type(key, value, "a string");
  return value.get<std::string>();
}

int64_t read_integer(const std::string& key, const Json& value) {
  if (!value.is_number_integer()) fail_type(key, value, "a whole number");
  return value.get<int64_t>();
}

std::vector<std::string> read_names(const std::string& key, const Json& value) {
  if (!value.is_array()) fail_type(key, value, "a list of strings");
  std::vector<std::string> names;
  for (const Json& item : value) names.push_back(read_name(key, item));
  return names;
}

void require_object(const std::string& key, const Json& value) {
  if (!value.is_object()) fail_type(key, value, "an object");
}

/// Takes `prefix` off the front, if it is there.
bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Takes a number off the front; nothing if there is none.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

/// What Python prints: "Dim('batch', min=1, max=32)".
std::optional<DynamicDim> parse_printed_dim(std::string_view text) {
  if (!skip(text, "Dim('")) return std::nullopt;
  DynamicDim dim{std::string(text.substr(0, text.find('\'')))};
  if (dim.name.empty() || !skip(text, dim.name) || !skip(text, "'")) return std::nullopt;
  if (skip(text, ", min=")) {
    const std::optional<int64_t> min = take_number(text);
    if (!min) return std::nullopt;
    dim.min = *min;
  }
  if (skip(text, ", max=")) {
    dim.max = take_number(text);
    if (!dim.max) return std::nullopt;
  }
  return text == ")" ? std::optional(dim) : std::nullopt;
}

/// torch.export.Dim takes such names only.
bool is_identifier(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kDigits = "0123456789";
  return !text.empty() && kLetters.find(text.front()) != text.npos &&
         std::ranges::all_of(text, [&](char c) {
           return kLetters.find(c) != kLetters.npos || kDigits.find(c) != kDigits.npos;
         });
}

/// {"name": "batch", "min": 1, "max": 32}, or as Python prints it.
DynamicDim read_dim(const std::string& key, const Json& value, std::string name) {
  if (value.is_string()) {
    const std::optional<DynamicDim> printed = parse_printed_dim(value.get<std::string>());
    if (!printed || !is_identifier(printed->name))
      fail_type(key, value, "a dimension such as Dim('batch', min=1, max=32)");
    return *printed;
  }
  DynamicDim dim{std::move(name)};
  require_object(key, value);
  for (const auto& [field, item] : value.items()) {
    const std::string path = child(key, field);
    if (field == "name") {
      dim.name = read_name(path, item);
    } else if (field == "min") {
      dim.min = read_integer(path, item);
    } else if (field == "max") {
      if (!item.is_null()) dim.max = read_integer(path, item);
    } else {
      fail(ErrorKind::kInvalidArgument,
           "[config] {} is not known: a dimension has name, min and max", path);
    }
  }
  if (dim.name.empty()) fail(ErrorKind::kInvalidArgument, "[config] {} has no name", key);
  if (!is_identifier(dim.name)) {
    fail(ErrorKind::kInvalidArgument,
         "[config] {}: the name '{}' is not made of letters, digits and _", key, dim.name);
  }
  return dim;
}

int64_t read_axis(const std::string& key, std::string_view text) {
  std::string_view rest = text;
  const std::optional<int64_t> axis = take_number(rest);
  if (!axis || !rest.empty()) {
    fail(ErrorKind::kInvalidArgument, "[config] {}: '{}' is not the number of an axis", key, text);
  }
  return *axis;
}

std::map<std::string, std::map<int64_t, DynamicDim>> read_dynamic_shapes(const std::string& key,
                                                                         const Json& value) {
  require_object(key, value);
  std::map<std::string, std::map<int64_t, DynamicDim>> shapes;
  for (const auto& [input, axes] : value.items()) {
    const std::string path = child(key, input);
    if (axes.is_null()) continue;  // as in Python: all axes as in the samples
    require_object(path, axes);
    for (const auto& [axis, dim] : axes.items()) {
      if (!dim.is_null())
        shapes[input].emplace(read_axis(path, axis), read_dim(child(path, axis), dim, ""));
    }
  }
  return shapes;
}

std::map<std::string, DynamicDim> read_dims(const std::string& key, const Json& value) {
  require_object(key, value);
  std::map<std::string, DynamicDim> dims;
  for (const auto& [name, dim] : value.items())
    dims.emplace(name, read_dim(child(key, name), dim, name));
  return dims;
}

std::map<std::string, int64_t> read_sizes(const std::string& key, const Json& value) {
  require_object(key, value);
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, size] : value.items())
    sizes.emplace(name, read_integer(child(key, name), size));
  return sizes;
}

DType read_dtype(const std::string& key, const Json& value) {
  const std::optional<DType> dtype = find_dtype(read_name(key, value));
  if (!dtype) fail_type(key, value, "a dtype: f32, f16 or bf16");
  return *dtype;
}

WeightsPlacement read_weights(const std::string& key, const Json& value) {
  const std::string text = read_name(key, value);
  if (text == "copy") return WeightsPlacement::kCopy;
  if (text == "reference") return WeightsPlacement::kReference;
  fail_type(key, value, "\"copy\" or \"reference\"");
}

/// Whatever fits an int: which opsets can be written is said by who writes them.
int read_opset(const std::string& key, const Json& value) {
  const int64_t opset = read_integer(key, value);
  if (opset < 0 || opset > std::numeric_limits<int>::max())
    fail_type(key, value, "the number of an opset");
  return static_cast<int>(opset);
}

/// Sets a field that all of Transformers' configurations have; false if it has none of that name.
/// Null is a field's default.
template <class Config>
bool set_common(const std::string& key, const Json& value, Config& config) {
  if (key == "strict") {
    read_flag(key, value);  // how Python traces: nothing is traced here
  } else if (key == "quantizer") {
    if (!value.is_null())
      fail(ErrorKind::kUnsupported, "[config] quantizer: quantization is not built in");
  } else if (key == "dynamic") {
    config.dynamic = read_flag(key, value);
  } else if (key == "dynamic_shapes") {
    if (!value.is_null()) config.dynamic_shapes = read_dynamic_shapes(key, value);
  } else if (key == "prefer_deferred_runtime_asserts_over_guards") {
    config.prefer_deferred_runtime_asserts_over_guards = read_flag(key, value);
  } else {
    return false;
  }
  return true;
}

/// The same for fields of ours.
template <class Config>
bool set_own(const std::string& key, const Json& value, Config& config) {
  if (key == "static_shapes") {
    config.static_shapes = read_sizes(key, value);
  } else if (key == "dims") {
    config.dims = read_dims(key, value);
  } else if (key == "dtype") {
    if (!value.is_null()) config.dtype = read_dtype(key, value);
  } else if (key == "architecture") {
    config.architecture = read_name(key, value);
  } else if (key == "graph_inputs") {
    if (!value.is_null()) config.graph_inputs = read_names(key, value);
  } else if (key == "cache_name") {
    config.cache_name = read_name(key, value);
  } else if (key == "ignored_config_keys") {
    config.ignored_config_keys = read_names(key, value);
  } else {
    return false;
  }
  return true;
}

/// What only ONNX has.
bool set_format_own(const std::string& key, const Json& value, OnnxConfig& config) {
  if (key == "opset_version") {
    if (!value.is_null()) config.opset_version = read_opset(key, value);
  } else if (key == "optimize") {
    config.optimize = read_flag(key, value);
  } else if (key == "ort_fusions") {
    if (!value.is_null()) config.ort_fusions = read_name(key, value);
  } else if (key == "external_data") {
    config.external_data = read_flag(key, value);
  } else if (key == "weights") {
    config.weights = read_weights(key, value);
  } else if (key == "also") {
    config.also = read_names(key, value);
  } else {
    return false;
  }
  return true;
}

/// What only Dynamo has: nothing.
bool set_format_own(const std::string&, const Json&, DynamoConfig&) { return false; }

/// Reads a configuration of a format. `name` is the class's, for messages.
template <class Config>
Config read_config(std::string_view name, std::string_view format, std::string_view json) {
  const Json object = parse_json("config", name, json);
  if (!object.is_object()) fail_type("the configuration", object, "an object");
  Config config;
  std::vector<std::string> unknown;
  for (const auto& [key, value] : object.items()) {
    if (key == "export_format") {
      if (value != format) fail_type(key, value, fmt::format("\"{}\"", format));
    } else if (!set_common(key, value, config) && !set_own(key, value, config) &&
               !set_format_own(key, value, config)) {
      unknown.push_back(key);
    }
  }
  if (!unknown.empty())
    fail(ErrorKind::kInvalidArgument, "[config] {} has no {}", name, listed(unknown));
  return config;
}

void check_fusions(const OnnxConfig& config) {
  if (!config.ort_fusions) return;
  if (!onnx::find_provider(*config.ort_fusions)) {
    fail(ErrorKind::kInvalidArgument,
         "[config] ort_fusions is '{}', expected cpu, cuda, webgpu or dml", *config.ort_fusions);
  }
  if (!config.optimize) {
    fail(ErrorKind::kInvalidArgument,
         "[config] ort_fusions is set and optimize is false: fusions need optimize");
  }
}

std::string printed(const DynamicDim& dim) {
  const std::string max = dim.max ? fmt::format(", max={}", *dim.max) : "";
  return fmt::format("Dim('{}', min={}{})", dim.name, dim.min, max);
}

template <class Config>
Json dynamic_shapes_json(const Config& config) {
  if (config.dynamic_shapes.empty()) return nullptr;
  Json shapes = Json::object();
  for (const auto& [input, axes] : config.dynamic_shapes) {
    for (const auto& [axis, dim] : axes) shapes[input][std::to_string(axis)] = printed(dim);
  }
  return shapes;
}

/// What all formats have: Transformers' fields always, ours where they are not the default.
template <class Config>
Json config_json(std::string_view format, const Config& config) {
  Json json = {{"dynamic", config.dynamic},
               {"dynamic_shapes", dynamic_shapes_json(config)},
               {"export_format", format},
               {"prefer_deferred_runtime_asserts_over_guards",
                config.prefer_deferred_runtime_asserts_over_guards},
               {"strict", false}};
  for (const auto& [name, size] : config.static_shapes) json["static_shapes"][name] = size;
  for (const auto& [name, dim] : config.dims) {
    json["dims"][name] = {{"name", dim.name.empty() ? name : dim.name}, {"min", dim.min}};
    if (dim.max) json["dims"][name]["max"] = *dim.max;
  }
  if (config.dtype) json["dtype"] = torch_name(*config.dtype);
  if (!config.architecture.empty()) json["architecture"] = config.architecture;
  if (config.graph_inputs) json["graph_inputs"] = *config.graph_inputs;
  if (config.cache_name != Config().cache_name) json["cache_name"] = config.cache_name;
  if (!config.ignored_config_keys.empty()) json["ignored_config_keys"] = config.ignored_config_keys;
  return json;
}

}  // namespace

OnnxConfig OnnxConfig::from_json(std::string_view json) {
  auto config = read_config<OnnxConfig>("OnnxConfig", OnnxExporter::kExportFormat, json);
  check_fusions(config);
  return config;
}

std::string OnnxConfig::to_json() const {
  Json json = config_json(OnnxExporter::kExportFormat, *this);
  json["opset_version"] = opset_version ? Json(*opset_version) : Json();
  json["optimize"] = optimize;
  json["ort_fusions"] = ort_fusions ? Json(*ort_fusions) : Json();
  if (!external_data) json["external_data"] = false;
  if (weights == WeightsPlacement::kReference) json["weights"] = "reference";
  if (!also.empty()) json["also"] = also;
  return to_python_json(json, true);
}

DynamoConfig DynamoConfig::from_json(std::string_view json) {
  return read_config<DynamoConfig>("DynamoConfig", DynamoExporter::kExportFormat, json);
}

std::string DynamoConfig::to_json() const {
  return to_python_json(config_json(DynamoExporter::kExportFormat, *this), true);
}

}  // namespace tranship

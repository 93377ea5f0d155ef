// What the configurations of all formats have in common, as the code that they share takes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tranship/exporters.h"

namespace tranship::exporters {

/// Any configuration is one of these.
struct ExportOptions {
  template <class Config>
    requires requires(const Config& config) { config.static_shapes; }
  ExportOptions(const Config& config)  // NOLINT(google-explicit-constructor): see above
      : dynamic(config.dynamic),
        dynamic_shapes(config.dynamic_shapes),
        static_shapes(config.static_shapes),
        dims(config.dims),
        dtype(config.dtype),
        architecture(config.architecture),
        graph_inputs(config.graph_inputs),
        cache_name(config.cache_name),
        ignored_config_keys(config.ignored_config_keys),
        config_json(config.to_json()) {}

  bool dynamic;
  std::map<std::string, std::map<int64_t, DynamicDim>> dynamic_shapes;
  std::map<std::string, int64_t> static_shapes;
  std::map<std::string, DynamicDim> dims;
  std::optional<DType> dtype;
  std::string architecture;
  std::optional<std::vector<std::string>> graph_inputs;
  std::string cache_name;
  std::vector<std::string> ignored_config_keys;
  std::string config_json;  // all of it, as export.json records it
};

}  // namespace tranship::exporters

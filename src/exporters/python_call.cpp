#include "exporters/python_call.h"

#include <algorithm>

#include "base/error.h"

namespace tranship::exporters {
namespace {

using pt2::PythonValue;

constexpr std::string_view kCacheModule = "transformers.cache_utils:";

PythonValue cache_object(std::string_view type, PythonValue::Fields attributes) {
  return PythonValue::object(std::string(kCacheModule) + std::string(type), std::move(attributes));
}

bool has_input(const ir::Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.inputs(), [&](const ir::Node* node) {
    return ir::as<ir::Input>(*node->op).name == name;
  });
}

DType dtype_of(const ir::Graph& graph, const std::string& output) {
  const auto found = std::ranges::find(graph.outputs(), output, &ir::Output::name);
  check(found != graph.outputs().end(), "a state is no output of its graph: " + output);
  return graph.type(found->value).dtype;
}

/// A DynamicCache that has seen tokens: keys and values of each layer, in the order of the states.
/// `port`: whether a leaf is what goes in or what comes out.
PythonValue dynamic_cache(const ir::Component& component, std::string ir::State::* port) {
  std::vector<PythonValue> layers;
  for (size_t i = 0; i + 1 < component.states.size(); i += 2) {
    const ir::State &keys = component.states[i], &values = component.states[i + 1];
    layers.push_back(cache_object(
        "DynamicLayer", {{"keys", PythonValue::tensor(keys.*port)},
                         {"values", PythonValue::tensor(values.*port)},
                         {"is_initialized", PythonValue::of(true)},
                         {"dtype", PythonValue::of(dtype_of(*component.graph, keys.output))},
                         {"device", PythonValue::cpu()}}));
  }
  return cache_object("DynamicCache", {{"layers", PythonValue::list(std::move(layers))},
                                       {"layer_class_to_replicate", PythonValue::none()},
                                       {"offloading", PythonValue::of(false)}});
}

}  // namespace

pt2::Call call_of(const tasks::Signature& signature, const ir::Component& component) {
  PythonValue::Fields arguments, fields;
  for (const std::string& name : signature.arguments) {
    arguments.emplace_back(name, has_input(*component.graph, name)
                                     ? PythonValue::tensor(name)
                                     : dynamic_cache(component, &ir::State::input));
  }
  for (size_t i = 0; i < signature.fields.size(); ++i) {
    const std::string& name = signature.fields[i];
    const bool is_cache = signature.num_cache_layers > 0 && i + 1 == signature.fields.size();
    fields.emplace_back(
        name, is_cache ? dynamic_cache(component, &ir::State::output) : PythonValue::tensor(name));
  }
  const bool full_path = signature.output_class.find('.') != std::string::npos;
  const std::string type = full_path ? signature.output_class
                                     : "transformers.modeling_outputs." + signature.output_class;
  return {PythonValue::dict(std::move(arguments)), PythonValue::output(type, std::move(fields))};
}

}  // namespace tranship::exporters

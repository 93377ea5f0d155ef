#include "exporters/python_call.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace tranship::exporters {
namespace {

using pt2::PythonValue;
using tasks::Signature;

PythonValue cache_object(const std::string& type, PythonValue::Fields attributes) {
  return PythonValue::object("transformers.cache_utils:" + type, std::move(attributes));
}

/// A model's output class, with its fields.
PythonValue model_output(const std::string& name, PythonValue::Fields fields) {
  const bool full_path = name.find('.') != std::string::npos;
  return PythonValue::output(full_path ? name : "transformers.modeling_outputs." + name,
                             std::move(fields));
}

/// Builds the caches of a component from its states, found by their names. `port`: whether a leaf
/// is what goes in or what comes out.
class CacheBuilder {
 public:
  CacheBuilder(const Signature& signature, const ir::Component& component,
               const std::map<std::string, int64_t>& example_sizes, std::string ir::State::* port)
      : signature_(signature), component_(component), sizes_(example_sizes), port_(port) {}

  PythonValue cache() const {
    if (signature_.num_cross_layers > 0) return encoder_decoder_cache();
    if (signature_.conv_kernel_size > 0) return state_cache();
    return layers_of(signature_.cache, signature_.num_cache_layers);
  }

 private:
  const ir::State& state(const std::string& name) const {
    const auto found = std::ranges::find(component_.states, name, &ir::State::name);
    check(found != component_.states.end(), "a component has no state " + name);
    return *found;
  }
  PythonValue leaf(const std::string& name) const {
    return PythonValue::tensor(state(name).*port_);
  }
  const ir::Type& type_of(const std::string& name) const {
    const auto& outputs = component_.graph->outputs();
    const auto found = std::ranges::find(outputs, state(name).output, &ir::Output::name);
    check(found != outputs.end(), "a state is no output of its graph: " + name);
    return component_.graph->type(found->value);
  }
  PythonValue dtype_of(const std::string& name) const {
    return PythonValue::of(type_of(name).dtype);
  }

  static PythonValue cache_of(std::vector<PythonValue> layers,
                              const std::string& type = "DynamicCache") {
    return cache_object(type, {{"layers", PythonValue::list(std::move(layers))},
                               {"layer_class_to_replicate", PythonValue::none()},
                               {"offloading", PythonValue::of(false)}});
  }

  PythonValue layers_of(const std::string& name, int64_t num_layers) const {
    return signature_.max_cache_len > 0 ? static_cache(name, num_layers)
                                        : dynamic_cache(name, num_layers);
  }

  /// A DynamicCache that has seen tokens: keys and values of each layer.
  PythonValue dynamic_cache(const std::string& name, int64_t num_layers) const {
    std::vector<PythonValue> layers;
    for (int64_t i = 0; i < num_layers; ++i) {
      const std::string layer = fmt::format("{}.layers.{}.", name, i);
      layers.push_back(cache_object("DynamicLayer", {{"keys", leaf(layer + "keys")},
                                                     {"values", leaf(layer + "values")},
                                                     {"is_initialized", PythonValue::of(true)},
                                                     {"dtype", dtype_of(layer + "keys")},
                                                     {"device", PythonValue::cpu()}}));
    }
    return cache_of(std::move(layers));
  }

  /// A StaticCache whose buffers are there: keys and values of each layer, and how many there are.
  PythonValue static_cache(const std::string& name, int64_t num_layers) const {
    std::vector<PythonValue> layers;
    for (int64_t i = 0; i < num_layers; ++i) {
      const std::string layer = fmt::format("{}.layers.{}.", name, i);
      const ir::Shape &keys = type_of(layer + "keys").shape,
                      &values = type_of(layer + "values").shape;
      const auto size = [&](const ir::Dim& dim) { return PythonValue::of(dim.evaluate(sizes_)); };
      layers.push_back(
          cache_object("StaticLayer", {{"keys", leaf(layer + "keys")},
                                       {"values", leaf(layer + "values")},
                                       {"is_initialized", PythonValue::of(true)},
                                       {"max_cache_len", size(keys[2])},
                                       {"cumulative_length", leaf(layer + "cumulative_length")},
                                       {"dtype", dtype_of(layer + "keys")},
                                       {"device", PythonValue::cpu()},
                                       {"batch_size", size(keys[0])},
                                       {"num_heads", size(keys[1])},
                                       {"v_head_dim", size(values[3])},
                                       {"k_head_dim", size(keys[3])}}));
    }
    return cache_of(std::move(layers), "StaticCache");
  }

  /// A DynamicCache of layers that keep a convolution's window and a scan's state.
  PythonValue state_cache() const {
    const auto only = [](PythonValue value) { return PythonValue::numbered({std::move(value)}); };
    std::vector<PythonValue> layers;
    for (int64_t i = 0; i < signature_.num_cache_layers; ++i) {
      const std::string layer = fmt::format("{}.layers.{}.", signature_.cache, i);
      layers.push_back(
          cache_object("LinearAttentionLayer",
                       {{"number_of_states", PythonValue::of(int64_t{1})},
                        {"conv_states", only(leaf(layer + "conv_states.0"))},
                        {"recurrent_states", only(leaf(layer + "recurrent_states.0"))},
                        {"is_conv_states_initialized", only(PythonValue::of(true))},
                        {"is_recurrent_states_initialized", only(PythonValue::of(true))},
                        {"has_previous_state", only(PythonValue::of(true))},
                        {"conv_kernel_size", only(PythonValue::of(signature_.conv_kernel_size))},
                        {"device", PythonValue::cpu()},
                        {"dtype", dtype_of(layer + "conv_states.0")},
                        {"record_past", PythonValue::of(false)}}));
    }
    return cache_of(std::move(layers));
  }

  PythonValue encoder_decoder_cache() const {
    const std::string &name = signature_.cache, self = name + ".self_attention_cache",
                      cross = name + ".cross_attention_cache";
    const auto num_cross = static_cast<size_t>(signature_.num_cross_layers);
    return cache_object("EncoderDecoderCache",
                        {{"self_attention_cache", layers_of(self, signature_.num_cache_layers)},
                         {"cross_attention_cache", layers_of(cross, signature_.num_cross_layers)},
                         {"is_updated", PythonValue::numbered(std::vector<PythonValue>(
                                            num_cross, PythonValue::of(true)))}});
  }

  const Signature& signature_;
  const ir::Component& component_;
  const std::map<std::string, int64_t>& sizes_;
  std::string ir::State::* port_;
};

bool has_input(const ir::Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.inputs(), [&](const ir::Node* node) {
    return ir::as<ir::Input>(*node->op).name == name;
  });
}

}  // namespace

pt2::PythonCall call_of(const Signature& signature, const ir::Component& component,
                        const std::map<std::string, int64_t>& example_sizes) {
  constexpr std::string_view kEncoderState = "last_hidden_state";
  PythonValue::Fields arguments, fields;
  for (const std::string& name : signature.arguments) {
    PythonValue& value = arguments.emplace_back(name, PythonValue::none()).second;
    if (has_input(*component.graph, name)) {
      value = PythonValue::tensor(name);
    } else if (name == signature.cache) {
      value = CacheBuilder(signature, component, example_sizes, &ir::State::input).cache();
    } else {
      const std::string state(kEncoderState);
      value = model_output(signature.encoder_output_class,
                           {{state, PythonValue::tensor(name + "." + state)}});
    }
  }
  for (const std::string& name : signature.fields) {
    const CacheBuilder made(signature, component, example_sizes, &ir::State::output);
    fields.emplace_back(name, name == signature.cache ? made.cache() : PythonValue::tensor(name));
  }
  return {PythonValue::dict(std::move(arguments)),
          model_output(signature.output_class, std::move(fields))};
}

}  // namespace tranship::exporters

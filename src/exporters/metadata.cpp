#include "exporters/metadata.h"

#include "base/error.h"
#include "base/json.h"
#include "tranship/version.h"

namespace tranship::exporters {
namespace {

constexpr std::string_view kCacheClass = "transformers.cache_utils:DynamicCache";
constexpr std::string_view kEncoderDecoderCacheClass =
    "transformers.cache_utils:EncoderDecoderCache";
constexpr std::string_view kStateLayerClass = "transformers.cache_utils:LinearAttentionLayer";
constexpr std::string_view kLayerClass = "transformers.cache_utils:DynamicLayer";

// PyTorch's tree specs: a tree of {type, context, children_spec}; a tensor is a leaf. A context is
// JSON within JSON.

Json leaf() { return {{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}}; }

Json tree(std::string_view type, const Json& context, Json children) {
  return {{"type", type},
          {"context", to_python_json_line(context)},
          {"children_spec", std::move(children)}};
}

Json object_state(std::string_view type, Json state) {
  return {{"_t", "obj"}, {"p", type}, {"s", std::move(state)}};
}

Json tensor_state(int64_t index) { return {{"_t", "tensor"}, {"i", index}}; }

Json cache_of(Json layers) {
  return object_state(kCacheClass, {{"layers", std::move(layers)},
                                    {"layer_class_to_replicate", nullptr},
                                    {"offloading", false}});
}

/// A DynamicCache that has seen tokens: keys and values of each layer, from tensor `first` on.
Json dynamic_cache(int64_t num_layers, int64_t first, DType dtype) {
  Json layers = Json::array();
  for (int64_t i = 0; i < num_layers; ++i) {
    layers.push_back(
        object_state(kLayerClass, {{"keys", tensor_state(first + 2 * i)},
                                   {"values", tensor_state(first + 2 * i + 1)},
                                   {"is_initialized", true},
                                   {"dtype", {{"_t", "dtype"}, {"n", torch_name(dtype)}}},
                                   {"device", {{"_t", "device"}, {"s", "cpu"}}}}));
  }
  return cache_of(std::move(layers));
}

/// What a layer has for its only state.
Json only(Json value) {
  return {{"_t", "items"}, {"v", Json::array({Json::array({0, std::move(value)})})}};
}

/// A DynamicCache of layers that keep a convolution's window and a scan's state.
Json state_cache(int64_t num_layers, int64_t conv_kernel_size, DType dtype) {
  Json layers = Json::array();
  for (int64_t i = 0; i < num_layers; ++i) {
    layers.push_back(
        object_state(kStateLayerClass, {{"number_of_states", 1},
                                        {"conv_states", only(tensor_state(2 * i))},
                                        {"recurrent_states", only(tensor_state(2 * i + 1))},
                                        {"is_conv_states_initialized", only(true)},
                                        {"is_recurrent_states_initialized", only(true)},
                                        {"has_previous_state", only(true)},
                                        {"conv_kernel_size", only(conv_kernel_size)},
                                        {"device", {{"_t", "device"}, {"s", "cpu"}}},
                                        {"dtype", {{"_t", "dtype"}, {"n", torch_name(dtype)}}},
                                        {"record_past", false}}));
  }
  return cache_of(std::move(layers));
}

std::string_view cache_class(const tasks::Signature& signature) {
  return signature.num_cross_layers > 0 ? kEncoderDecoderCacheClass : kCacheClass;
}

Json cache(const tasks::Signature& signature, DType dtype) {
  const int64_t num_layers = signature.num_cache_layers, num_cross = signature.num_cross_layers;
  Json leaves = Json::array();
  for (int64_t i = 0; i < 2 * (num_layers + num_cross); ++i) leaves.push_back(leaf());
  Json state = signature.conv_kernel_size > 0
                   ? state_cache(num_layers, signature.conv_kernel_size, dtype)
                   : dynamic_cache(num_layers, 0, dtype);
  if (num_cross > 0) {
    Json is_updated = Json::array();
    for (int64_t i = 0; i < num_cross; ++i) is_updated.push_back(Json::array({i, true}));
    state =
        object_state(kEncoderDecoderCacheClass,
                     {{"self_attention_cache", std::move(state)},
                      {"cross_attention_cache", dynamic_cache(num_cross, 2 * num_layers, dtype)},
                      {"is_updated", {{"_t", "items"}, {"v", std::move(is_updated)}}}});
  }
  return tree(cache_class(signature), state, std::move(leaves));
}

/// An output of a model, with its fields.
Json model_output(const std::string& name, const std::vector<std::string>& fields, Json children) {
  const bool full_path = name.find('.') != std::string::npos;
  return tree(full_path ? name : "transformers.modeling_outputs." + name, Json(fields),
              std::move(children));
}

std::string dump(Json root) {
  Json spec = Json::array();
  spec.push_back(1);  // the protocol
  spec.push_back(std::move(root));
  return to_python_json_line(spec);
}

/// What each tensor argument looks like; the rest is a cache.
Json describe_input(const ir::Input& input, const std::map<std::string, int64_t>& example_sizes) {
  Json shape = Json::array();
  for (const ir::Dim& dim : input.shape.dims) shape.push_back(dim.evaluate(example_sizes));
  return {{"rank", input.shape.rank()},
          {"shape", std::move(shape)},
          {"dtype", torch_name(input.dtype)}};
}

const ir::Input* find_input(const ir::Graph& graph, std::string_view name) {
  for (const ir::Node* node : graph.inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    if (input.name == name) return &input;
  }
  return nullptr;
}

constexpr const char* kEncoderState = "last_hidden_state";

std::string in_spec(const tasks::Signature& signature, const ir::Graph& graph, DType dtype) {
  Json children = Json::array();
  for (const std::string& name : signature.arguments) {
    if (find_input(graph, name) != nullptr) {
      children.push_back(leaf());
    } else if (name == signature.cache) {
      children.push_back(cache(signature, dtype));
    } else {
      children.push_back(
          model_output(signature.encoder_output_class, {kEncoderState}, Json::array({leaf()})));
    }
  }
  Json call = Json::array();
  call.push_back(tree("builtins.tuple", nullptr, Json::array()));
  call.push_back(tree("builtins.dict", Json(signature.arguments), std::move(children)));
  return dump(tree("builtins.tuple", nullptr, std::move(call)));
}

std::string out_spec(const tasks::Signature& signature, DType dtype) {
  Json children = Json::array();
  for (const std::string& field : signature.fields)
    children.push_back(field == signature.cache ? cache(signature, dtype) : leaf());
  return dump(model_output(signature.output_class, signature.fields, std::move(children)));
}

Json describe_argument(const std::string& name, const tasks::Signature& signature,
                       const ir::Graph& graph,
                       const std::map<std::string, int64_t>& example_sizes) {
  if (const ir::Input* input = find_input(graph, name))
    return describe_input(*input, example_sizes);
  if (name == signature.cache) {
    const std::string_view type = cache_class(signature);
    return {{"container", type.substr(type.find(':') + 1)}};
  }
  const ir::Input* states = find_input(graph, name + "." + kEncoderState);
  check(states != nullptr, "an argument is an input, a cache or an encoder's outputs");
  return {{"leaves", {{kEncoderState, describe_input(*states, example_sizes)}}}};
}

}  // namespace

ExportMetadata describe(const tasks::Signature& signature, const ir::Graph& graph,
                        const std::string& architecture, DType dtype, const OnnxConfig& config,
                        const std::map<std::string, int64_t>& example_sizes) {
  Json kwargs = Json::object();
  for (const std::string& name : signature.arguments)
    kwargs[name] = describe_argument(name, signature, graph, example_sizes);
  ExportMetadata metadata;
  metadata.architecture = architecture;
  metadata.packages = {{"tranship", std::string(version())}};
  metadata.export_config = config.to_json();
  metadata.export_dtype = torch_name(dtype);
  metadata.export_device = "cpu";
  metadata.kwargs = to_python_json_line(kwargs);
  metadata.in_spec = in_spec(signature, graph, dtype);
  metadata.out_spec = out_spec(signature, dtype);
  metadata.in_constants = "{}";
  metadata.out_constants = "[]";
  return metadata;
}

}  // namespace tranship::exporters

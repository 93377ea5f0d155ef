#include "exporters/metadata.h"

#include "base/error.h"
#include "base/json.h"
#include "tranship/version.h"

namespace tranship::exporters {
namespace {

constexpr std::string_view kCacheClass = "transformers.cache_utils:DynamicCache";
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

/// A DynamicCache that has seen tokens: keys and values of each layer.
Json cache(int64_t num_layers, DType dtype) {
  Json layers = Json::array();
  Json leaves = Json::array();
  for (int64_t i = 0; i < num_layers; ++i) {
    layers.push_back(
        object_state(kLayerClass, {{"keys", tensor_state(2 * i)},
                                   {"values", tensor_state(2 * i + 1)},
                                   {"is_initialized", true},
                                   {"dtype", {{"_t", "dtype"}, {"n", torch_name(dtype)}}},
                                   {"device", {{"_t", "device"}, {"s", "cpu"}}}}));
    leaves.push_back(leaf());
    leaves.push_back(leaf());
  }
  Json state = {
      {"layers", std::move(layers)}, {"layer_class_to_replicate", nullptr}, {"offloading", false}};
  return tree(kCacheClass, object_state(kCacheClass, std::move(state)), std::move(leaves));
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

std::string in_spec(const tasks::Signature& signature, const ir::Graph& graph, DType dtype) {
  Json children = Json::array();
  for (const std::string& name : signature.arguments) {
    children.push_back(
        find_input(graph, name) != nullptr ? leaf() : cache(signature.num_cache_layers, dtype));
  }
  Json call = Json::array();
  call.push_back(tree("builtins.tuple", nullptr, Json::array()));
  call.push_back(tree("builtins.dict", Json(signature.arguments), std::move(children)));
  return dump(tree("builtins.tuple", nullptr, std::move(call)));
}

std::string out_spec(const tasks::Signature& signature, DType dtype) {
  const bool gives_cache = signature.num_cache_layers > 0;  // then the last field
  Json children = Json::array();
  for (size_t i = 0; i < signature.fields.size(); ++i) {
    const bool is_cache = gives_cache && i + 1 == signature.fields.size();
    children.push_back(is_cache ? cache(signature.num_cache_layers, dtype) : leaf());
  }
  const bool full_path = signature.output_class.find('.') != std::string::npos;
  const std::string type = full_path ? signature.output_class
                                     : "transformers.modeling_outputs." + signature.output_class;
  return dump(tree(type, Json(signature.fields), std::move(children)));
}

}  // namespace

ExportMetadata describe(const tasks::Signature& signature, const ir::Graph& graph,
                        const std::string& architecture, DType dtype, const OnnxConfig& config,
                        const std::map<std::string, int64_t>& example_sizes) {
  Json kwargs = Json::object();
  for (const std::string& name : signature.arguments) {
    const ir::Input* input = find_input(graph, name);
    kwargs[name] = input != nullptr ? describe_input(*input, example_sizes)
                                    : Json{{"container", "DynamicCache"}};
  }
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

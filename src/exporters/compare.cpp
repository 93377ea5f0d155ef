#include "exporters/compare.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <set>

#include "base/error.h"
#include "exporters/exported_model.h"
#include "exporters/feed.h"
#include "exporters/ports.h"
#include "formats/onnx/model_summary.h"
#include "formats/onnx/module_outputs.h"
#include "interpret/interpret.h"
#include "tasks/task.h"

namespace tranship::exporters {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DType dtype_of(const ExportedModel& model) {
  const ExportMetadata& metadata = model.components().front().second.metadata;
  return find_dtype(metadata.export_dtype).value_or(DType::kF32);
}

const std::set<std::string>& optional_inputs() {
  static const std::set<std::string> kNames = {"attention_mask", "token_type_ids", "position_ids",
                                               "decoder_attention_mask"};
  return kNames;
}

// ---- an artifact

/// The graphs of an artifact, each with its modules' values as outputs, opened when first asked
/// for.
class ModuleSessions {
 public:
  ModuleSessions(const ExportedModel& model, const Sink& sink) : model_(model), sink_(sink) {}

  std::vector<std::pair<std::string, Tensor>> run(const std::string& component,
                                                  const NamedTensors& inputs) {
    const auto& [modules, session] = open(component);
    NamedTensors values = session.run(inputs);
    std::vector<std::pair<std::string, Tensor>> out;
    for (const onnx::ModuleValue& module : modules)
      out.emplace_back(module.path, std::move(values.at(module.value)));
    return out;
  }

 private:
  using Opened = std::pair<std::vector<onnx::ModuleValue>, onnx::Session>;

  const Opened& open(const std::string& component) {
    if (const auto known = opened_.find(component); known != opened_.end()) return known->second;
    const ExportedModel::Impl& impl = model_.impl();
    const auto& components = impl.artifact->manifest.components;
    const auto entry = std::ranges::find(components, component, &Manifest::Component::name);
    check(entry != components.end(), "a component without an entry in the manifest");
    const std::filesystem::path file = model_.directory() / entry->file;
    onnx::ModuleOutputs with = onnx::with_module_outputs(file);
    onnx::Session session = onnx::Session::open_edited(file, as_bytes(with.model),
                                                       session_options(impl.options), sink_);
    return opened_.emplace(component, Opened(std::move(with.modules), std::move(session)))
        .first->second;
  }

  ExportedModel model_;
  Sink sink_;
  std::map<std::string, Opened> opened_;
};

/// The widest row of a matrix. A head of another exporter may be [hidden, vocabulary]: nobody sums
/// over the vocabulary.
int64_t longest_sum_of(const ExportedModel& model) {
  const int64_t vocab_size = config_number(model.config(), "vocab_size", 0);
  int64_t longest = 1;
  for (const Manifest::Component& component : model.impl().artifact->manifest.components) {
    const onnx::ModelSummary summary = onnx::read_summary(model.directory() / component.file);
    for (const onnx::WeightInfo& weight : summary.weights) {
      if (weight.shape.size() != 2) continue;
      const bool is_turned = weight.shape[1] == vocab_size;
      longest = std::max(longest, weight.shape[is_turned ? 0 : 1]);
    }
  }
  return longest;
}

std::set<std::string> lacking_inputs_of(const ExportedModel& model) {
  std::set<std::string> lacking = optional_inputs();
  for (const auto& [name, component] : model.components()) {
    for (const Port& port : component.program.inputs()) lacking.erase(port.name);
  }
  return lacking;
}

/// The inputs under the names and with the dtypes that a component takes: a cache may be of
/// another.
NamedTensors fed_to(const std::string& name, const ExportedComponent& component,
                    const NamedTensors& inputs) {
  const std::vector<Port>& ports = component.program.inputs();
  NamedTensors all = feed(name, ports, inputs).tensors;
  for (const Port& port : ports) {
    const auto it = all.find(port.name);
    if (it == all.end() || it->second.dtype() == port.dtype || !is_floating(port.dtype)) continue;
    Tensor tensor(port.dtype, it->second.shape());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, it->second.at(i));
    it->second = std::move(tensor);
  }
  return all;
}

// ---- a checkpoint

/// What stands before a module's path in the name of an output that is not the graph's own.
constexpr std::string_view kModule = "module:";

bool is_module(const ir::Node& node) {
  switch (node.kind()) {
    case ir::OpKind::kLinear:
    case ir::OpKind::kEmbedding:
    case ir::OpKind::kRmsNorm:
    case ir::OpKind::kLayerNorm:
      return !node.name.empty();
    default:
      return false;
  }
}

void add_module_outputs(ir::Graph& graph) {
  std::set<std::string> seen;
  for (const ir::Node& node : graph.nodes()) {
    if (is_module(node) && seen.insert(node.name).second)
      graph.add_output(std::string(kModule) + node.name, graph.value(node.outputs.front()));
  }
}

/// The longest sum: the widest row of a matrix, or of a convolution's window.
int64_t longest_sum_of(const ir::Program& program) {
  int64_t longest = 1;
  for (const auto& [name, source] : program.parameters) {
    if (source->shape().size() >= 2) longest = std::max(longest, source->shape().back());
  }
  for (const ir::Component& component : program.components) {
    for (const ir::Node& node : component.graph->nodes()) {
      if (node.kind() != ir::OpKind::kConv) continue;
      const std::vector<int64_t> window = component.graph->type(node.inputs[1]).shape.sizes();
      longest = std::max(longest, std::accumulate(window.begin() + 1, window.end(), int64_t{1},
                                                  std::multiplies<>()));
    }
  }
  return longest;
}

std::map<std::string, int64_t> fixed_sizes_of(const ir::Program& program) {
  std::map<std::string, int64_t> sizes;
  for (const ir::Component& component : program.components) {
    for (const ir::Assumption& a : component.graph->assumptions()) {
      if (a.a.as_symbol() && a.b.is_static()) sizes.emplace(*a.a.as_symbol(), a.b.value());
      if (a.b.as_symbol() && a.a.is_static()) sizes.emplace(*a.b.as_symbol(), a.a.value());
    }
  }
  return sizes;
}

/// The slots of a static cache that the export makes; nothing if its cache grows.
std::optional<int64_t> slots_of(const ExportedModel& artifact) {
  const auto counts = [](const Port& port) { return port.name.ends_with(kCounter); };
  for (const auto& [name, part] : artifact.components()) {
    if (std::ranges::none_of(part.program.outputs(), counts)) continue;
    for (const Port& port : part.program.outputs()) {
      const bool is_buffer = port.name.ends_with(".keys") && port.shape.size() == 4 &&
                             port.name.find(kCrossCache) == std::string::npos;
      if (is_buffer && fixed_size(port.shape[2])) return fixed_size(port.shape[2]);
    }
  }
  return std::nullopt;
}

/// Whether decode takes any number of tokens.
bool decodes_many(const ExportedModel& artifact) {
  for (const auto& [name, part] : artifact.components()) {
    if (name != "decode") continue;
    for (const Port& port : part.program.inputs()) {
      if (port.name == "input_ids" || port.name == "decoder_input_ids") return port.shape[1] != "1";
    }
  }
  return false;
}

bool keeps_last_logits(const ExportedModel& artifact) {
  const auto& components = artifact.components();
  return std::ranges::any_of(components, [](const auto& component) {
    return component.second.metadata.logits_to_keep == 1;
  });
}

/// The options of the export, from what it recorded and from the graph that it made. Other
/// exporters have options of their own, and none that a definition would need.
tasks::TaskOptions options_of(const ExportedModel& artifact) {
  const ExportedComponent& component = artifact.components().front().second;
  const OnnxConfig config = component.metadata.packages.contains("tranship")
                                ? OnnxConfig::from_json(component.metadata.export_config)
                                : OnnxConfig{};
  std::set<std::string> taken;
  for (const auto& [name, part] : artifact.components()) {
    for (const Port& port : part.program.inputs()) {
      if (optional_inputs().contains(port.name)) taken.insert(port.name);
    }
  }
  return {.dtype = dtype_of(artifact),
          .architecture = component.metadata.architecture,
          .graph_inputs = std::vector<std::string>(taken.begin(), taken.end()),
          .cache_name = config.cache_name,
          .max_cache_len = slots_of(artifact),
          .multi_token_decode = decodes_many(artifact),
          .last_token_logits = keeps_last_logits(artifact),
          .ignored_config_keys = config.ignored_config_keys};
}

Computed interpreted(const ir::Program& program, const std::string& component,
                     const NamedTensors& inputs) {
  Computed computed;
  NamedTensors all = interpret(program, component, inputs);
  const auto found = std::ranges::find(program.components, component, &ir::Component::name);
  for (const ir::Output& output : found->graph->outputs()) {
    Tensor& value = all.at(output.name);
    if (output.name.starts_with(kModule)) {
      computed.modules.emplace_back(output.name.substr(kModule.size()), std::move(value));
    } else {
      computed.outputs.emplace(output.name, std::move(value));
    }
  }
  return computed;
}

/// The tensor as often as it stands in `whole`: passes leave repeats out where they can. As it is
/// if it cannot be spread.
Tensor repeated(const Tensor& tensor, const Tensor& whole) {
  const std::vector<int64_t>& to = whole.shape();
  std::vector<int64_t> from = tensor.shape();
  if (from == to || from.size() > to.size()) return tensor;
  from.insert(from.begin(), to.size() - from.size(), 1);
  for (size_t i = 0; i < to.size(); ++i) {
    if (from[i] != to[i] && from[i] != 1) return tensor;
  }
  Tensor out(tensor.dtype(), to);
  for (int64_t place = 0; place < out.num_elements(); ++place) {
    int64_t rest = place, at = 0, step = 1;
    for (size_t i = to.size(); i-- > 0;) {
      at += from[i] == 1 ? 0 : rest % to[i] * step;
      step *= from[i];
      rest /= to[i];
    }
    out.set(place, tensor.at(at));
  }
  return out;
}

// ---- beside each other

/// eps of the dtype that a side computes in.
double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

/// The largest difference, over the elements in their order: a module's result may be a matrix on
/// one side and have its batch apart on the other.
double largest_difference(const Tensor& found, const Tensor& reference) {
  if (found.num_elements() != reference.num_elements()) return kInfinity;
  double largest = 0;
  for (int64_t i = 0; i < reference.num_elements(); ++i) {
    const double a = found.at(i), b = reference.at(i);
    if (a == b) continue;  // infinities too
    const double apart = std::abs(a - b);
    if (std::isnan(apart)) return kInfinity;
    largest = std::max(largest, apart);
  }
  return largest;
}

/// One comparison of one component.
class Comparer {
 public:
  /// unit: the tolerance for a reference whose largest number is 1.
  Comparer(std::string component, double unit) : component_(std::move(component)), unit_(unit) {}

  Difference of(const std::string& name, const Tensor& found, const Tensor& reference) const {
    Difference result{component_, name};
    for (int64_t i = 0; i < reference.num_elements(); ++i)
      result.largest_reference = std::max(result.largest_reference, std::abs(reference.at(i)));
    result.tolerance = unit_ * result.largest_reference;
    result.largest_difference = largest_difference(found, reference);
    return result;
  }

  std::vector<Difference> of_outputs(const NamedTensors& found,
                                     const NamedTensors& reference) const {
    std::vector<Difference> out;
    for (const auto& [name, tensor] : reference) {
      const auto it = found.find(name);
      const bool fits = it != found.end() && it->second.shape() == tensor.shape();
      out.push_back(fits ? of(name, it->second, tensor) : lacking(name));
    }
    for (const auto& [name, tensor] : found) {
      if (!reference.contains(name)) out.push_back(lacking(name));
    }
    return out;
  }

  std::vector<Difference> of_modules(const Computed& found, const Computed& reference) const {
    std::vector<Difference> out;
    const std::map<std::string, Tensor> known(reference.modules.begin(), reference.modules.end());
    for (const auto& [path, tensor] : found.modules) {
      const auto it = known.find(path);
      if (it != known.end()) out.push_back(of(path, repeated(tensor, it->second), it->second));
    }
    return out;
  }

 private:
  Difference lacking(const std::string& name) const { return {component_, name, kInfinity}; }

  std::string component_;
  double unit_;
};

}  // namespace

Side side_of(const ExportedModel& model, bool with_modules, const Sink& sink) {
  const auto modules = with_modules ? std::make_shared<ModuleSessions>(model, sink) : nullptr;
  return {.run =
              [model, modules, sink](const std::string& component, const NamedTensors& inputs) {
                const NamedTensors fed = fed_to(component, model.component(component), inputs);
                Computed computed{model.run(component, fed, sink)};
                if (modules) computed.modules = modules->run(component, fed);
                return computed;
              },
          .dtype = dtype_of(model),
          .longest_sum = longest_sum_of(model),
          .lacking_inputs = lacking_inputs_of(model)};
}

Side side_of(const Checkpoint& checkpoint, const ExportedModel& artifact, bool with_modules,
             const Sink& sink) {
  const tasks::TaskOptions options = options_of(artifact);
  const bool is_forward =
      artifact.components().size() == 1 && artifact.components().front().first == "model";
  const auto made = std::make_shared<tasks::TaskProgram>(
      is_forward ? tasks::forward(checkpoint.data(), options, sink)
                 : tasks::generation(checkpoint.data(), options, sink));
  if (with_modules) {
    for (const ir::Component& component : made->program.components)
      add_module_outputs(*component.graph);
  }
  return {.run =
              [made](const std::string& component, const NamedTensors& inputs) {
                return interpreted(made->program, component, inputs);
              },
          .dtype = options.dtype,
          .longest_sum = longest_sum_of(made->program),
          .fixed_sizes = fixed_sizes_of(made->program)};
}

Comparison compare(const ExportedModel& model, const Side& found, const Side& reference,
                   const InputSizes& sizes) {
  const double eps = std::max(epsilon(found.dtype), epsilon(reference.dtype));
  const int64_t layers = config_number(model.config(), "num_hidden_layers", 1);
  const double unit = 4 * eps * std::sqrt(static_cast<double>(reference.longest_sum)) *
                      std::sqrt(static_cast<double>(std::max<int64_t>(layers, 1)));
  std::map<std::string, int64_t> fixed = reference.fixed_sizes;
  fixed.insert(found.fixed_sizes.begin(), found.fixed_sizes.end());
  std::set<std::string> lacking = reference.lacking_inputs;
  lacking.insert(found.lacking_inputs.begin(), found.lacking_inputs.end());
  Comparison all;
  for (const auto& [name, component] : model.components()) {
    const NamedTensors inputs = make_inputs({.component = name,
                                             .program = component.program,
                                             .config = model.config(),
                                             .fixed_sizes = fixed,
                                             .defaults = lacking},
                                            sizes);
    const Computed expected = reference.run(name, inputs), outputs = found.run(name, inputs);
    const Comparer comparer(name, unit);
    for (Difference& d : comparer.of_outputs(outputs.outputs, expected.outputs))
      all.outputs.push_back(std::move(d));
    for (Difference& d : comparer.of_modules(outputs, expected))
      all.modules.push_back(std::move(d));
  }
  return all;
}

}  // namespace tranship::exporters

// A side of a comparison: an artifact, on ONNX Runtime or, of .pt2, in the interpreter.
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "exporters/compare_sides.h"
#include "exporters/exported_model.h"
#include "exporters/feed.h"
#include "exporters/ports.h"
#include "formats/onnx/model_summary.h"
#include "formats/onnx/module_outputs.h"

namespace tranship::exporters {
namespace {

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

/// The .pt2 of an artifact, a program each.
std::vector<ir::Program> programs_of(const ExportedModel& model) {
  std::vector<ir::Program> programs;
  for (const Manifest::Component& component : model.impl().artifact->manifest.components)
    programs.push_back(read_pt2(model.directory() / component.file, component.name));
  return programs;
}

Side side_on_onnx_runtime(const ExportedModel& model, bool with_modules, const Sink& sink) {
  const auto modules = with_modules ? std::make_shared<ModuleSessions>(model, sink) : nullptr;
  return {.run =
              [model, modules, sink](const std::string& component, const NamedTensors& inputs) {
                Computed computed{model.run(component, inputs, sink)};
                if (modules) computed.modules = modules->run(component, inputs);
                return computed;
              },
          .dtype = dtype_of(model),
          .longest_sum = longest_sum_of(model)};
}

}  // namespace

const std::set<std::string>& optional_inputs() {
  static const std::set<std::string> kNames = {"attention_mask", "token_type_ids", "position_ids",
                                               "decoder_attention_mask"};
  return kNames;
}

DType dtype_of(const ExportedModel& model) {
  const ExportMetadata& metadata = model.components().front().second.metadata;
  return find_dtype(metadata.export_dtype).value_or(DType::kF32);
}

Side side_of(const ExportedModel& model, bool with_modules, const Sink& sink) {
  const bool is_pt2 = model.export_format() == DynamoExporter::kExportFormat;
  Side side = is_pt2 ? side_of(programs_of(model), dtype_of(model), with_modules)
                     : side_on_onnx_runtime(model, with_modules, sink);
  side.run = [model, run = std::move(side.run)](const std::string& name,
                                                const NamedTensors& inputs) {
    return run(name, fed_to(name, model.component(name), inputs));
  };
  for (const auto& [name, component] : model.components())
    side.inputs[name] = component.program.inputs();
  return side;
}

}  // namespace tranship::exporters

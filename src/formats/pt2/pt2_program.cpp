#include "formats/pt2/pt2_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/pt2/lower.h"
#include "formats/pt2/sample_inputs.h"
#include "formats/pt2/zip_writer.h"
#include "passes/passes.h"

namespace tranship::pt2 {
namespace {

constexpr std::string_view kTorchVersion = "2.13.0";  // whose format this is

std::string names_json(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + json_text(name);
  return "[" + text + "]";
}

std::string document_of(const LoweredGraph& lowered, const RecordedCall& call,
                        const SymbolTable& symbols) {
  return fmt::format(
      R"({{"graph_module":{{"graph":{},
"signature":{},
"module_call_graph":[{{"fqn":"","signature":{{"inputs":[],"outputs":[],
"in_spec":{},
"out_spec":{},
"forward_arg_names":{}}}}}],"metadata":{{}},"treespec_namedtuple_fields":{{}}}},
"opset_version":{{"aten":10}},"range_constraints":{},"schema_version":{{"major":8,"minor":20}},)"
      R"("verifiers":["{}"],"torch_version":"{}","guards_code":[]}})",
      lowered.graph, lowered.signature, json_text(call.in_spec), json_text(call.out_spec),
      names_json(call.argument_names), symbols.range_constraints(),
      lowered.is_functional ? "ATEN" : "TRAINING", kTorchVersion);
}

/// An entry of a config of weights or constants.
std::string payload(const std::string& name, const std::string& record, bool is_parameter,
                    DType dtype, const std::vector<int64_t>& sizes) {
  return fmt::format(R"({}:{{"path_name":"{}","is_param":{},"use_pickle":false,"tensor_meta":{}}})",
                     json_text(name), record, is_parameter, tensor_meta(dtype, sizes, false));
}

std::string config_json(const std::vector<std::string>& payloads) {
  return fmt::format("{{\"config\":{{\n{}\n}}}}", fmt::join(payloads, ",\n"));
}

/// The size and kind of a graph's input in an example call.
SampleTensor sample_of(const ir::Graph& graph, const std::string& port,
                       const std::map<std::string, int64_t>& examples) {
  SampleTensor sample;
  for (const ir::Node* node : graph.inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    if (input.name != port) continue;
    sample.dtype = input.dtype;
    for (const ir::Dim& dim : input.shape.dims) sample.sizes.push_back(dim.evaluate(examples));
    sample.of_ones = port.find("mask") != port.npos;  // all tokens are there
  }
  return sample;
}

RecordedCall recorded(const PythonCall& call, const ir::Graph& graph,
                      const std::map<std::string, int64_t>& examples) {
  const PythonValue arguments = PythonValue::tuple({PythonValue::tuple({}), call.kwargs});
  const auto tensor_of = [&](const std::string& port) { return sample_of(graph, port, examples); };
  return {.in_spec = tree_spec(arguments),
          .out_spec = tree_spec(call.result),
          .argument_names = call.kwargs.names,
          .inputs = leaves(call.kwargs),
          .outputs = leaves(call.result),
          .sample_inputs = pickle(arguments, tensor_of)};
}

}  // namespace

struct Pt2Program::Impl {
  struct Archive {
    std::string component;
    size_t num_nodes = 0;
    std::string model_json;
    ZipWriter zip;
    std::string file() const { return component + ".pt2"; }
  };
  std::vector<Archive> archives;

  const Archive& at(const std::string& component) const {
    const auto found = std::ranges::find(archives, component, &Archive::component);
    if (found != archives.end()) return *found;
    fail(ErrorKind::kInvalidArgument, "[pt2] there is no component '{}'", component);
  }
};

namespace {

/// The records of an archive, in the order in which PyTorch writes them.
ZipWriter records_of(const std::string& root, const LoweredGraph& lowered,
                     const ir::Program& program, std::string model, std::string samples) {
  ZipWriter zip;
  std::vector<std::string> weights, constants;
  for (const std::string& name : lowered.parameters) {
    const TensorSourcePtr& source = program.parameters.at(name);
    const std::string record = fmt::format("weight_{}", weights.size());
    zip.add(fmt::format("{}/data/weights/{}", root, record), source);
    weights.push_back(payload(name, record, true, source->dtype(), source->shape()));
  }
  zip.add(root + "/data/weights/model_weights_config.json", config_json(weights));
  for (const auto& [name, value] : lowered.constants) {
    const std::string record = fmt::format("tensor_{}", constants.size());
    zip.add(fmt::format("{}/data/constants/{}", root, record), std::string(as_text(value.bytes())));
    constants.push_back(payload(name, record, false, value.dtype(), value.shape()));
  }
  zip.add(root + "/data/constants/model_constants_config.json", config_json(constants));
  zip.add(root + "/models/model.json", std::move(model));
  zip.add(root + "/data/sample_inputs/model.pt", std::move(samples));
  zip.add(root + "/archive_format", std::string("pt2"));
  zip.add(root + "/archive_version", std::string("0"));
  zip.add(root + "/.data/version", std::string("6\n"));
  zip.add(root + "/byteorder", std::string("little"));
  return zip;
}

}  // namespace

Pt2Program Pt2Program::lower(const ir::Program& program, const std::vector<PythonCall>& calls,
                             const std::map<std::string, int64_t>& examples) {
  std::vector<RecordedCall> all;
  for (size_t i = 0; i < calls.size(); ++i)
    all.push_back(recorded(calls[i], *program.components[i].graph, examples));
  return lower(program, all, examples);
}

Pt2Program Pt2Program::lower(const ir::Program& program, const std::vector<RecordedCall>& calls,
                             const std::map<std::string, int64_t>& examples) {
  auto impl = std::make_shared<Impl>();
  Unsupported unsupported;
  for (size_t i = 0; i < program.components.size(); ++i) {
    const ir::Component& component = program.components[i];
    const RecordedCall& call = calls[i];
    std::unique_ptr<ir::Graph> graph = component.graph->clone();
    spell_out_masks(graph);
    passes::run_pipeline(graph, claims);
    const SymbolTable symbols(*graph, examples);
    const LoweredGraph lowered =
        lower_graph(*graph, call.inputs, call.outputs, component.states, symbols, unsupported);
    std::string model = document_of(lowered, call, symbols);
    impl->archives.push_back({.component = component.name,
                              .num_nodes = lowered.num_nodes,
                              .model_json = model,
                              .zip = records_of(component.name, lowered, program, std::move(model),
                                                call.sample_inputs)});
  }
  if (!unsupported.empty()) {
    std::vector<std::string> all;
    for (const auto& [op, why] : unsupported) all.push_back(op + ": " + why);
    fail(ErrorKind::kUnsupported, "[pt2] ATen cannot say {}", listed(all));
  }
  Pt2Program result;
  result.impl_ = std::move(impl);
  return result;
}

std::vector<std::string> Pt2Program::components() const {
  std::vector<std::string> names;
  for (const Impl::Archive& archive : impl_->archives) names.push_back(archive.component);
  return names;
}

size_t Pt2Program::num_nodes(const std::string& component) const {
  return impl_->at(component).num_nodes;
}

const std::string& Pt2Program::model_json(const std::string& component) const {
  return impl_->at(component).model_json;
}

std::vector<PlannedFile> Pt2Program::files() const {
  std::vector<PlannedFile> files;
  for (const Impl::Archive& archive : impl_->archives)
    files.push_back({archive.file(), archive.zip.size_bytes()});
  return files;
}

std::vector<PlannedFile> Pt2Program::save(const std::filesystem::path& directory,
                                          const Sink& sink) const {
  std::vector<PlannedFile> files = this->files();
  std::vector<std::unique_ptr<AtomicFile>> written;
  for (size_t i = 0; i < files.size(); ++i) {
    AtomicFile& file =
        *written.emplace_back(std::make_unique<AtomicFile>(directory / files[i].name));
    files[i].hash = impl_->archives[i].zip.write(file, "writing " + files[i].name, sink);
  }
  for (const auto& file : written) file->commit();
  return files;
}

}  // namespace tranship::pt2

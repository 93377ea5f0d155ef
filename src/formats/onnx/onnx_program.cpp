#include "formats/onnx/onnx_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_hash.h"
#include "formats/onnx/attention_form.h"
#include "formats/onnx/emitter.h"
#include "formats/onnx/fusions/experts.h"
#include "formats/onnx/fusions/packed_projections.h"
#include "formats/onnx/lower.h"
#include "formats/onnx/read_model.h"
#include "ir/source_writer.h"
#include "onnx-ml.pb.h"
#include "passes/passes.h"
#include "tranship/version.h"

namespace tranship::onnx {
namespace {

constexpr size_t kAlignment = 64;
constexpr uint64_t kProtobufLimit = (uint64_t{1} << 31) - 1;

int ir_version(int opset_version) { return opset_version >= 23 ? 11 : 10; }

void add_external(::onnx::TensorProto* tensor, const std::string& location, uint64_t offset,
                  uint64_t length) {
  tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const std::string& key, const std::string& value) {
    ::onnx::StringStringEntryProto* e = tensor->add_external_data();
    e->set_key(key);
    e->set_value(value);
  };
  entry("location", location);
  entry("offset", std::to_string(offset));
  entry("length", std::to_string(length));
}

/// What a weight is a cast of, if every one of its numbers fits: otherwise an overflow would go
/// unnoticed, as nothing is read.
TensorSourcePtr widened(const TensorSource& cast) {
  const TensorSourcePtr source = cast.uncast();
  const bool to_f32 = cast.dtype() == DType::kF32 && source->dtype() != DType::kF64;
  if (to_f32 || cast.dtype() == source->dtype()) return source;
  fail(ErrorKind::kUnsupported,
       "[onnx] the weight '{}' is {} and would be used as {} without being looked at, so an "
       "overflow would go unnoticed: export with --dtype f32, or with --weights copy",
       cast.name(), name(source->dtype()), name(cast.dtype()));
}

}  // namespace

using Parameters = std::map<std::string, TensorSourcePtr>;

struct OnnxProgram::Impl {
  OnnxOptions options;
  std::vector<std::string> names;               // of the components
  std::vector<::onnx::ModelProto> models;       // one a component
  std::map<std::string, PlacedSource> weights;  // by name
  uint64_t data_size = 0;
  /// kReference: files that must lie in the target directory, and their sizes.
  std::map<std::filesystem::path, uint64_t> referred;

  void lower(const ir::Program& program);
  void place(const Parameters& parameters, const std::vector<std::string>& used);
  void add_weight(const std::string& name, ::onnx::GraphProto* graph);
  /// Errors: invalid_argument for an unknown component.
  const ::onnx::GraphProto& graph(const std::string& component) const;
  std::string data_file(size_t component) const { return names[component] + ".onnx.data"; }
  std::string write_data(AtomicFile& file, const Sink& sink) const;
};

namespace {

/// Names the domain of ONNX Runtime's own operators, if the graph has any.
void add_contrib_opset(::onnx::ModelProto& model) {
  for (const ::onnx::NodeProto& node : model.graph().node()) {
    if (node.domain() != kContribDomain) continue;
    ::onnx::OperatorSetIdProto* opset = model.add_opset_import();
    opset->set_domain(std::string(kContribDomain));
    opset->set_version(1);
    return;
  }
}

/// The parameters, with those that operators of a provider want in another order, or together.
Parameters with_changed_weights(const Target& target, Parameters parameters,
                                std::vector<std::unique_ptr<ir::Graph>>& graphs) {
  if (!target.fusions || !target.may_change_weights) return parameters;
  const Capabilities& provider = capabilities(*target.fusions);
  Parameters changed = pack_projections(graphs, parameters, provider.least_packed);
  for (const auto& graph : graphs) changed.merge(interleaved_weights(*graph, provider, parameters));
  parameters.merge(changed);
  return parameters;
}

}  // namespace

void OnnxProgram::Impl::lower(const ir::Program& program) {
  std::map<std::string, DType> stored;
  if (options.weights == Weights::kReference) {
    for (const auto& [name, source] : program.parameters) {
      stored.emplace(name,
                     source->uncast() != nullptr ? source->uncast()->dtype() : source->dtype());
    }
  }
  const Target target = {options.opset_version, options.fusions,
                         options.weights != Weights::kReference};
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  for (const ir::Component& c : program.components) graphs.push_back(c.graph->clone());
  const Parameters parameters = with_changed_weights(target, program.parameters, graphs);
  Unsupported unsupported;
  std::vector<std::vector<std::string>> used;
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::unique_ptr<ir::Graph>& graph = graphs[i];
    write_out_masks(graph, target);
    // The pipeline decomposes before it does anything else.
    const std::set<const ir::Node*> kept = kept_composites(*graph, target);
    passes::run_pipeline(graph,
                         [&](const ir::Node& n) { return claims(n, target) || kept.contains(&n); });
    ::onnx::ModelProto& model = models.emplace_back();
    model.set_ir_version(ir_version(options.opset_version));
    model.set_producer_name("tranship");
    model.set_producer_version(std::string(version()));
    ::onnx::OperatorSetIdProto* opset = model.add_opset_import();
    opset->set_domain("");
    opset->set_version(options.opset_version);
    used.push_back(lower_graph(*graph, target, stored, *model.mutable_graph(), unsupported));
    add_contrib_opset(model);
    names.push_back(program.components[i].name);
  }
  if (!unsupported.empty()) {
    std::vector<std::string> all;
    for (const auto& [op, why] : unsupported) all.push_back(op + ": " + why);
    fail(ErrorKind::kUnsupported, "[onnx] opset {} cannot say {}", options.opset_version,
         listed(all));
  }
  for (const auto& names_used : used) place(parameters, names_used);
  for (size_t i = 0; i < models.size(); ++i) {
    for (const std::string& name : used[i]) add_weight(name, models[i].mutable_graph());
  }
}

/// Gives each weight its place, in the order of its first use: what runs first is read first.
void OnnxProgram::Impl::place(const Parameters& parameters, const std::vector<std::string>& used) {
  for (const std::string& name : used) {
    const auto it = parameters.find(name);
    check(it != parameters.end(), "a weight is not in the program: " + name);
    const auto [placed, added] = weights.try_emplace(name, PlacedSource{it->second, data_size});
    if (!added || options.weights != Weights::kExternal) continue;
    data_size += (it->second->size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
}

void OnnxProgram::Impl::add_weight(const std::string& name, ::onnx::GraphProto* graph) {
  const PlacedSource& placed = weights.at(name);
  TensorSourcePtr source = placed.source;
  ::onnx::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  for (const int64_t size : source->shape()) tensor->add_dims(size);
  switch (options.weights) {
    case Weights::kExternal:
      add_external(tensor, data_file(0), placed.offset, source->size_bytes());
      break;
    case Weights::kInline: {
      const Tensor value = read_all(*source);
      tensor->set_raw_data(value.bytes().data(), value.bytes().size());
      break;
    }
    case Weights::kReference: {
      if (source->uncast() != nullptr) source = widened(*source);
      const std::optional<FileRange> range = source->file_range();
      if (!range) {
        fail(ErrorKind::kUnsupported,
             "[onnx] the weight '{}' does not lie as it is in a file, so it cannot be referred to: "
             "export with --weights copy",
             name);
      }
      referred.emplace(range->file->path(), range->file->bytes().size());
      add_external(tensor, range->file->path().filename().string(), range->offset, range->size);
      break;
    }
  }
  tensor->set_data_type(onnx_dtype(source->dtype()));
}

OnnxProgram OnnxProgram::lower(const ir::Program& program, const OnnxOptions& options) {
  if (options.opset_version < 18 || options.opset_version > 24) {
    fail(ErrorKind::kUnsupported, "[onnx] opset_version {}; 18 to 24 can be written",
         options.opset_version);
  }
  auto impl = std::make_shared<Impl>();
  impl->options = options;
  if (options.weights == Weights::kInline) {
    uint64_t total = 0;
    for (const auto& [name, source] : program.parameters) total += source->size_bytes();
    if (total >= kProtobufLimit) {
      fail(ErrorKind::kUnsupported,
           "[onnx] the weights have {} bytes: protobuf holds less than 2 GB, so they must be "
           "external data",
           total);
    }
  }
  impl->lower(program);
  OnnxProgram result;
  result.impl_ = std::move(impl);
  return result;
}

std::vector<std::string> OnnxProgram::components() const { return impl_->names; }

const ::onnx::GraphProto& OnnxProgram::Impl::graph(const std::string& component) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == component) return models[i].graph();
  }
  fail(ErrorKind::kInvalidArgument, "[onnx] there is no component '{}'; there are {}", component,
       listed(names));
}

size_t OnnxProgram::num_nodes(const std::string& component) const {
  return static_cast<size_t>(impl_->graph(component).node_size());
}

std::map<std::string, std::string> OnnxProgram::in_place(const std::string& component) const {
  return find_in_place(impl_->graph(component));
}

std::vector<PlannedFile> OnnxProgram::files() const {
  std::vector<PlannedFile> files;
  for (size_t i = 0; i < impl_->names.size(); ++i) {
    files.push_back({impl_->names[i] + ".onnx", impl_->models[i].ByteSizeLong()});
    // Transformers' loader wants a data file beside each; those that share another's are empty.
    files.push_back({impl_->data_file(i), i == 0 ? impl_->data_size : 0});
  }
  return files;
}

std::vector<PlannedFile> OnnxProgram::referred_files() const {
  std::vector<PlannedFile> files;
  for (const auto& [path, size] : impl_->referred)
    files.push_back({path.filename().string(), size});
  return files;
}

namespace {

/// Errors: unsupported if weights that are referred to do not lie in `directory`.
void check_referred(const std::map<std::filesystem::path, uint64_t>& referred,
                    const std::filesystem::path& directory) {
  for (const auto& [file, size] : referred) {
    const std::filesystem::path there = directory / file.filename();
    std::error_code ignored;
    const bool is_plain = std::filesystem::symlink_status(there, ignored).type() ==
                          std::filesystem::file_type::regular;
    if (is_plain && std::filesystem::equivalent(there, file, ignored) &&
        std::filesystem::hard_link_count(there, ignored) == 1)
      continue;
    fail(ErrorKind::kUnsupported,
         "[onnx] weights can only be referred to where they are: '{}' must be a regular file of "
         "the target directory '{}', with a single "
         "name (ONNX's own loader refuses links). Write beside the checkpoint, or use --weights "
         "copy",
         file.string(), directory.string());
  }
}

}  // namespace

/// -> the file's hash.
std::string OnnxProgram::Impl::write_data(AtomicFile& file, const Sink& sink) const {
  std::vector<PlacedSource> sources;
  for (const auto& [name, placed] : weights) sources.push_back(placed);
  SourceWriter writer(file, data_size, std::move(sources), SourceWriter::Checksums::kNone);
  writer.write("writing " + data_file(0), sink);
  return writer.hash();
}

std::vector<PlannedFile> OnnxProgram::save(const std::filesystem::path& directory,
                                           const Sink& sink) const {
  const Impl& impl = *impl_;
  check_referred(impl.referred, directory);
  std::vector<PlannedFile> planned = files();  // a component's graph, then its data
  std::vector<std::unique_ptr<AtomicFile>> written;
  for (size_t i = 0; i < impl.names.size(); ++i) {
    AtomicFile& data =
        *written.emplace_back(std::make_unique<AtomicFile>(directory / impl.data_file(i)));
    planned[2 * i + 1].hash = hash_of(Bytes());
    if (i == 0 && impl.options.weights == Weights::kExternal) {
      data.reserve(impl.data_size);
      planned[1].hash = impl.write_data(data, sink);
    }
  }
  for (size_t i = 0; i < impl.names.size(); ++i) {
    std::string bytes;
    if (impl.models[i].ByteSizeLong() > kProtobufLimit ||
        !impl.models[i].SerializeToString(&bytes)) {
      fail(ErrorKind::kUnsupported,
           "[onnx] '{}.onnx' would have {} bytes; protobuf holds less than 2 GB", impl.names[i],
           impl.models[i].ByteSizeLong());
    }
    written.emplace_back(std::make_unique<AtomicFile>(directory / (impl.names[i] + ".onnx")))
        ->write(bytes);
    planned[2 * i].hash = hash_of(as_bytes(bytes));
  }
  for (const auto& file : written) file->commit();
  return planned;
}

}  // namespace tranship::onnx

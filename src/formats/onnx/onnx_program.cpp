#include "formats/onnx/onnx_program.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_hash.h"
#include "formats/onnx/emitter.h"
#include "formats/onnx/lower.h"
#include "onnx-ml.pb.h"
#include "passes/passes.h"
#include "tranship/version.h"

namespace tranship::onnx {
namespace {

constexpr size_t kAlignment = 64;
constexpr uint64_t kProtobufLimit = (uint64_t{1} << 31) - 1;

/// A weight's place in the data file.
struct Placed {
  TensorSourcePtr source;
  uint64_t offset = 0;
};

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

struct OnnxProgram::Impl {
  OnnxOptions options;
  std::vector<std::string> names;          // of the components
  std::vector<::onnx::ModelProto> models;  // one a component
  std::map<std::string, Placed> weights;   // by name
  uint64_t data_size = 0;
  /// kReference: files that must lie in the target directory, and their sizes.
  std::map<std::filesystem::path, uint64_t> referred;

  void lower(const ir::Program& program);
  void place(const ir::Program& program, const std::vector<std::string>& used);
  void add_weight(const std::string& name, ::onnx::GraphProto* graph);
  std::string data_file(size_t component) const { return names[component] + ".onnx.data"; }
  std::string write_data(AtomicFile& file, const Sink& sink) const;
};

void OnnxProgram::Impl::lower(const ir::Program& program) {
  std::map<std::string, DType> stored;
  if (options.weights == Weights::kReference) {
    for (const auto& [name, source] : program.parameters) {
      stored.emplace(name,
                     source->uncast() != nullptr ? source->uncast()->dtype() : source->dtype());
    }
  }
  Unsupported unsupported;
  std::vector<std::vector<std::string>> used;
  for (const ir::Component& c : program.components) {
    std::unique_ptr<ir::Graph> graph = c.graph->clone();
    passes::run_pipeline(graph,
                         [&](const ir::Node& n) { return claims(n, options.opset_version); });
    ::onnx::ModelProto& model = models.emplace_back();
    model.set_ir_version(ir_version(options.opset_version));
    model.set_producer_name("tranship");
    model.set_producer_version(std::string(version()));
    ::onnx::OperatorSetIdProto* opset = model.add_opset_import();
    opset->set_domain("");
    opset->set_version(options.opset_version);
    used.push_back(
        lower_graph(*graph, options.opset_version, stored, *model.mutable_graph(), unsupported));
    names.push_back(c.name);
  }
  if (!unsupported.empty()) {
    std::vector<std::string> all;
    for (const auto& [op, why] : unsupported) all.push_back(op + ": " + why);
    fail(ErrorKind::kUnsupported, "[onnx] opset {} cannot say {}", options.opset_version,
         listed(all));
  }
  for (const auto& names_used : used) place(program, names_used);
  for (size_t i = 0; i < models.size(); ++i) {
    for (const std::string& name : used[i]) add_weight(name, models[i].mutable_graph());
  }
}

/// Gives each weight its place, in the order of its first use: what runs first is read first.
void OnnxProgram::Impl::place(const ir::Program& program, const std::vector<std::string>& used) {
  for (const std::string& name : used) {
    const auto it = program.parameters.find(name);
    check(it != program.parameters.end(), "a weight is not in the program: " + name);
    const auto [placed, added] = weights.try_emplace(name, Placed{it->second, data_size});
    if (!added || options.weights != Weights::kExternal) continue;
    data_size += (it->second->size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
}

void OnnxProgram::Impl::add_weight(const std::string& name, ::onnx::GraphProto* graph) {
  const Placed& placed = weights.at(name);
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

size_t OnnxProgram::num_nodes(const std::string& component) const {
  for (size_t i = 0; i < impl_->names.size(); ++i) {
    if (impl_->names[i] == component)
      return static_cast<size_t>(impl_->models[i].graph().node_size());
  }
  fail(ErrorKind::kInvalidArgument, "[onnx] there is no component '{}'; there are {}", component,
       listed(impl_->names));
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

/// Writes the data file block by block of its hash; 128 KiB stay in a core's cache on their way.
class DataWriter {
 public:
  /// All must outlive it. weights: in the order of their places, which do not overlap.
  DataWriter(AtomicFile& file, uint64_t size, const std::vector<const Placed*>& weights)
      : file_(file), size_(size), weights_(weights) {}

  size_t num_blocks() const { return (size_ + kHashBlockBytes - 1) / kHashBlockBytes; }
  uint64_t block_size(size_t block) const {
    return std::min<uint64_t>(kHashBlockBytes, size_ - block * kHashBlockBytes);
  }

  /// Writes one block -> its hash. One thread a writer; several writers may write one file.
  uint64_t write(size_t block) {
    uint64_t at = block * kHashBlockBytes;
    const uint64_t end = at + block_size(block);
    auto next = std::upper_bound(weights_.begin(), weights_.end(), at,
                                 [](uint64_t a, const Placed* b) { return a < b->offset; });
    if (next != weights_.begin()) --next;
    for (; next != weights_.end() && (*next)->offset < end; ++next) {
      const uint64_t weight_end = (*next)->offset + (*next)->source->size_bytes();
      if (weight_end <= at) continue;
      const uint64_t from = std::max(at, (*next)->offset), to = std::min(end, weight_end);
      hasher_.add_zeros(from - at);  // between weights; the file has them already
      write_piece(**next, from - (*next)->offset, to - from);
      at = to;
    }
    hasher_.add_zeros(end - at);
    return hasher_.finish();
  }

 private:
  void write_piece(const Placed& weight, size_t start, size_t size) {
    const TensorSource& source = *weight.source;
    if (const std::optional<FileRange> range = source.file_range()) {
      const Bytes bytes = range->bytes().subspan(start, size);
      hasher_.add(bytes);
      file_.write_at(weight.offset + start, bytes);
      range->file->release(range->offset + start, size);
      return;
    }
    const size_t element = size_bytes(source.dtype());
    buffer_.resize(size);
    source.read(static_cast<int64_t>(start / element), static_cast<int64_t>(size / element),
                buffer_);
    hasher_.add(buffer_);
    file_.write_at(weight.offset + start, buffer_);
  }

  AtomicFile& file_;
  uint64_t size_;
  const std::vector<const Placed*>& weights_;
  BlockHasher hasher_;
  std::vector<std::byte> buffer_;
};

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

/// All cores take blocks in order; each block has its place, so the bytes do not depend on who is
/// faster. -> the file's hash.
std::string OnnxProgram::Impl::write_data(AtomicFile& file, const Sink& sink) const {
  std::vector<const Placed*> sorted;
  for (const auto& [name, placed] : weights) {
    if (placed.source->num_elements() > 0) sorted.push_back(&placed);
  }
  std::ranges::sort(sorted, {}, &Placed::offset);
  std::vector<uint64_t> hashes(DataWriter(file, data_size, sorted).num_blocks());
  std::atomic<size_t> next = 0;
  std::atomic<uint64_t> done = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;  // guards `error` and the sink
  std::exception_ptr error;
  const auto work = [&] {
    try {
      DataWriter writer(file, data_size, sorted);
      for (size_t i = next++; i < hashes.size() && !failed; i = next++) {
        hashes[i] = writer.write(i);
        const uint64_t total = done += writer.block_size(i);
        const std::lock_guard lock(mutex);
        sink.report(total, data_size, "writing " + data_file(0));
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      failed = true;
    }
  };
  std::vector<std::thread> helpers;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < std::min<size_t>(cores, hashes.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
  if (error) std::rethrow_exception(error);
  return hash_of_blocks(hashes);
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

#include "formats/pt2/archive.h"

#include <charconv>
#include <utility>

#include "base/error.h"
#include "formats/pt2/pickle_reader.h"
#include "formats/pt2/zip_reader.h"
#include "ir/dim.h"

namespace tranship::pt2 {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 29;
constexpr size_t kMaxInflatedBytes = size_t{1} << 32;  // of compressed weights, together
constexpr size_t kMaxSmallBytes = 64;
constexpr size_t kMaxSampleBytes = size_t{1} << 26;
constexpr int64_t kMaxExpandedElements = int64_t{1} << 24;

/// The bytes of a storage: in the mapped file, or in memory if they were compressed.
struct Storage {
  std::optional<FileRange> range;
  std::shared_ptr<const std::vector<std::byte>> memory;
  size_t size() const { return range ? range->size : memory->size(); }
};

class Opener {
 public:
  explicit Opener(const std::shared_ptr<const MappedFile>& mapped)
      : file_(mapped->path().string()) {
    zip_ = ZipReader::open({mapped, 0, mapped->bytes().size()});
    find_root();
  }

  Archive open() {
    check_version();
    Archive archive;
    archive.program = read_program(file_, text("models/model.json"));
    archive.weights = tensors("data/weights/");
    archive.constants = tensors("data/constants/");
    if (const ZipRecord* samples = find("data/sample_inputs/model.pt");
        samples != nullptr && samples->size <= kMaxSampleBytes) {
      archive.sample_inputs = zip_.text(*samples, kMaxSampleBytes);
    }
    return archive;
  }

 private:
  template <class... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kCorrupt, "[pt2] '{}': {}", file_,
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }

  /// All records stand in one folder.
  void find_root() {
    if (zip_.find("serialized_exported_program.json") != nullptr) {
      fail(ErrorKind::kUnsupported,
           "[pt2] '{}' was saved by torch 2.7 or older: load it and save it again with a newer "
           "torch",
           file_);
    }
    for (const auto& [name, record] : zip_.records()) {
      const std::string folder = name.substr(0, name.find('/') + 1);
      if (folder.empty()) corrupt("the record '{}' is in no folder: not an archive of torch", name);
      if (root_.empty()) root_ = folder;
      if (folder != root_) corrupt("records are in '{}' and in '{}'", root_, folder);
    }
  }

  const ZipRecord* find(std::string_view name) const {
    return zip_.find(root_ + std::string(name));
  }
  const ZipRecord& at(std::string_view name) const {
    const ZipRecord* record = find(name);
    if (record == nullptr) corrupt("the record '{}{}' is missing", root_, name);
    return *record;
  }
  std::string text(std::string_view name, size_t limit = kMaxTextBytes) const {
    return zip_.text(at(name), limit);
  }

  void check_version() const {
    if (find("archive_format") == nullptr) corrupt("there is no 'archive_format': not a .pt2");
    const std::string format = text("archive_format", kMaxSmallBytes);
    if (format != "pt2") corrupt("archive_format is '{}', expected 'pt2'", format);
    const std::string version = text("archive_version", kMaxSmallBytes);
    if (version != "0") {
      fail(ErrorKind::kUnsupported, "[pt2] '{}': archive_version is '{}', expected '0'", file_,
           version);
    }
    if (const ZipRecord* order = find("byteorder");
        order != nullptr && zip_.text(*order, kMaxSmallBytes) != "little") {
      fail(ErrorKind::kUnsupported, "[pt2] '{}' is not little-endian", file_);
    }
    if (find("models/model.json") != nullptr) return;
    std::vector<std::string> models;
    for (const auto& [name, record] : zip_.records()) {
      if (name.starts_with(root_ + "models/")) models.push_back(name);
    }
    if (models.empty()) corrupt("there is no program: '{}models/model.json' is missing", root_);
    fail(ErrorKind::kUnsupported, "[pt2] '{}' has {}, expected a program called 'model'", file_,
         listed(models));
  }

  /// Those of a folder, by a configuration or, of torch 2.8, by a pickle.
  std::map<std::string, StoredTensor> tensors(const std::string& folder) {
    const std::string stem = folder == "data/weights/" ? "model_weights" : "model_constants";
    if (find(folder + "model.pt") != nullptr) return pickled_tensors(folder + "model.pt");
    const std::string config = folder + stem + "_config.json";
    const std::map<std::string, Payload> payloads =
        read_payloads(file_ + ":" + config, text(config));
    std::map<std::string, StoredTensor> out;
    std::map<std::string, std::string> first_names;
    for (const auto& [name, payload] : payloads) {
      if (payload.pickled) {
        fail(
            ErrorKind::kUnsupported,
            "[pt2] '{}': the tensor '{}' is of a subclass of Tensor, or an object, and was pickled",
            file_, name);
      }
      const ZipRecord& record = at(folder + payload.record);
      out.emplace(name, stored(name, storage_of(zip_, record), payload.meta,
                               folder + payload.record, first_names));
    }
    return out;
  }

  std::map<std::string, StoredTensor> pickled_tensors(const std::string& name) {
    const ZipRecord& record = at(name);
    if (record.size == 0) return {};
    const std::optional<FileRange> range = zip_.range(record);
    if (!range) {
      fail(ErrorKind::kUnsupported, "[pt2] '{}': '{}' is compressed: save it again with torch",
           file_, name);
    }
    const ZipReader inner = ZipReader::open(*range);
    std::string root;
    for (const auto& [inner_name, inner_record] : inner.records()) {
      if (inner_name.ends_with("/data.pkl")) root = inner_name.substr(0, inner_name.find('/') + 1);
    }
    const ZipRecord* pickle = inner.find(root + "data.pkl");
    if (pickle == nullptr) corrupt("'{}' holds no 'data.pkl'", name);
    std::map<std::string, StoredTensor> out;
    std::map<std::string, std::string> first_names;
    const std::vector<std::byte> bytes = inner.content(*pickle, kMaxTextBytes);
    for (const auto& [tensor, pickled] : read_pickled_tensors(file_ + ":" + name, bytes)) {
      const std::string place = root + "data/" + pickled.storage;
      const ZipRecord* storage = inner.find(place);
      if (storage == nullptr) corrupt("'{}' holds no '{}'", name, place);
      out.emplace(tensor,
                  stored(tensor, storage_of(inner, *storage), pickled.meta, place, first_names));
    }
    return out;
  }

  Storage storage_of(const ZipReader& zip, const ZipRecord& record) {
    if (auto range = zip.range(record)) return {std::move(range), nullptr};
    auto& memory = inflated_[record.offset];
    if (memory == nullptr) {
      memory = std::make_shared<const std::vector<std::byte>>(
          zip.content(record, kMaxInflatedBytes - inflated_bytes_));
      inflated_bytes_ += memory->size();
    }
    return {std::nullopt, memory};
  }

  int64_t number(const Size& size, const std::string& name) const {
    if (const auto* n = std::get_if<int64_t>(&size); n != nullptr && *n >= 0) return *n;
    corrupt("the tensor '{}' has a size, stride or offset that is not a number from 0 on", name);
  }

  StoredTensor stored(const std::string& name, const Storage& storage, const TensorMeta& meta,
                      const std::string& place, std::map<std::string, std::string>& first_names) {
    const std::optional<DType> dtype = find_dtype(meta.type);
    if (!dtype || !meta.is_strided) {
      fail(ErrorKind::kUnsupported, "[pt2] '{}': the tensor '{}' is {}{}, which is not supported",
           file_, name, meta.is_strided ? "" : "sparse ", torch_name(meta.type));
    }
    StridedLayout layout{{}, {}, number(meta.storage_offset, name)};
    for (const Size& s : meta.sizes) layout.shape.push_back(number(s, name));
    for (const Size& s : meta.strides) layout.strides.push_back(number(s, name));
    const std::optional<int64_t> needed = layout.needed_elements();
    const auto there = static_cast<int64_t>(storage.size() / size_bytes(*dtype));
    if (!needed || *needed > there || storage.size() % size_bytes(*dtype) != 0) {
      corrupt("the tensor '{}', {} {} at element {}, does not lie within the {} bytes of '{}'",
              name, tranship::name(*dtype), ir::Shape::of(layout.shape).text(), layout.offset,
              storage.size(), place);
    }
    check_expansion(name, layout, there);
    std::string key = fmt::format("{} {} {} {}", place, tranship::name(*dtype), layout.offset,
                                  ir::Shape::of(layout.shape).text());
    if (!layout.is_contiguous()) key += ir::Shape::of(layout.strides).text();
    const std::string first = first_names.emplace(std::move(key), name).first->second;
    return {source(name, *dtype, storage, layout), first};
  }

  /// A stride of 0 makes any number of elements out of one.
  void check_expansion(const std::string& name, const StridedLayout& layout, int64_t there) const {
    const int64_t limit = std::max(there, kMaxExpandedElements);
    int64_t elements = 1;
    for (const int64_t size : layout.shape) {
      if (__builtin_mul_overflow(elements, size, &elements) || elements > limit) {
        fail(ErrorKind::kUnsupported,
             "[pt2] '{}': the tensor '{}' repeats its {} elements to {}: too large", file_, name,
             there, ir::Shape::of(layout.shape).text());
      }
    }
  }

  static TensorSourcePtr source(const std::string& name, DType dtype, const Storage& storage,
                                const StridedLayout& layout) {
    if (storage.range) return strided_source(name, dtype, layout, *storage.range);
    Tensor tensor(dtype, layout.shape);
    copy_strided(*storage.memory, layout, size_bytes(dtype), 0, tensor.bytes());
    return memory_source(name, std::move(tensor));
  }

  std::string file_;
  ZipReader zip_;
  std::string root_;                                                          // "model/"
  std::map<size_t, std::shared_ptr<const std::vector<std::byte>>> inflated_;  // by offset
  size_t inflated_bytes_ = 0;
};

}  // namespace

Archive open_archive(const std::filesystem::path& path) {
  return open_archive(MappedFile::open(path));
}

Archive open_archive(const std::shared_ptr<const MappedFile>& file) { return Opener(file).open(); }

}  // namespace tranship::pt2

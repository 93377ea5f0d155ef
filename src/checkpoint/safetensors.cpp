#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors_header.h"

namespace tranship {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct FormatDType {
  std::string_view name;
  std::optional<DType> dtype;  // none: the format has it, tranship does not
};

// In the order in which the package lays out a file's tensors: the most strictly aligned first.
constexpr std::array<FormatDType, 22> kDTypes = {{
    {"U64", DType::kU64},          {"I64", DType::kI64},      {"F64", DType::kF64},
    {"C64", std::nullopt},         {"F32", DType::kF32},      {"U32", DType::kU32},
    {"I32", DType::kI32},          {"BF16", DType::kBF16},    {"F16", DType::kF16},
    {"U16", DType::kU16},          {"I16", DType::kI16},      {"F8_E5M2FNUZ", std::nullopt},
    {"F8_E4M3FNUZ", std::nullopt}, {"F8_E8M0", std::nullopt}, {"F8_E4M3", DType::kF8E4M3},
    {"F8_E5M2", DType::kF8E5M2},   {"I8", DType::kI8},        {"U8", DType::kU8},
    {"F6_E3M2", std::nullopt},     {"F6_E2M3", std::nullopt}, {"F4", std::nullopt},
    {"BOOL", DType::kBool},
}};

/// Checks one file's header against its bytes.
class Opener {
 public:
  explicit Opener(std::shared_ptr<const MappedFile> file)
      : file_(std::move(file)), name_(file_->path().string()), header_(read_header()) {}

  SafetensorsFile open() {
    refuse_unsupported_dtypes();
    std::map<std::string, TensorSourcePtr> tensors;
    for (const SafetensorsEntry& entry : header_.entries)
      tensors.emplace(entry.name, source_of(entry));
    require_no_holes();
    return {std::move(tensors), std::move(header_.metadata)};
  }

 private:
  SafetensorsHeader read_header() {
    if (as_text(file_->bytes()).starts_with("version https://git-lfs")) {
      fail(ErrorKind::kCorrupt,
           "[safetensors] '{}' is a Git LFS pointer, not the file itself: run `git lfs pull`",
           name_);
    }
    ByteReader reader("safetensors", name_, file_->bytes());
    const auto length = reader.number<uint64_t>("the header's length");
    if (length > kMaxHeaderBytes) {
      fail(ErrorKind::kCorrupt,
           "[safetensors] '{}': the header claims {} bytes, and the format allows {}", name_,
           length, kMaxHeaderBytes);
    }
    const Bytes text = reader.take(static_cast<size_t>(length), "the header");
    data_begin_ = reader.offset();
    return parse_safetensors_header(name_, as_text(text));
  }

  static const FormatDType* find_dtype(std::string_view name) {
    const auto* found = std::ranges::find(kDTypes, name, &FormatDType::name);
    return found == kDTypes.end() ? nullptr : found;
  }

  void refuse_unsupported_dtypes() const {
    std::vector<std::string> unsupported;
    for (const SafetensorsEntry& entry : header_.entries) {
      const FormatDType* dtype = find_dtype(entry.dtype);
      if (dtype == nullptr) {
        fail(ErrorKind::kCorrupt,
             "[safetensors] '{}': tensor '{}' has the dtype '{}', which the format does not know",
             name_, entry.name, entry.dtype);
      }
      if (!dtype->dtype) unsupported.push_back(entry.name + " (" + entry.dtype + ")");
    }
    if (unsupported.empty()) return;
    fail(ErrorKind::kUnsupported,
         "[safetensors] '{}': tensors have dtypes that tranship cannot read: {}", name_,
         listed(unsupported));
  }

  /// The tensor, once its span is inside the file and has the size of its shape.
  TensorSourcePtr source_of(const SafetensorsEntry& entry) const {
    const uint64_t begin = entry.data_offsets[0];
    const uint64_t end = entry.data_offsets[1];
    const uint64_t available = file_->bytes().size() - data_begin_;
    if (begin > end) {
      fail(ErrorKind::kCorrupt,
           "[safetensors] '{}': tensor '{}' ends at data offset {}, before its begin at {}", name_,
           entry.name, end, begin);
    }
    if (end > available) {
      fail(ErrorKind::kCorrupt,
           "[safetensors] '{}': tensor '{}' ends at data offset {}, but after the header of {} "
           "bytes the file has {}: "
           "incomplete download?",
           name_, entry.name, end, data_begin_, available);
    }
    const DType dtype = *find_dtype(entry.dtype)->dtype;
    const std::vector<int64_t> shape = shape_of(entry, size_bytes(dtype), end - begin);
    return range_source(entry.name, dtype, shape, {file_, data_begin_ + begin, end - begin});
  }

  std::vector<int64_t> shape_of(const SafetensorsEntry& entry, size_t element_bytes,
                                uint64_t span) const {
    std::vector<int64_t> shape;
    int64_t bytes = static_cast<int64_t>(element_bytes);
    for (const uint64_t dimension : entry.shape) {
      if (__builtin_mul_overflow(bytes, dimension, &bytes) ||
          dimension > uint64_t{std::numeric_limits<int64_t>::max()}) {
        fail(ErrorKind::kCorrupt,
             "[safetensors] '{}': tensor '{}': the size of its shape [{}] overflows", name_,
             entry.name, fmt::join(entry.shape, ", "));
      }
      shape.push_back(static_cast<int64_t>(dimension));
    }
    if (static_cast<uint64_t>(bytes) != span) {
      fail(ErrorKind::kCorrupt,
           "[safetensors] '{}': tensor '{}': {} [{}] takes {} bytes, but data offsets {} to {} are "
           "{}",
           name_, entry.name, entry.dtype, fmt::join(entry.shape, ", "), bytes,
           entry.data_offsets[0], entry.data_offsets[1], span);
    }
    return shape;
  }

  void require_no_holes() const {
    std::vector<const SafetensorsEntry*> sorted;
    sorted.reserve(header_.entries.size());
    for (const SafetensorsEntry& entry : header_.entries) sorted.push_back(&entry);
    std::ranges::sort(sorted, {}, [](const SafetensorsEntry* e) {
      return std::pair(e->data_offsets[0], e->data_offsets[1]);
    });
    uint64_t position = 0;
    for (const SafetensorsEntry* entry : sorted) {
      const uint64_t begin = entry->data_offsets[0];
      if (begin != position) {
        fail(ErrorKind::kCorrupt,
             "[safetensors] '{}': tensor '{}' begins at data offset {}, but the one before ends at "
             "{}: {}",
             name_, entry->name, begin, position,
             begin < position ? "they overlap" : "the bytes between belong to none");
      }
      position = entry->data_offsets[1];
    }
    const uint64_t available = file_->bytes().size() - data_begin_;
    if (position != available) {
      fail(ErrorKind::kCorrupt,
           "[safetensors] '{}': the last tensor ends at data offset {}, but the file goes on to {}",
           name_, position, available);
    }
  }

  std::shared_ptr<const MappedFile> file_;
  std::string name_;
  size_t data_begin_ = 0;
  SafetensorsHeader header_;
};

/// The index's shards, each with the names of its tensors.
using Shards = std::map<std::string, std::set<std::string>>;

Shards read_index(const std::filesystem::path& index, std::string_view text) {
  Shards shards;
  for (const auto& [tensor, shard] : parse_safetensors_index(index.string(), text)) {
    const std::filesystem::path relative(shard);
    if (shard.empty() || relative.is_absolute() ||
        std::ranges::find(relative, "..") != relative.end()) {
      fail(ErrorKind::kCorrupt,
           "[safetensors] '{}': tensor '{}' lies in '{}', which is not a file below this folder",
           index.string(), tensor, shard);
    }
    shards[shard].insert(tensor);
  }
  return shards;
}

void require_shards(const std::filesystem::path& index, const Shards& shards) {
  std::vector<std::string> missing;
  std::error_code ignored;  // a name that no file can have is not there either
  for (const auto& [shard, names] : shards) {
    if (!std::filesystem::exists(index.parent_path() / shard, ignored)) missing.push_back(shard);
  }
  if (missing.empty()) return;
  fail(ErrorKind::kIo,
       "[safetensors] '{}' names {} files, of which {} are not there: {}: incomplete download?",
       index.string(), shards.size(), missing.size(), listed(missing));
}

std::string header_text(const std::vector<const NamedTensors::value_type*>& order) {
  std::string text = "{";
  size_t offset = 0;
  for (const auto* item : order) {
    const Tensor& tensor = item->second;
    const auto* dtype =
        std::ranges::find(kDTypes, std::optional(tensor.dtype()), &FormatDType::dtype);
    const size_t end = offset + tensor.bytes().size();
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        text.size() > 1 ? "," : "", Json(item->first).dump(), dtype->name,
                        fmt::join(tensor.shape(), ","), offset, end);
    offset = end;
  }
  text += '}';
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return text;
}

}  // namespace

SafetensorsFile open_safetensors(const std::filesystem::path& path) {
  return open_safetensors(MappedFile::open(path));
}

SafetensorsFile open_safetensors(std::shared_ptr<const MappedFile> file) {
  return Opener(std::move(file)).open();
}

std::map<std::string, TensorSourcePtr> open_sharded_safetensors(
    const std::filesystem::path& index) {
  return open_sharded_safetensors(index, read_text(index));
}

std::map<std::string, TensorSourcePtr> open_sharded_safetensors(const std::filesystem::path& index,
                                                                std::string_view text) {
  const Shards shards = read_index(index, text);
  require_shards(index, shards);
  std::map<std::string, TensorSourcePtr> tensors;
  std::vector<std::string> absent;
  std::vector<std::string> unlisted;
  for (const auto& [shard, names] : shards) {
    SafetensorsFile file = open_safetensors(index.parent_path() / shard);
    for (const std::string& name : names) {
      if (!file.tensors.contains(name)) absent.push_back(fmt::format("{} in {}", name, shard));
    }
    for (auto& [name, source] : file.tensors) {
      if (!names.contains(name)) unlisted.push_back(fmt::format("{} in {}", name, shard));
      tensors.emplace(name, std::move(source));
    }
  }
  if (!absent.empty()) {
    fail(
        ErrorKind::kCorrupt,
        "[safetensors] '{}' names tensors that are not in their files: {}: files of two downloads?",
        index.string(), listed(absent));
  }
  if (!unlisted.empty()) {
    fail(ErrorKind::kCorrupt,
         "[safetensors] '{}' does not name tensors that are in its files: {}: files of two "
         "downloads?",
         index.string(), listed(unlisted));
  }
  return tensors;
}

NamedTensors read_safetensors(const std::filesystem::path& path) {
  NamedTensors tensors;
  for (const auto& [name, source] : open_safetensors(path).tensors)
    tensors.emplace(name, read_all(*source));
  return tensors;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  if (tensors.contains("__metadata__")) {
    fail(ErrorKind::kInvalidArgument,
         "[safetensors] '{}': the format has no tensor named '__metadata__'", path.string());
  }
  std::vector<const NamedTensors::value_type*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::ranges::stable_sort(order, {}, [](const auto* item) {
    return std::ranges::find(kDTypes, std::optional(item->second.dtype()), &FormatDType::dtype) -
           kDTypes.begin();
  });
  const std::string header = header_text(order);
  const auto length = static_cast<uint64_t>(header.size());
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const auto* item : order) file.write(item->second.bytes());
  file.commit();
}

}  // namespace tranship

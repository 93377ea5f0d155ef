#include "checkpoint/gguf_file.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace tranship {
namespace {

constexpr uint64_t kMaxNameBytes = 65535;  // the format's limit for keys
constexpr uint32_t kMaxRank = 4;           // ggml's
constexpr int kMaxDepth = 4;               // of lists in lists
constexpr size_t kMinPairBytes = 8 + 4 + 1;
constexpr size_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;
constexpr uint64_t kDefaultAlignment = 32;

// Bytes of one value; 0 for those that say their length themselves.
size_t fixed_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUInt8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUInt16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUInt32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUInt64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

template <class T>
GgufValue integer_value(GgufType type, ByteReader& reader) {
  const T number = reader.number<T>("a metadata value");
  if constexpr (std::is_signed_v<T>) return {type, static_cast<int64_t>(number)};
  return {type, static_cast<uint64_t>(number)};
}

std::optional<int64_t> as_integer(const GgufValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value.value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value.value)) {
    if (*number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return static_cast<int64_t>(*number);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(GgufType type) {
  switch (type) {
    case GgufType::kUInt8:
      return "u8";
    case GgufType::kInt8:
      return "i8";
    case GgufType::kUInt16:
      return "u16";
    case GgufType::kInt16:
      return "i16";
    case GgufType::kUInt32:
      return "u32";
    case GgufType::kInt32:
      return "i32";
    case GgufType::kFloat32:
      return "f32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kUInt64:
      return "u64";
    case GgufType::kInt64:
      return "i64";
    case GgufType::kFloat64:
      return "f64";
  }
  return "unknown";
}

/// Reads one file from its first byte to the end of the tensor table.
class GgufParser {
 public:
  explicit GgufParser(std::shared_ptr<const MappedFile> file) {
    gguf_.label_ = file->path().filename().string();
    gguf_.file_ = std::move(file);
  }

  GgufFile parse() {
    ByteReader reader("gguf", gguf_.label_, gguf_.file_->bytes());
    read_version(reader);
    const auto num_tensors = reader.number<uint64_t>("the number of tensors");
    const auto num_pairs = reader.number<uint64_t>("the number of metadata pairs");
    check_count(reader, num_pairs, kMinPairBytes, "metadata pairs");
    for (uint64_t i = 0; i < num_pairs; ++i) read_pair(reader);
    check_count(reader, num_tensors, kMinTensorBytes, "tensors");
    for (uint64_t i = 0; i < num_tensors; ++i) read_tensor(reader);
    place_tensors(reader.offset());
    return std::move(gguf_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_corrupt(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kCorrupt, "[gguf] '{}': {}", gguf_.label_,
         fmt::vformat(format, fmt::make_format_args(args...)));
  }

  void check_count(const ByteReader& reader, uint64_t count, size_t min_bytes,
                   std::string_view what) const {
    if (count <= reader.left() / min_bytes) return;
    fail_corrupt(
        "says that it has {} {}, but only {} bytes are left at byte {}: incomplete download?",
        count, what, reader.left(), reader.offset());
  }

  void read_version(ByteReader& reader) {
    const std::string_view magic = as_text(reader.take(4, "the magic number"));
    if (magic != "GGUF")
      fail_corrupt("is not a GGUF file: it does not start with the letters GGUF");
    gguf_.version_ = reader.number<uint32_t>("the version");
    const uint32_t swapped = __builtin_bswap32(gguf_.version_);
    if (gguf_.version_ == 2 || gguf_.version_ == 3) return;
    if (swapped == 2 || swapped == 3) {
      fail(ErrorKind::kUnsupported, "[gguf] '{}' is big-endian; only little-endian files are read",
           gguf_.label_);
    }
    fail(ErrorKind::kUnsupported,
         "[gguf] '{}' is of GGUF version {}; versions 2 and 3 are read. Convert the model again "
         "with a current "
         "converter",
         gguf_.label_, gguf_.version_);
  }

  std::string_view read_name(ByteReader& reader, std::string_view what) {
    const size_t offset = reader.offset();
    const auto length = reader.number<uint64_t>(what);
    if (length == 0 || length > kMaxNameBytes) {
      fail_corrupt("{} at byte {} has {} bytes, expected 1 to {}", what, offset, length,
                   kMaxNameBytes);
    }
    const std::string_view name = as_text(reader.take(static_cast<size_t>(length), what));
    if (find_invalid_utf8(name) != name.npos)
      fail_corrupt("{} at byte {} is not UTF-8", what, offset);
    return name;
  }

  std::string_view read_string(ByteReader& reader) {
    const auto length = reader.number<uint64_t>("a string's length");
    return as_text(reader.take(static_cast<size_t>(length), "a string"));
  }

  GgufType read_type(ByteReader& reader, std::string_view key) {
    const auto number = reader.number<uint32_t>("a metadata type");
    if (number <= static_cast<uint32_t>(GgufType::kFloat64)) return static_cast<GgufType>(number);
    fail_corrupt("metadata '{}' has the unknown type {} before byte {}", key, number,
                 reader.offset());
  }

  void read_pair(ByteReader& reader) {
    const std::string_view key = read_name(reader, "a metadata key");
    const GgufType type = read_type(reader, key);
    if (!gguf_.metadata_.emplace(std::string(key), read_value(reader, type, key)).second) {
      fail_corrupt("metadata '{}' is there twice", key);
    }
  }

  GgufValue read_value(ByteReader& reader, GgufType type, std::string_view key) {
    switch (type) {
      case GgufType::kUInt8:
        return integer_value<uint8_t>(type, reader);
      case GgufType::kInt8:
        return integer_value<int8_t>(type, reader);
      case GgufType::kUInt16:
        return integer_value<uint16_t>(type, reader);
      case GgufType::kInt16:
        return integer_value<int16_t>(type, reader);
      case GgufType::kUInt32:
        return integer_value<uint32_t>(type, reader);
      case GgufType::kInt32:
        return integer_value<int32_t>(type, reader);
      case GgufType::kUInt64:
        return integer_value<uint64_t>(type, reader);
      case GgufType::kInt64:
        return integer_value<int64_t>(type, reader);
      case GgufType::kFloat32:
        return {type, static_cast<double>(reader.number<float>("a metadata value"))};
      case GgufType::kFloat64:
        return {type, reader.number<double>("a metadata value")};
      case GgufType::kBool:
        return {type, read_bool(reader, key)};
      case GgufType::kString:
        return {type, read_string(reader)};
      case GgufType::kArray:
        return {type, read_array(reader, key, 0)};
    }
    fail_corrupt("metadata '{}' has an unknown type", key);
  }

  bool read_bool(ByteReader& reader, std::string_view key) {
    const auto byte = reader.number<uint8_t>("a metadata value");
    if (byte > 1)
      fail_corrupt("metadata '{}' is a bool with the value {}, expected 0 or 1", key, byte);
    return byte == 1;
  }

  GgufArray read_array(ByteReader& reader, std::string_view key, int depth) {
    if (depth == kMaxDepth)
      fail_corrupt("metadata '{}': lists are nested more than {} deep", key, kMaxDepth);
    const GgufType element = read_type(reader, key);
    const auto count = reader.number<uint64_t>("a list's length");
    const size_t start = reader.offset();
    const size_t min_bytes = element == GgufType::kArray    ? 12
                             : element == GgufType::kString ? 8
                                                            : fixed_bytes(element);
    check_count(reader, count, min_bytes, fmt::format("elements in the list '{}'", key));
    if (element == GgufType::kString) {
      for (uint64_t i = 0; i < count; ++i) read_string(reader);
    } else if (element == GgufType::kArray) {
      for (uint64_t i = 0; i < count; ++i) read_array(reader, key, depth + 1);
    } else {
      reader.skip(static_cast<size_t>(count) * min_bytes, "a list");
    }
    return {element, count, gguf_.file_->bytes().subspan(start, reader.offset() - start)};
  }

  void read_tensor(ByteReader& reader) {
    GgufTensor tensor;
    tensor.name = read_name(reader, "a tensor's name");
    const auto rank = reader.number<uint32_t>("a tensor's rank");
    if (rank == 0 || rank > kMaxRank) {
      fail_corrupt("tensor '{}' has {} axes, expected 1 to {}", tensor.name, rank, kMaxRank);
    }
    for (uint32_t i = 0; i < rank; ++i) tensor.shape.push_back(read_dimension(reader, tensor.name));
    const auto number = reader.number<uint32_t>("a tensor's type");
    const auto type = find_ggml_layout(number);
    if (!type) {
      fail(ErrorKind::kUnsupported,
           "[gguf] '{}': tensor '{}' has the unknown ggml type {}: the file may be newer than this "
           "program",
           gguf_.label_, tensor.name, number);
    }
    tensor.type = type->type;
    tensor.range.file = gguf_.file_;
    tensor.range.size = tensor_bytes(tensor, *type);
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    offsets_.push_back(reader.number<uint64_t>("a tensor's offset"));
    if (!gguf_.tensor_by_name_.emplace(tensor.name, gguf_.tensors_.size()).second) {
      fail_corrupt("tensor '{}' is there twice", tensor.name);
    }
    gguf_.tensors_.push_back(std::move(tensor));
  }

  int64_t read_dimension(ByteReader& reader, std::string_view tensor) {
    const auto dimension = reader.number<uint64_t>("a tensor's dimension");
    if (dimension == 0 || dimension > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail_corrupt("tensor '{}' has an axis of {} elements", tensor, dimension);
    }
    return static_cast<int64_t>(dimension);
  }

  // `shape` still has the file's order: the first axis is the one that lies together.
  size_t tensor_bytes(const GgufTensor& tensor, const GgmlLayout& type) const {
    int64_t num_elements = 1;
    for (const int64_t dimension : tensor.shape) {
      if (__builtin_mul_overflow(num_elements, dimension, &num_elements)) {
        fail_corrupt("tensor '{}' has more elements than fit into 63 bits", tensor.name);
      }
    }
    if (tensor.shape.front() % type.block_elements != 0) {
      fail_corrupt(
          "tensor '{}' has rows of {} elements, which is not a multiple of {}'s block of {}",
          tensor.name, tensor.shape.front(), type.name, type.block_elements);
    }
    size_t bytes = 0;
    if (!multiply(static_cast<size_t>(num_elements / type.block_elements), type.block_bytes,
                  &bytes)) {
      fail_corrupt("tensor '{}' has more bytes than fit into 64 bits", tensor.name);
    }
    return bytes;
  }

  uint64_t alignment() const {
    const auto found = gguf_.find_integer("general.alignment");
    if (!found) return kDefaultAlignment;
    if (*found <= 0 || *found > (int64_t{1} << 31) ||
        !std::has_single_bit(static_cast<uint64_t>(*found))) {
      fail_corrupt("general.alignment is {}, expected a power of two", *found);
    }
    return static_cast<uint64_t>(*found);
  }

  void place_tensors(size_t table_end) {
    const uint64_t align = alignment();
    const uint64_t data_start = (table_end + align - 1) / align * align;
    const uint64_t file_size = gguf_.file_->bytes().size();
    const uint64_t data_size = file_size > data_start ? file_size - data_start : 0;
    for (size_t i = 0; i < gguf_.tensors_.size(); ++i) {
      GgufTensor& tensor = gguf_.tensors_[i];
      if (offsets_[i] % align != 0) {
        fail_corrupt("tensor '{}' starts at offset {}, which is not a multiple of the alignment {}",
                     tensor.name, offsets_[i], align);
      }
      if (offsets_[i] > data_size || tensor.range.size > data_size - offsets_[i]) {
        fail_corrupt(
            "tensor '{}' needs {} bytes from byte {} + {}, but the file has {}: incomplete "
            "download?",
            tensor.name, tensor.range.size, data_start, offsets_[i], file_size);
      }
      tensor.range.offset = static_cast<size_t>(data_start + offsets_[i]);
    }
    check_order(align, data_start);
  }

  /// A tensor begins where the one before ends, or at the next multiple of the alignment; the first
  /// one where the data begin.
  void check_order(uint64_t align, uint64_t data_start) const {
    std::vector<const GgufTensor*> sorted;
    for (const GgufTensor& tensor : gguf_.tensors_) sorted.push_back(&tensor);
    std::sort(sorted.begin(), sorted.end(), [](const GgufTensor* a, const GgufTensor* b) {
      return a->range.offset < b->range.offset;
    });
    uint64_t end = data_start;
    for (size_t i = 0; i < sorted.size(); ++i) {
      const FileRange& range = sorted[i]->range;
      if (range.offset < end) {
        fail_corrupt("tensors '{}' and '{}' overlap at byte {}", sorted[i - 1]->name,
                     sorted[i]->name, range.offset);
      }
      if (range.offset - end >= align) {
        fail_corrupt(
            "tensor '{}' starts at byte {}, but the one before ends at {}: the bytes "
            "between belong to none",
            sorted[i]->name, range.offset, end);
      }
      end = range.offset + range.size;
    }
  }

  GgufFile gguf_;
  std::vector<uint64_t> offsets_;  // of the tensors, from the start of the data
};

GgufFile GgufFile::open(const std::filesystem::path& path) { return open(MappedFile::open(path)); }

GgufFile GgufFile::open(std::shared_ptr<const MappedFile> file) {
  return GgufParser(std::move(file)).parse();
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = tensor_by_name_.find(name);
  return found == tensor_by_name_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

void GgufFile::fail_type(std::string_view key, GgufType found, std::string_view expected) const {
  fail(ErrorKind::kCorrupt, "[gguf] '{}': metadata '{}' has the type {}, expected {}", label_, key,
       tranship::name(found), expected);
}

void GgufFile::check_text(std::string_view key, std::string_view text) const {
  const size_t place = find_invalid_utf8(text);
  if (place == text.npos) return;
  fail(ErrorKind::kCorrupt, "[gguf] '{}': metadata '{}' is not UTF-8: byte {:#04x} at {}", label_,
       key, static_cast<unsigned char>(text[place]), place);
}

std::optional<int64_t> GgufFile::find_integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value);
  if (!number) fail_type(key, value->type, "an integer of at most 63 bits");
  return number;
}

std::optional<double> GgufFile::find_number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<double>(&value->value)) return *number;
  const auto number = as_integer(*value);
  if (!number) fail_type(key, value->type, "a number");
  return static_cast<double>(*number);
}

std::optional<bool> GgufFile::find_boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* boolean = std::get_if<bool>(&value->value);
  if (boolean == nullptr) fail_type(key, value->type, "bool");
  return *boolean;
}

std::optional<std::string_view> GgufFile::find_text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string_view>(&value->value);
  if (text == nullptr) fail_type(key, value->type, "string");
  check_text(key, *text);
  return *text;
}

const GgufArray* GgufFile::find_array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<GgufArray>(&value->value);
  if (array == nullptr) fail_type(key, value->type, "array");
  return array;
}

std::optional<uint64_t> GgufFile::find_count(std::string_view key) const {
  const GgufArray* array = find_array(key);
  return array == nullptr ? std::nullopt : std::optional(array->count);
}

std::vector<std::string_view> GgufFile::texts(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return {};
  if (array->element != GgufType::kString) fail_type(key, array->element, "strings in the list");
  std::vector<std::string_view> texts;
  texts.reserve(static_cast<size_t>(array->count));
  ByteReader reader("gguf", label_, array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    const auto length = reader.number<uint64_t>(key);
    texts.push_back(as_text(reader.take(static_cast<size_t>(length), key)));
    check_text(key, texts.back());
  }
  return texts;
}

std::vector<int64_t> GgufFile::integers(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return {};
  if (array->element != GgufType::kInt32 && array->element != GgufType::kUInt32) {
    fail_type(key, array->element, "i32 or u32 in the list");
  }
  std::vector<int64_t> integers;
  integers.reserve(static_cast<size_t>(array->count));
  ByteReader reader("gguf", label_, array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    const auto bits = reader.number<uint32_t>(key);
    integers.push_back(array->element == GgufType::kInt32 ? static_cast<int32_t>(bits)
                                                          : int64_t{bits});
  }
  return integers;
}

std::vector<double> GgufFile::numbers(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return {};
  if (array->element != GgufType::kFloat32) fail_type(key, array->element, "f32 in the list");
  std::vector<double> numbers;
  numbers.reserve(static_cast<size_t>(array->count));
  ByteReader reader("gguf", label_, array->bytes);
  for (uint64_t i = 0; i < array->count; ++i)
    numbers.push_back(static_cast<double>(reader.number<float>(key)));
  return numbers;
}

}  // namespace tranship

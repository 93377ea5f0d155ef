// The GGUF container: metadata and the table of tensors, checked before anything trusts them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/ggml_type.h"
#include "ir/tensor_source.h"

namespace tranship {

/// The types of metadata, with the format's numbers.
enum class GgufType : uint32_t {
  kUInt8 = 0,
  kInt8 = 1,
  kUInt16 = 2,
  kInt16 = 3,
  kUInt32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUInt64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

/// "u32", "string", "array" ...: for messages.
std::string_view name(GgufType type);

/// A list as it lies in the file: its bounds were checked when the file was opened.
struct GgufArray {
  GgufType element;
  uint64_t count = 0;
  Bytes bytes;
};

/// Views into the mapped file: valid as long as the GgufFile.
struct GgufValue {
  GgufType type;
  std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray> value;
};

struct GgufTensor {
  std::string name;
  GgmlType type;
  std::vector<int64_t>
      shape;  // slowest axis first, as PyTorch has it: the reverse of the file's order
  FileRange range;
};

/// Shares the mapped file; nothing of the tensors' data is read.
/// Errors of the readers: corrupt, with the file and the key, if the value has another type, or is
/// text that is not UTF-8.
class GgufFile {
 public:
  /// Reads version 2 or 3, little-endian.
  /// Errors: corrupt if anything does not fit (a count, a length, an offset, tensors that overlap
  /// or leave holes, duplicate names); unsupported for version 1, big-endian, and unknown tensor
  /// types; io if the file cannot be read.
  static GgufFile open(const std::filesystem::path& path);
  static GgufFile open(std::shared_ptr<const MappedFile> file);

  const std::filesystem::path& path() const { return file_->path(); }
  /// The path as it was given: how messages name the file.
  const std::string& label() const { return label_; }
  uint32_t version() const { return version_; }
  /// In the file's order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;
  /// All metadata, in order of key.
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }

  bool has(std::string_view key) const { return metadata_.contains(key); }
  std::optional<int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_number(std::string_view key) const;  // an integer counts as one
  std::optional<bool> find_boolean(std::string_view key) const;
  std::optional<std::string_view> find_text(std::string_view key) const;
  std::optional<uint64_t> find_count(std::string_view key) const;  // of a list
  /// Lists; an absent one is empty.
  std::vector<std::string_view> texts(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

 private:
  GgufFile() = default;
  const GgufValue* find(std::string_view key) const;
  const GgufArray* find_array(std::string_view key) const;
  /// Errors: corrupt for text that is not UTF-8.
  void check_text(std::string_view key, std::string_view text) const;
  [[noreturn]] void fail_type(std::string_view key, GgufType found,
                              std::string_view expected) const;

  friend class GgufParser;
  std::shared_ptr<const MappedFile> file_;
  std::string label_;
  uint32_t version_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> tensor_by_name_;
};

}  // namespace tranship

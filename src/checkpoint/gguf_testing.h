// For tests: GGUF files made in memory, right or wrong in any field.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing.h"
#include "checkpoint/gguf_file.h"

namespace tranship {

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string gguf_string(std::string_view text) {
  return little_endian<uint64_t>(text.size()) + std::string(text);
}

/// Writes a GGUF field by field.
class GgufBuilder {
 public:
  uint32_t version = 3;

  GgufBuilder& pair(std::string_view key, GgufType type, std::string_view bytes) {
    pairs_ += gguf_string(key) + little_endian(static_cast<uint32_t>(type)) + std::string(bytes);
    ++num_pairs_;
    return *this;
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    return pair(key, GgufType::kString, gguf_string(value));
  }
  GgufBuilder& u32(std::string_view key, uint32_t value) {
    return pair(key, GgufType::kUInt32, little_endian(value));
  }
  GgufBuilder& f32(std::string_view key, float value) {
    return pair(key, GgufType::kFloat32, little_endian(value));
  }
  GgufBuilder& boolean(std::string_view key, bool value) {
    return pair(key, GgufType::kBool, std::string(1, static_cast<char>(value)));
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& value : values) bytes += gguf_string(value);
    return list(key, GgufType::kString, values.size(), bytes);
  }
  GgufBuilder& i32s(std::string_view key, const std::vector<int32_t>& values) {
    std::string bytes;
    for (const int32_t value : values) bytes += little_endian(value);
    return list(key, GgufType::kInt32, values.size(), bytes);
  }
  GgufBuilder& f32s(std::string_view key, const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values) bytes += little_endian(value);
    return list(key, GgufType::kFloat32, values.size(), bytes);
  }
  GgufBuilder& list(std::string_view key, GgufType element, uint64_t count,
                    std::string_view bytes) {
    return pair(
        key, GgufType::kArray,
        little_endian(static_cast<uint32_t>(element)) + little_endian(count) + std::string(bytes));
  }

  /// `dimensions` in the file's order: fastest first.
  GgufBuilder& tensor(std::string_view name, const std::vector<uint64_t>& dimensions, GgmlType type,
                      std::string_view bytes) {
    data_.resize((data_.size() + 31) / 32 * 32);
    tensors_ += gguf_string(name) + little_endian(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t dimension : dimensions) tensors_ += little_endian(dimension);
    tensors_ += little_endian(static_cast<uint32_t>(type)) + little_endian<uint64_t>(data_.size());
    data_ += bytes;
    ++num_tensors_;
    return *this;
  }
  /// Zeros of f32.
  GgufBuilder& zeros(std::string_view name, const std::vector<uint64_t>& dimensions) {
    size_t bytes = sizeof(float);
    for (const uint64_t dimension : dimensions) bytes *= static_cast<size_t>(dimension);
    return tensor(name, dimensions, GgmlType::kF32, std::string(bytes, '\0'));
  }

  std::string build() const {
    std::string file =
        "GGUF" + little_endian(version) + little_endian(num_tensors_) + little_endian(num_pairs_);
    file += pairs_ + tensors_;
    if (!data_.empty()) file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

 private:
  std::string pairs_;
  std::string tensors_;
  std::string data_;
  uint64_t num_pairs_ = 0;
  uint64_t num_tensors_ = 0;
};

class GgufTest : public testing::Test {
 protected:
  GgufFile open(std::string_view bytes) const {
    return GgufFile::open(folder_.write("model.gguf", bytes));
  }
  GgufFile open(const GgufBuilder& builder) const { return open(builder.build()); }

  TestFolder folder_;
};

inline std::filesystem::path gguf_case(std::string_view name) {
  return std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/gguf" / name;
}

}  // namespace tranship

// A bounds-checked little-endian reader: the only way bytes of a file become numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace tranship {

using Bytes = std::span<const std::byte>;

/// A view; whoever owns the bytes and the name must outlive it. Every read that would pass the end
/// is Error{corrupt} naming the file, the offset, and what was being read.
class ByteReader {
 public:
  ByteReader(std::string_view operation, std::string_view file, Bytes bytes)
      : operation_(operation), file_(file), bytes_(bytes) {}

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }
  void seek(size_t offset, std::string_view what);
  void skip(size_t count, std::string_view what) { take(count, what); }

  /// The next `count` bytes, and moves past them.
  Bytes take(size_t count, std::string_view what);

  /// A little-endian number (integers, float, double).
  template <class T>
    requires std::is_arithmetic_v<T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

 private:
  std::string_view operation_;
  std::string_view file_;
  Bytes bytes_;
  size_t offset_ = 0;
};

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// a * b, or false if it does not fit.
[[nodiscard]] inline bool multiply(size_t a, size_t b, size_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

}  // namespace tranship

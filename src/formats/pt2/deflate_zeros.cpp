#include "formats/pt2/deflate_zeros.h"

#include "base/crc32.h"

namespace tranship::pt2 {
namespace {

/// Bits into bytes, the lowest first.
class BitWriter {
 public:
  void add(uint32_t bits, int count) {
    for (int i = 0; i < count; ++i) add_bit((bits >> i) & 1);
  }
  /// A Huffman code: its highest bit goes first.
  void add_code(uint32_t code, int count) {
    for (int i = count - 1; i >= 0; --i) add_bit((code >> i) & 1);
  }
  std::string bytes;

 private:
  void add_bit(uint32_t bit) {
    if (used_ == 0) bytes.push_back('\0');
    bytes.back() = static_cast<char>(static_cast<uint8_t>(bytes.back()) | (bit << used_));
    used_ = (used_ + 1) % 8;
  }
  int used_ = 0;  // bits of the last byte
};

constexpr uint64_t kLongestMatch = 258;

// Codes of the fixed tables: 0 to 143 are 8 bits from 0x30 on, 256 is seven zeros, 280 to 287 are
// 8 bits from 0xc0 on. Distance 1 is five zeros.
void add_zero(BitWriter& out) { out.add_code(0x30, 8); }
void add_match(BitWriter& out) {
  out.add_code(0xc0 + (285 - 280), 8);
  out.add_code(0, 5);
}
void add_end(BitWriter& out) { out.add_code(0, 7); }

}  // namespace

std::string deflate_zeros(uint64_t count) {
  BitWriter out;
  out.add(1, 1);  // the last block
  out.add(1, 2);  // of the fixed tables
  add_zero(out);  // what matches repeat
  --count;
  for (; count >= kLongestMatch; count -= kLongestMatch) add_match(out);
  for (; count > 0; --count) add_zero(out);
  add_end(out);
  return std::move(out.bytes);
}

uint32_t crc32_of_zeros(uint64_t count) {
  const std::byte zero{};
  uint32_t sum = 0, block = crc32({&zero, 1});  // of 2^i zeros
  uint64_t size = 1;
  for (; count != 0; count >>= 1, size *= 2) {
    if ((count & 1) != 0) sum = combine_crc32(sum, block, size);
    block = combine_crc32(block, block, size);
  }
  return sum;
}

}  // namespace tranship::pt2

#include "base/crc32.h"

#include <gtest/gtest.h>

#include <string>

namespace tranship {
namespace {

// Bit by bit, as the definition says.
uint32_t slow(Bytes bytes) {
  uint32_t rest = ~0u;
  for (const std::byte byte : bytes) {
    rest ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest & 1) != 0 ? (rest >> 1) ^ 0xedb88320u : rest >> 1;
  }
  return ~rest;
}

std::string text_of(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i + 7 * i + (i >> 5));
  return text;
}

TEST(Crc32Test, is_that_of_zip_files) {
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926u);  // the check value of the standard
  EXPECT_EQ(crc32({}), 0u);
}

TEST(Crc32Test, every_length_and_alignment_is_right) {
  const std::string text = text_of(400);
  for (size_t begin = 0; begin < 17; ++begin) {
    for (size_t size = 0; begin + size <= text.size(); ++size) {
      const Bytes bytes = as_bytes(text).subspan(begin, size);
      ASSERT_EQ(crc32(bytes), slow(bytes)) << begin << ", " << size;
    }
  }
}

TEST(Crc32Test, goes_on_from_a_checksum) {
  const std::string text = text_of(1000);
  const Bytes bytes = as_bytes(text);
  for (const size_t cut : {0u, 1u, 63u, 64u, 65u, 128u, 999u, 1000u}) {
    EXPECT_EQ(crc32(bytes.subspan(cut), crc32(bytes.first(cut))), slow(bytes)) << cut;
  }
}

TEST(Crc32Test, pieces_combine) {
  const std::string text = text_of(5000);
  const Bytes bytes = as_bytes(text);
  for (const size_t cut : {0u, 1u, 8u, 100u, 4096u, 4999u, 5000u}) {
    const Bytes first = bytes.first(cut), second = bytes.subspan(cut);
    EXPECT_EQ(combine_crc32(crc32(first), crc32(second), second.size()), slow(bytes)) << cut;
  }
}

TEST(Crc32Test, sizes_over_32_bits_combine) {
  // Zeros behind a piece are a power of x: two steps of 2^32 are one of 2^33.
  const uint32_t piece = crc32(as_bytes("piece"));
  const uint64_t step = uint64_t{1} << 32;
  const uint32_t twice = combine_crc32(combine_crc32(piece, 0, step), 0, step);
  EXPECT_EQ(combine_crc32(piece, 0, 2 * step), twice);
}

}  // namespace
}  // namespace tranship

#include "base/file_hash.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/testing.h"

namespace tranship {
namespace {

std::string example(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761U) >> 13);
  return text;
}

TEST(FileHash, of_a_file_in_memory_and_in_pieces_is_one) {
  const TestFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, kHashBlockBytes - 1, kHashBlockBytes,
                            kHashBlockBytes + 1, 5 * kHashBlockBytes + 77}) {
    const std::string text = example(size);
    const std::string expected = hash_of(as_bytes(text));
    EXPECT_EQ(expected.size(), 16U);
    EXPECT_EQ(hash_of(*MappedFile::open(folder.write("file", text))), expected) << size;
    std::vector<uint64_t> blocks;
    BlockHasher hasher;
    for (size_t start = 0; start < size; start += kHashBlockBytes) {
      const std::string block = text.substr(start, kHashBlockBytes);
      hasher.add(as_bytes(block).first(block.size() / 3));
      hasher.add(as_bytes(block).subspan(block.size() / 3));
      blocks.push_back(hasher.finish());
    }
    EXPECT_EQ(hash_of_blocks(blocks), expected) << size;
  }
}

TEST(FileHash, changes_with_any_bit_with_the_length_and_with_the_order_of_blocks) {
  std::string text = example(2 * kHashBlockBytes + 3);
  const std::string before = hash_of(as_bytes(text));
  for (const size_t at : {size_t{0}, kHashBlockBytes - 1, kHashBlockBytes, text.size() - 1}) {
    for (int bit = 0; bit < 8; ++bit) {
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      EXPECT_NE(hash_of(as_bytes(text)), before) << at;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
    }
  }
  EXPECT_NE(hash_of(as_bytes(text + '\0')), before);
  EXPECT_NE(hash_of(as_bytes(text).first(text.size() - 1)), before);
  const std::string swapped = text.substr(kHashBlockBytes, kHashBlockBytes) +
                              text.substr(0, kHashBlockBytes) + text.substr(2 * kHashBlockBytes);
  EXPECT_NE(hash_of(as_bytes(swapped)), before);
}

TEST(FileHash, of_samples_sees_the_head_the_end_and_what_changed_everywhere) {
  const TestFolder folder;
  const auto hash = [&](const std::string& text) {
    return hash_of_samples(*MappedFile::open(folder.write("file", text)));
  };
  const std::string text = example(3 << 20);
  const std::string before = hash(text);
  const auto flipped = [&](size_t at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    return hash(changed);
  };
  for (const size_t at : {size_t{0}, size_t{(1 << 20) - 1}, text.size() - 4096, text.size() - 1})
    EXPECT_NE(flipped(at), before) << at;
  EXPECT_EQ(flipped((1 << 20) + 1), before) << "between the samples";
  std::string tail = text;
  for (size_t at = 1 << 20; at < tail.size(); at += 4096) tail[at] = static_cast<char>(~tail[at]);
  EXPECT_NE(hash(tail), before);
  const std::string small = text.substr(0, 1 << 20);
  EXPECT_EQ(hash(small), hash_of(as_bytes(small)));
}

TEST(FileHash, zeros_count_as_bytes) {
  BlockHasher hasher;
  hasher.add_zeros(1000);
  const uint64_t zeros = hasher.finish();
  hasher.add(as_bytes(std::string(1000, '\0')));
  EXPECT_EQ(hasher.finish(), zeros);
}

}  // namespace
}  // namespace tranship

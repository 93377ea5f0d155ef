// A file's fingerprint, made of blocks so that all cores can make it in any order: XXH3-64 of each
// block of 128 KiB (the last may be shorter), then XXH3-64 of the blocks' hashes, each as 8 bytes,
// little-endian, in the file's order. It finds accidents; it does not stop a forger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "tranship/sink.h"

namespace tranship {

inline constexpr size_t kHashBlockBytes = size_t{1} << 17;
/// The scheme's name, as artifacts record it.
inline constexpr std::string_view kHashScheme = "xxh3-64, blocks of 128 KiB";

/// The hash of one block, whose bytes come in pieces. May be used again after finish().
class BlockHasher {
 public:
  BlockHasher();
  ~BlockHasher();
  BlockHasher(const BlockHasher&) = delete;
  BlockHasher& operator=(const BlockHasher&) = delete;
  void add(Bytes bytes);
  void add_zeros(size_t count);
  /// The hash of what was added since the last finish().
  uint64_t finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A file's hash from those of its blocks: 16 hexadecimal digits.
std::string hash_of_blocks(std::span<const uint64_t> blocks);
/// The hash of bytes in memory, as if they were a file.
std::string hash_of(Bytes bytes);
/// The hash of a file, by all cores; its pages are given back as they are read.
std::string hash_of(const MappedFile& file, const Sink& sink = {});
/// The hash of samples of a file, in milliseconds for any size: the first MiB, and 64 pieces of
/// 4 KiB at equal distances, the last one at the end; all of a file of at most 1.25 MiB. A header
/// that changed is seen, and weights that were trained on; a flipped bit most often is not.
std::string hash_of_samples(const MappedFile& file);

}  // namespace tranship

// Weights on their way into a file: read, converted, written and fingerprinted in small blocks, by
// all cores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/file_hash.h"
#include "ir/tensor_source.h"
#include "tranship/sink.h"

namespace tranship {

/// A tensor and its place in a file.
struct PlacedSource {
  TensorSourcePtr source;
  uint64_t offset = 0;
};

/// Bytes and their place in a file.
struct PlacedBytes {
  uint64_t offset = 0;
  Bytes bytes;
};

/// Writes tensors into a file of a length that it has reserved. Blocks are those of the file's
/// hash: 128 KiB stay in a core's cache on their way. Each has its place, so the bytes do not
/// depend on who is faster.
class SourceWriter {
 public:
  enum class Checksums { kNone, kCrc32 };

  /// The file must outlive it. sources: in any order; they do not overlap.
  SourceWriter(AtomicFile& file, uint64_t size_bytes, std::vector<PlacedSource> sources,
               Checksums checksums);

  /// Writes all tensors. `what` is what the progress says. Errors: io; what reading a source says
  /// (a cast that overflows).
  void write(std::string_view what, const Sink& sink);
  /// CRC-32 of each tensor that was written, in the order of the constructor.
  std::vector<uint32_t> checksums() const;
  /// The file's hash, with `rest` beside the tensors (which the caller writes; in order of offset),
  /// and zeros elsewhere. Blocks that have something of `rest` are read from their sources again.
  std::string hash(std::span<const PlacedBytes> rest = {}) const;

 private:
  /// The part of a tensor that lies in a block.
  struct Piece {
    size_t source = 0;
    uint64_t start = 0;  // byte of the tensor
    uint64_t size = 0;
    uint32_t checksum = 0;
  };

  uint64_t block_size(size_t block) const;
  uint64_t offset_of(const Piece& piece) const {
    return sources_[piece.source].offset + piece.start;
  }
  void write_block(size_t block, std::vector<std::byte>& buffer, BlockHasher& hasher);
  uint64_t hash_block(size_t block, std::span<const PlacedBytes> rest) const;

  AtomicFile& file_;
  uint64_t size_bytes_;
  std::vector<PlacedSource> sources_;
  Checksums checksums_;
  std::vector<std::vector<Piece>> pieces_;  // of each block, in order
  std::vector<uint64_t> hashes_;            // of each block, with zeros beside the tensors
};

}  // namespace tranship

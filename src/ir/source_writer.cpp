#include "ir/source_writer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/crc32.h"

namespace tranship {
namespace {

/// Calls work(i) for each i below `count`, by all cores, in any order. The first error is thrown
/// when all have stopped.
template <class MakeWork>
void by_all_cores(size_t count, const MakeWork& make_work) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;  // guards `error`
  std::exception_ptr error;
  const auto run = [&] {
    try {
      auto work = make_work();
      for (size_t i = next++; i < count && !failed; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      failed = true;
    }
  };
  std::vector<std::thread> helpers;
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min(cores, count); ++i) helpers.emplace_back(run);
  run();
  for (std::thread& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

/// Bytes of a tensor: those of its file, or read into `buffer`.
Bytes bytes_of(const TensorSource& source, uint64_t start, uint64_t size,
               std::vector<std::byte>& buffer) {
  if (const std::optional<FileRange> range = source.file_range())
    return range->bytes().subspan(start, size);
  const size_t element = size_bytes(source.dtype());
  buffer.resize(size);
  source.read(static_cast<int64_t>(start / element), static_cast<int64_t>(size / element), buffer);
  return buffer;
}

void release(const TensorSource& source, uint64_t start, uint64_t size) {
  if (const std::optional<FileRange> range = source.file_range())
    range->file->release(range->offset + start, size);
}

}  // namespace

SourceWriter::SourceWriter(AtomicFile& file, uint64_t size_bytes, std::vector<PlacedSource> sources,
                           Checksums checksums)
    : file_(file),
      size_bytes_(size_bytes),
      sources_(std::move(sources)),
      checksums_(checksums),
      pieces_((size_bytes + kHashBlockBytes - 1) / kHashBlockBytes),
      hashes_(pieces_.size()) {
  std::vector<size_t> order(sources_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return sources_[i].offset; });
  for (const size_t i : order) {
    const uint64_t begin = sources_[i].offset, end = begin + sources_[i].source->size_bytes();
    for (uint64_t at = begin; at < end;) {
      const uint64_t block = at / kHashBlockBytes;
      const uint64_t size = std::min((block + 1) * kHashBlockBytes, end) - at;
      pieces_[block].push_back({.source = i, .start = at - begin, .size = size, .checksum = 0});
      at += size;
    }
  }
}

uint64_t SourceWriter::block_size(size_t block) const {
  return std::min<uint64_t>(kHashBlockBytes, size_bytes_ - block * kHashBlockBytes);
}

void SourceWriter::write_block(size_t block, std::vector<std::byte>& buffer, BlockHasher& hasher) {
  uint64_t at = block * kHashBlockBytes;
  const uint64_t end = at + block_size(block);
  for (Piece& piece : pieces_[block]) {
    const TensorSource& source = *sources_[piece.source].source;
    const Bytes bytes = bytes_of(source, piece.start, piece.size, buffer);
    hasher.add_zeros(offset_of(piece) - at);
    hasher.add(bytes);
    if (checksums_ == Checksums::kCrc32) piece.checksum = crc32(bytes);
    file_.write_at(offset_of(piece), bytes);
    release(source, piece.start, piece.size);
    at = offset_of(piece) + piece.size;
  }
  hasher.add_zeros(end - at);
  hashes_[block] = hasher.finish();
}

void SourceWriter::write(std::string_view what, const Sink& sink) {
  std::mutex mutex;  // guards the sink
  std::atomic<uint64_t> done = 0;
  by_all_cores(pieces_.size(), [&] {
    return [&, buffer = std::vector<std::byte>(),
            hasher = std::make_unique<BlockHasher>()](size_t block) mutable {
      write_block(block, buffer, *hasher);
      const uint64_t so_far = done += block_size(block);
      const std::lock_guard lock(mutex);
      sink.report(so_far, size_bytes_, what);
    };
  });
}

std::vector<uint32_t> SourceWriter::checksums() const {
  std::vector<uint32_t> sums(sources_.size());
  for (const std::vector<Piece>& pieces : pieces_) {
    for (const Piece& piece : pieces)
      sums[piece.source] = combine_crc32(sums[piece.source], piece.checksum, piece.size);
  }
  return sums;
}

/// rest: what lies in this block, among others before and after it.
uint64_t SourceWriter::hash_block(size_t block, std::span<const PlacedBytes> rest) const {
  BlockHasher hasher;
  std::vector<std::byte> buffer;
  uint64_t at = block * kHashBlockBytes;
  const uint64_t end = at + block_size(block);
  const auto add = [&](uint64_t offset, Bytes bytes) {
    hasher.add_zeros(offset - at);
    hasher.add(bytes);
    at = offset + bytes.size();
  };
  const auto add_rest_below = [&](uint64_t limit) {
    for (; !rest.empty() && rest[0].offset < limit; rest = rest.subspan(1)) {
      const auto& [offset, bytes] = rest[0];
      const uint64_t from = std::max(offset, at), to = std::min(offset + bytes.size(), limit);
      if (from < to) add(from, bytes.subspan(from - offset, to - from));
      if (offset + bytes.size() > limit) break;  // the next block's too
    }
  };
  for (const Piece& piece : pieces_[block]) {
    add_rest_below(offset_of(piece));
    add(offset_of(piece),
        bytes_of(*sources_[piece.source].source, piece.start, piece.size, buffer));
  }
  add_rest_below(end);
  hasher.add_zeros(end - at);
  return hasher.finish();
}

std::string SourceWriter::hash(std::span<const PlacedBytes> rest) const {
  std::vector<uint64_t> hashes = hashes_;
  size_t next = 0;  // block
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i].bytes.empty()) continue;
    const uint64_t end = rest[i].offset + rest[i].bytes.size();
    for (next = std::max(next, rest[i].offset / kHashBlockBytes); next * kHashBlockBytes < end;
         ++next)
      hashes[next] = hash_block(next, rest.subspan(i));
  }
  return hash_of_blocks(hashes);
}

}  // namespace tranship

#include "ir/source_writer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "base/crc32.h"

namespace tranship {
namespace {

constexpr int64_t kBlockElements =
    1 << 15;  // 128 KB of f32 stay in a core's cache on their way to the file

struct Block {
  size_t source = 0;
  int64_t first = 0;  // element
  size_t size_bytes = 0;
  uint32_t checksum = 0;
};

/// One call of write_sources: the blocks in order of their places, and who takes the next one.
class Writer {
 public:
  Writer(AtomicFile& file, std::span<const PlacedSource> sources, Checksums checksums,
         std::string_view what, const Sink& sink)
      : file_(file), sources_(sources), checksums_(checksums), what_(what), sink_(sink) {
    std::vector<size_t> order(sources.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](size_t i) { return sources[i].offset; });
    for (const size_t i : order) add_blocks(i);
  }

  void run() {
    std::vector<std::thread> helpers;
    const size_t cores = std::max(1u, std::thread::hardware_concurrency());
    for (size_t i = 1; i < std::min(cores, blocks_.size()); ++i)
      helpers.emplace_back([this] { work(); });
    work();
    for (std::thread& helper : helpers) helper.join();
    if (error_) std::rethrow_exception(error_);
  }

  std::vector<uint32_t> checksums() const {
    std::vector<uint32_t> sums(sources_.size());
    for (const Block& block : blocks_) {
      uint32_t& sum = sums[block.source];
      sum =
          block.first == 0 ? block.checksum : combine_crc32(sum, block.checksum, block.size_bytes);
    }
    return sums;
  }

 private:
  void add_blocks(size_t i) {
    const TensorSource& source = *sources_[i].source;
    total_bytes_ += source.size_bytes();
    for (int64_t first = 0; first < source.num_elements(); first += kBlockElements) {
      const int64_t count = std::min(kBlockElements, source.num_elements() - first);
      blocks_.push_back({.source = i,
                         .first = first,
                         .size_bytes = static_cast<size_t>(count) * size_bytes(source.dtype()),
                         .checksum = 0});
    }
  }

  void work() {
    try {
      std::vector<std::byte> buffer;
      for (size_t i = next_++; i < blocks_.size() && !failed_; i = next_++) {
        write(blocks_[i], buffer);
        const uint64_t done = done_bytes_ += blocks_[i].size_bytes;
        const std::lock_guard lock(mutex_);
        sink_.report(done, total_bytes_, what_);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      failed_ = true;
    }
  }

  void write(Block& block, std::vector<std::byte>& buffer) {
    const TensorSource& source = *sources_[block.source].source;
    const size_t element = size_bytes(source.dtype());
    const size_t start = static_cast<size_t>(block.first) * element;
    const uint64_t offset = sources_[block.source].offset + start;
    if (const std::optional<FileRange> range = source.file_range()) {
      put(block, offset, range->bytes().subspan(start, block.size_bytes));
      range->file->release(range->offset + start, block.size_bytes);
      return;
    }
    buffer.resize(block.size_bytes);
    source.read(block.first, static_cast<int64_t>(block.size_bytes / element), buffer);
    put(block, offset, buffer);
  }

  void put(Block& block, uint64_t offset, Bytes bytes) {
    if (checksums_ == Checksums::kCrc32) block.checksum = crc32(bytes);
    file_.write_at(offset, bytes);
  }

  AtomicFile& file_;
  std::span<const PlacedSource> sources_;
  Checksums checksums_;
  std::string_view what_;
  const Sink& sink_;
  std::vector<Block> blocks_;
  uint64_t total_bytes_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<uint64_t> done_bytes_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards error_ and the sink
  std::exception_ptr error_;
};

}  // namespace

std::vector<uint32_t> write_sources(AtomicFile& file, std::span<const PlacedSource> sources,
                                    Checksums checksums, std::string_view what, const Sink& sink) {
  Writer writer(file, sources, checksums, what, sink);
  writer.run();
  return checksums == Checksums::kCrc32 ? writer.checksums() : std::vector<uint32_t>();
}

}  // namespace tranship

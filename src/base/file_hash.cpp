#include "base/file_hash.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#define XXH_INLINE_ALL  // xxhash is in its header: nothing to link
#include <xxhash.h>

namespace tranship {
namespace {

uint64_t hash_block(Bytes file, size_t block) {
  const size_t start = block * kHashBlockBytes;
  const size_t size = std::min(kHashBlockBytes, file.size() - start);
  return XXH3_64bits(file.data() + start, size);
}

size_t num_blocks(Bytes file) { return (file.size() + kHashBlockBytes - 1) / kHashBlockBytes; }

constexpr size_t kHeadBytes = size_t{1} << 20;
constexpr size_t kSampleBytes = size_t{1} << 12;
constexpr size_t kNumSamples = 64;

}  // namespace

struct BlockHasher::State {
  XXH3_state_t xxh;
};

BlockHasher::BlockHasher() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
BlockHasher::~BlockHasher() = default;

void BlockHasher::add(Bytes bytes) { XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size()); }

void BlockHasher::add_zeros(size_t count) {
  static constexpr std::array<std::byte, 256> kZeros{};
  for (; count > 0; count -= std::min(count, kZeros.size()))
    add(Bytes(kZeros.data(), std::min(count, kZeros.size())));
}

uint64_t BlockHasher::finish() {
  const uint64_t hash = XXH3_64bits_digest(&state_->xxh);
  XXH3_64bits_reset(&state_->xxh);
  return hash;
}

std::string hash_of_blocks(std::span<const uint64_t> blocks) {
  std::vector<unsigned char> bytes;
  bytes.reserve(blocks.size() * sizeof(uint64_t));
  for (const uint64_t block : blocks) {
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<unsigned char>(block >> shift));
  }
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::string hash_of(Bytes bytes) {
  std::vector<uint64_t> blocks(num_blocks(bytes));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = hash_block(bytes, i);
  return hash_of_blocks(blocks);
}

std::string hash_of(const MappedFile& file, const Sink& sink) {
  const Bytes bytes = file.bytes();
  std::vector<uint64_t> blocks(num_blocks(bytes));
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;  // guards `error` and the sink
  std::exception_ptr error;
  const std::string what = "reading " + file.path().filename().string();
  const auto work = [&] {
    try {
      for (size_t i = next++; i < blocks.size() && !stopped; i = next++) {
        blocks[i] = hash_block(bytes, i);
        const size_t start = i * kHashBlockBytes;
        file.release(start, std::min(kHashBlockBytes, bytes.size() - start));
        const std::lock_guard lock(mutex);
        sink.report(std::min((i + 1) * kHashBlockBytes, bytes.size()), bytes.size(), what);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      stopped = true;
    }
  };
  std::vector<std::thread> helpers;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < std::min<size_t>(cores, blocks.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
  return hash_of_blocks(blocks);
}

std::string hash_of_samples(const MappedFile& file) {
  const Bytes bytes = file.bytes();
  if (bytes.size() <= kHeadBytes + kNumSamples * kSampleBytes) return hash_of(bytes);
  BlockHasher hasher;
  hasher.add(bytes.first(kHeadBytes));
  const size_t room = bytes.size() - kHeadBytes - kSampleBytes;
  for (size_t i = 1; i <= kNumSamples; ++i)
    hasher.add(bytes.subspan(
        kHeadBytes + room / kNumSamples * i + room % kNumSamples * i / kNumSamples, kSampleBytes));
  return hash_of_blocks(std::vector{hasher.finish()});
}

}  // namespace tranship

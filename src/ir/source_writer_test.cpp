#include "ir/source_writer.h"

#include <gtest/gtest.h>

#include "base/crc32.h"
#include "base/testing.h"

namespace tranship {
namespace {

/// Numbers that a block's end and start tell apart.
Tensor numbers(int64_t count) {
  Tensor tensor(DType::kF32, {count});
  for (int64_t i = 0; i < count; ++i) tensor.f32()[static_cast<size_t>(i)] = static_cast<float>(i);
  return tensor;
}

TEST(SourceWriterTest, tensors_of_many_blocks_lie_at_their_places_with_their_checksums) {
  const TestFolder folder;
  const std::vector<Tensor> tensors = {numbers(100'000), numbers(0), numbers(3), numbers(32'768)};
  const std::vector<uint64_t> offsets = {140'000, 8, 8, 600'000};  // not in order
  std::vector<PlacedSource> placed;
  for (size_t i = 0; i < tensors.size(); ++i)
    placed.push_back({memory_source("t", tensors[i]), offsets[i]});
  AtomicFile file(folder / "data");
  file.reserve(800'000);
  uint64_t last = 0;
  const Sink sink = {.warning = {},
                     .progress = [&](uint64_t done, uint64_t total, std::string_view what) {
                       EXPECT_EQ(what, "writing data");
                       EXPECT_LE(done, total);
                       last = std::max(last, done);
                     }};
  const auto sums = write_sources(file, placed, Checksums::kCrc32, "writing data", sink);
  file.commit();
  const auto written = MappedFile::open(folder / "data");
  ASSERT_EQ(sums.size(), tensors.size());
  uint64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Bytes expected = tensors[i].bytes();
    const Bytes found = written->bytes().subspan(offsets[i], expected.size());
    EXPECT_EQ(as_text(found), as_text(expected)) << i;
    EXPECT_EQ(sums[i], crc32(expected)) << i;
    total += expected.size();
  }
  EXPECT_EQ(last, total);
}

TEST(SourceWriterTest, without_checksums_there_are_none) {
  const TestFolder folder;
  AtomicFile file(folder / "data");
  file.reserve(16);
  const std::vector<PlacedSource> placed = {{memory_source("t", numbers(4)), 0}};
  EXPECT_TRUE(write_sources(file, placed, Checksums::kNone, "", {}).empty());
}

TEST(SourceWriterTest, an_error_of_a_source_is_the_calls) {
  const TestFolder folder;
  Tensor large(DType::kF32, {40'000});
  large.f32()[39'999] = 1e30F;
  AtomicFile file(folder / "data");
  file.reserve(80'000);
  const std::vector<PlacedSource> placed = {
      {cast_source(memory_source("large", large), DType::kF16), 0}};
  const Error error = error_of([&] { write_sources(file, placed, Checksums::kCrc32, "", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("large"), std::string::npos);
}

}  // namespace
}  // namespace tranship

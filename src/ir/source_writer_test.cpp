#include "ir/source_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32.h"
#include "base/testing.h"

namespace tranship {
namespace {

using Checksums = SourceWriter::Checksums;

/// Numbers that a block's end and start tell apart.
Tensor numbers(int64_t count) {
  Tensor tensor(DType::kF32, {count});
  for (int64_t i = 0; i < count; ++i) tensor.f32()[static_cast<size_t>(i)] = static_cast<float>(i);
  return tensor;
}

TEST(SourceWriter, tensors_of_many_blocks_lie_at_their_places_with_their_checksums) {
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
                       EXPECT_EQ(total, 800'000u);
                       last = std::max(last, done);
                     }};
  SourceWriter writer(file, 800'000, placed, Checksums::kCrc32);
  writer.write("writing data", sink);
  file.commit();
  const auto written = MappedFile::open(folder / "data");
  const auto sums = writer.checksums();
  ASSERT_EQ(sums.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Bytes expected = tensors[i].bytes();
    const Bytes found = written->bytes().subspan(offsets[i], expected.size());
    EXPECT_EQ(as_text(found), as_text(expected)) << i;
    EXPECT_EQ(sums[i], crc32(expected)) << i;
  }
  EXPECT_EQ(last, 800'000u);
  EXPECT_EQ(writer.hash(), hash_of(*written));
}

TEST(SourceWriter, the_hash_counts_what_others_write_beside_the_tensors) {
  const TestFolder folder;
  constexpr uint64_t kSize = 700'000;
  const std::string large(300'001, 'x');
  const std::vector<PlacedSource> placed = {{memory_source("a", numbers(50'000)), 64},
                                            {memory_source("b", numbers(5)), 200'128}};
  const std::vector<PlacedBytes> rest = {
      {0, as_bytes("first")},         {30, as_bytes("second")},
      {200'064, as_bytes("between")}, {200'200, {}},
      {210'000, as_bytes(large)},     {510'001, as_bytes("behind")},
      {kSize - 4, as_bytes("last")}};
  AtomicFile file(folder / "data");
  file.reserve(kSize);
  SourceWriter writer(file, kSize, placed, Checksums::kNone);
  writer.write("", {});
  for (const PlacedBytes& piece : rest) file.write_at(piece.offset, piece.bytes);
  file.commit();
  EXPECT_EQ(writer.hash(rest), hash_of(*MappedFile::open(folder / "data")));
  EXPECT_NE(writer.hash(rest), writer.hash());
}

TEST(SourceWriter, an_error_of_a_source_is_the_calls) {
  const TestFolder folder;
  Tensor large(DType::kF32, {400'000});
  large.f32()[399'999] = 1e30F;
  AtomicFile file(folder / "data");
  file.reserve(800'000);
  SourceWriter writer(file, 800'000, {{cast_source(memory_source("large", large), DType::kF16), 0}},
                      Checksums::kCrc32);
  const Error error = error_of([&] { writer.write("", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), testing::HasSubstr("large"));
}

}  // namespace
}  // namespace tranship

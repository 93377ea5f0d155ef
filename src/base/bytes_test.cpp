#include "base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing.h"

namespace tranship {
namespace {

using testing::HasSubstr;

constexpr std::string_view kText = "\x01\x02\x03\x04\x05\x06";

ByteReader reader() { return {"gguf", "x.gguf", as_bytes(kText)}; }

TEST(ByteReaderTest, numbers_are_little_endian_and_follow_each_other) {
  ByteReader r = reader();
  EXPECT_EQ(r.number<uint16_t>("a"), 0x0201);
  EXPECT_EQ(r.offset(), 2u);
  EXPECT_EQ(r.number<uint32_t>("b"), 0x06050403u);
  EXPECT_EQ(r.left(), 0u);
}

TEST(ByteReaderTest, unaligned_numbers_are_read) {
  ByteReader r = reader();
  r.skip(1, "a");
  EXPECT_EQ(r.number<uint32_t>("b"), 0x05040302u);
}

TEST(ByteReaderTest, take_and_seek_reach_the_end_but_not_past_it) {
  ByteReader r = reader();
  EXPECT_EQ(as_text(r.take(6, "all")), kText);
  EXPECT_TRUE(r.take(0, "nothing").empty());
  r.seek(6, "the end");
  r.seek(1, "back");
  EXPECT_EQ(as_text(r.take(2, "two")), kText.substr(1, 2));
}

TEST(ByteReaderTest, read_past_the_end_is_corrupt_with_file_offset_and_what) {
  ByteReader r = reader();
  r.skip(4, "a");
  const Error error = error_of([&] { r.number<uint32_t>("the version"); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_STREQ(error.what(),
               "[gguf] 'x.gguf': the version at byte 4 needs 4 bytes, but only 2 are left: "
               "incomplete download?");
  EXPECT_EQ(r.offset(), 4u);
}

TEST(ByteReaderTest, count_near_two_to_the_64_does_not_wrap) {
  ByteReader r = reader();
  r.skip(4, "a");
  EXPECT_EQ(error_of([&] { r.take(std::numeric_limits<size_t>::max() - 1, "text"); }).kind(),
            ErrorKind::kCorrupt);
}

TEST(ByteReaderTest, seek_past_the_end_is_corrupt) {
  ByteReader r = reader();
  const Error error = error_of([&] { r.seek(7, "the data"); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("the data would start at byte 7, but the file has 6"));
}

TEST(MultiplyTest, product_that_does_not_fit_is_refused) {
  size_t product = 0;
  EXPECT_TRUE(multiply(3, 5, &product));
  EXPECT_EQ(product, 15u);
  EXPECT_FALSE(multiply(size_t{1} << 32, size_t{1} << 32, &product));
}

}  // namespace
}  // namespace tranship

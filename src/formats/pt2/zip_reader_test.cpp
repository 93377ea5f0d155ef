#include "formats/pt2/zip_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "formats/pt2/zip_testing.h"

namespace tranship::pt2 {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;
using testing::TestArchive;
using testing::TestRecord;

constexpr size_t kLimit = 1000;

class ZipReaderTest : public ::testing::Test {
 protected:
  ZipReader open(const std::string& bytes) const {
    const auto file = MappedFile::open(folder_.write("a.zip", bytes));
    return ZipReader::open({file, 0, file->bytes().size()});
  }
  ZipReader open(const TestArchive& archive) const { return open(bytes_of(archive)); }
  Error error(const TestArchive& archive) const {
    return error_of([&] { open(archive); });
  }
  TestFolder folder_;
};

TEST_F(ZipReaderTest, records_are_read_in_every_form) {
  const TestArchive archive{
      .records = {{.name = "top/plain", .content = "hello"},
                  {.name = "top/small", .content = std::string(500, 'a'), .deflated = true},
                  {.name = "top/streamed", .content = "x", .descriptor = true},
                  {.name = "top/wide", .content = "wide", .wide = true},
                  {.name = "top/nothing", .content = ""},
                  {.name = "top/no", .content = "", .deflated = true},
                  {.name = "top/folder/", .content = ""}},
      .comment = "by hand"};
  for (const bool zip64 : {false, true}) {
    TestArchive form = archive;
    form.zip64 = zip64;
    const ZipReader zip = open(form);
    EXPECT_EQ(zip.records().size(), archive.records.size());
    for (const TestRecord& r : archive.records) {
      const ZipRecord* found = zip.find(r.name);
      ASSERT_NE(found, nullptr) << r.name;
      EXPECT_EQ(zip.text(*found, kLimit), r.content);
      EXPECT_EQ(zip.range(*found).has_value(), !r.deflated);
      if (!r.deflated) {
        EXPECT_EQ(as_text(zip.range(*found)->bytes()), r.content);
      }
    }
    EXPECT_EQ(zip.find("top/other"), nullptr);
  }
}

TEST_F(ZipReaderTest, an_archive_within_an_archive_is_read_in_place) {
  const std::string inner = bytes_of({.records = {{.name = "in/x", .content = "deep"}}});
  const ZipReader outer = open(
      {.records = {{.name = "a/first", .content = "1"}, {.name = "a/inner", .content = inner}}});
  const ZipReader zip = ZipReader::open(*outer.range(*outer.find("a/inner")));
  EXPECT_EQ(as_text(zip.range(*zip.find("in/x"))->bytes()), "deep");
}

TEST_F(ZipReaderTest, every_truncation_is_corrupt) {
  const std::string whole =
      bytes_of({.records = {{.name = "a/x", .content = "hello"},
                            {.name = "a/y", .content = "zzzz", .deflated = true}}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const Error e = error_of([&] { open(whole.substr(0, size)); });
    EXPECT_EQ(e.kind(), ErrorKind::kCorrupt) << size;
  }
}

struct BadArchive {
  std::string what;  // part of the message
  TestArchive archive;
  ErrorKind kind = ErrorKind::kCorrupt;
};

TEST_F(ZipReaderTest, what_is_wrong_with_an_archive_is_said) {
  const TestRecord good{.name = "a/x", .content = "hello"};
  const auto named = [](std::string name) {
    return TestArchive{.records = {{.name = std::move(name), .content = "x"}}};
  };
  const auto with = [&](auto&& change) {
    TestArchive archive{.records = {good}};
    change(archive);
    return archive;
  };
  const auto with_record = [&](auto&& change) {
    return with([&](TestArchive& a) { change(a.records[0]); });
  };
  const std::vector<BadArchive> cases = {
      {"is absolute", named("/etc/passwd")},
      {"is absolute", named("C:/x")},
      {"'..'", named("a/../x")},
      {"'..'", named("..")},
      {"'.'", named("a/./x")},
      {"an empty part", named("a//x")},
      {"is empty", named("")},
      {"zero byte", named(std::string("a\0b", 3))},
      {"backslash", named("a\\b")},
      {"two records have the name 'a/x'", with([&](TestArchive& a) { a.records.push_back(good); })},
      {"another name", with_record([](TestRecord& r) { r.name_in_header = "a/z"; })},
      {"has no header", with_record([](TestRecord& r) { r.offset = 3; })},
      {"a local header", with_record([](TestRecord& r) { r.offset = 1u << 30; })},
      {"past the", with_record([](TestRecord& r) { r.size = r.stored_size = 5000; })},
      {"lie over each other", with([](TestArchive& a) {
         a.records.push_back({.name = "a/y", .content = "world"});
         a.records[0].size = a.records[0].stored_size = 12;
       })},
      {"is said to hold 6 bytes in 5", with_record([](TestRecord& r) { r.size = 6; })},
      {"is said to hold 9000000 bytes", with_record([](TestRecord& r) {
         r.deflated = true;
         r.size = 9'000'000;
       })},
      {"encrypted", with_record([](TestRecord& r) { r.flags = 1; }), ErrorKind::kUnsupported},
      {"method 12", with_record([](TestRecord& r) { r.method = 12; }), ErrorKind::kUnsupported},
      {"the central directory is said", with([](TestArchive& a) { a.directory_offset = 1; })},
      {"the central directory is said", with([](TestArchive& a) { a.directory_size = 1u << 30; })},
      {"a directory entry", with([](TestArchive& a) { a.num_entries = 2; })},
      {"after its 0 entries", with([](TestArchive& a) { a.num_entries = 0; })}};
  for (const BadArchive& bad : cases) {
    const Error e = error(bad.archive);
    EXPECT_EQ(e.kind(), bad.kind) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(bad.what));
  }
}

TEST_F(ZipReaderTest, content_that_is_not_what_the_directory_says_is_corrupt) {
  const auto content = [&](TestRecord r) {
    const ZipReader zip = open(TestArchive{.records = {std::move(r)}});
    return zip.content(zip.records().begin()->second, kLimit);
  };
  const std::string text(300, 'q');
  EXPECT_THAT(error_of([&] { content({.name = "a/x", .content = text, .crc = 1}); }).what(),
              HasSubstr("CRC"));
  for (const uint64_t size : {299, 301}) {
    const TestRecord r{.name = "a/x", .content = text, .deflated = true, .size = size};
    EXPECT_THAT(error_of([&] { content(r); }).what(), HasSubstr("compressed by deflate"));
  }
  const TestRecord not_deflate{.name = "a/x", .content = "\x07 not", .size = 300, .method = 8};
  EXPECT_THAT(error_of([&] { content(not_deflate); }).what(), HasSubstr("compressed by deflate"));
  const Error large = error_of(
      [&] { content({.name = "a/x", .content = std::string(kLimit + 1, 'z'), .deflated = true}); });
  EXPECT_EQ(large.kind(), ErrorKind::kUnsupported);
}

TEST_F(ZipReaderTest, what_is_no_archive_is_corrupt) {
  for (const std::string& bytes : {std::string(), std::string("PK"), std::string(70'000, '\0'),
                                   std::string("just some text, and not so short either")}) {
    EXPECT_EQ(error_of([&] { open(bytes); }).kind(), ErrorKind::kCorrupt);
  }
}

}  // namespace
}  // namespace tranship::pt2

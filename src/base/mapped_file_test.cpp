#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sanitizer/asan_interface.h>
#include <sys/stat.h>

#include "base/testing.h"

namespace tranship {
namespace {

using testing::HasSubstr;

TEST(MappedFileTest, bytes_are_the_files) {
  const TestFolder folder;
  const auto file = MappedFile::open(folder.write("a", "hello"));
  EXPECT_EQ(as_text(file->bytes()), "hello");
  EXPECT_EQ(file->path(), folder / "a");
}

TEST(MappedFileTest, empty_file_has_no_bytes) {
  const TestFolder folder;
  EXPECT_TRUE(MappedFile::open(folder.write("a", ""))->bytes().empty());
}

TEST(MappedFileTest, links_are_followed) {
  const TestFolder folder;
  folder.write("a", "hello");
  std::filesystem::create_symlink("a", folder / "link");
  EXPECT_EQ(as_text(MappedFile::open(folder / "link")->bytes()), "hello");
}

TEST(MappedFileTest, bytes_outlive_the_files_name) {
  const TestFolder folder;
  const auto file = MappedFile::open(folder.write("a", "hello"));
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(as_text(file->bytes()), "hello");
}

TEST(MappedFileTest, bytes_in_memory_are_a_file_too) {
  const std::string text(10000, 'x');
  const auto file = MappedFile::of_memory("name", as_bytes(text));
  EXPECT_EQ(file->bytes().data(), as_bytes(text).data());
  EXPECT_EQ(file->path(), "name");
  file->release(0, text.size());
  EXPECT_EQ(text, std::string(10000, 'x'));
}

TEST(MappedFileTest, released_bytes_can_be_read_again) {
  const TestFolder folder;
  const std::string text(100000, 'x');
  const auto file = MappedFile::open(folder.write("a", text));
  file->release(0, 50000);
  file->release(1, 99999);
  file->release(99999, 1);
  EXPECT_EQ(as_text(file->bytes()), text);
}

#ifdef __SANITIZE_ADDRESS__
TEST(MappedFileTest, bytes_past_the_end_are_out_of_bounds_although_their_page_is_mapped) {
  const TestFolder folder;
  for (const size_t size : {1u, 5u, 8u, 4095u, 4097u}) {
    const auto file = MappedFile::open(folder.write("a", std::string(size, 'x')));
    const std::byte* end = file->bytes().data() + size;
    EXPECT_FALSE(__asan_address_is_poisoned(end - 1)) << size;
    EXPECT_TRUE(__asan_address_is_poisoned(end)) << size;
  }
}
#endif

TEST(MappedFileTest, absent_file_is_an_io_error_with_the_systems_reason) {
  const TestFolder folder;
  const Error error = error_of([&] { MappedFile::open(folder / "absent"); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("absent': No such file or directory"));
}

TEST(MappedFileTest, folder_is_an_invalid_argument) {
  const TestFolder folder;
  EXPECT_EQ(error_of([&] { MappedFile::open(folder.path()); }).kind(), ErrorKind::kInvalidArgument);
}

TEST(MappedFileTest, pipe_is_an_invalid_argument_and_is_not_waited_for) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { MappedFile::open(folder / "pipe"); }).kind(),
            ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace tranship

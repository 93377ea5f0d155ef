#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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

TEST(MappedFileTest, released_bytes_can_be_read_again) {
  const TestFolder folder;
  const std::string text(100000, 'x');
  const auto file = MappedFile::open(folder.write("a", text));
  file->release(0, 50000);
  file->release(1, 99999);
  file->release(99999, 1);
  EXPECT_EQ(as_text(file->bytes()), text);
}

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

#include "base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "base/testing.h"

namespace tranship {
namespace {

using testing::HasSubstr;

size_t num_files(const TestFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

/// No file of this process can grow past the limit while this lives: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t limit_bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{limit_bytes, previous_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit previous_{};
  void (*previous_handler_)(int) = nullptr;
};

TEST(AtomicFileTest, file_appears_at_commit_and_not_before) {
  const TestFolder folder;
  AtomicFile file(folder / "a");
  file.write("hello ");
  file.write("world");
  EXPECT_EQ(file.position_bytes(), 11u);
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "hello world");
  EXPECT_EQ(num_files(folder), 1u);
}

TEST(AtomicFileTest, file_that_is_not_committed_leaves_nothing_and_keeps_the_older_one) {
  const TestFolder folder;
  folder.write("a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new");
  }
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(num_files(folder), 1u);
}

TEST(AtomicFileTest, process_that_is_killed_half_way_leaves_the_older_file) {
  const TestFolder folder;
  folder.write("a", "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(folder / "a");
    file.write("new");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_text(folder / "a"), "old");
}

TEST(AtomicFileTest, commit_replaces_the_older_file_and_a_link_but_not_its_target) {
  const TestFolder folder;
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  write_text(folder / "link", "new");
  EXPECT_EQ(read_text(folder / "link"), "new");
  EXPECT_EQ(read_text(folder / "target"), "old");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "link"));
}

TEST(AtomicFileTest, padding_is_zeros_up_to_the_next_multiple) {
  const TestFolder folder;
  AtomicFile file(folder / "a");
  file.pad_to(64);
  EXPECT_EQ(file.position_bytes(), 0u);
  file.write("x");
  file.pad_to(1024);
  file.write("y");
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "x" + std::string(1023, '\0') + "y");
}

TEST(AtomicFileTest, range_of_another_file_is_appended) {
  const TestFolder folder;
  const std::string text = "0123456789" + std::string(1 << 20, 'x') + "end";
  const auto source = MappedFile::open(folder.write("source", text));
  AtomicFile file(folder / "a");
  file.write("<");
  file.write_range(*source, 5, text.size() - 5);
  file.write_range(*source, 0, 0);
  file.write(">");
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "<" + text.substr(5) + ">");
}

TEST(AtomicFileTest, threads_write_at_their_offsets_of_the_reserved_length) {
  const TestFolder folder;
  AtomicFile file(folder / "a");
  file.reserve(4096);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      file.write_at(i * 1024, as_bytes(std::string(1024, static_cast<char>('a' + i))));
    });
  }
  for (std::thread& thread : threads) thread.join();
  file.commit();
  const std::string text = read_text(folder / "a");
  ASSERT_EQ(text.size(), 4096u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(text.substr(i * 1024, 1024), std::string(1024, static_cast<char>('a' + i)));
}

TEST(AtomicFileTest, full_disk_is_an_io_error_that_leaves_nothing) {
  const TestFolder folder;
  folder.write("a", "old");
  const Error error = [&] {
    const FullDisk full(1000);
    return error_of([&] { write_text(folder / "a", std::string(2000, 'x')); });
  }();
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("a': cannot write: File too large"));
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(num_files(folder), 1u);
}

TEST(AtomicFileTest, reserving_more_than_the_disk_has_is_an_io_error_before_the_first_byte) {
  const TestFolder folder;
  const Error error = [&] {
    const FullDisk full(1000);
    return error_of([&] { AtomicFile(folder / "a").reserve(2000); });
  }();
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("cannot reserve 2000 bytes"));
  EXPECT_EQ(num_files(folder), 0u);
}

TEST(AtomicFileTest, folder_that_does_not_exist_is_an_io_error) {
  const TestFolder folder;
  const Error error = error_of([&] { AtomicFile(folder / "absent/a"); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("cannot create: No such file or directory"));
}

TEST(AtomicFileTest, name_of_a_folder_cannot_be_committed_and_leaves_nothing) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "a");
  EXPECT_EQ(error_of([&] { write_text(folder / "a", "x"); }).kind(), ErrorKind::kIo);
  EXPECT_EQ(num_files(folder), 1u);
}

TEST(ReadTextTest, file_over_the_limit_is_an_invalid_argument) {
  const TestFolder folder;
  const auto path = folder.write("a", "12345");
  EXPECT_EQ(read_text(path, 5), "12345");
  const Error error = error_of([&] { read_text(path, 4); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("has 5 bytes; at most 4"));
}

}  // namespace
}  // namespace tranship

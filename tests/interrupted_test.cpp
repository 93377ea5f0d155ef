// An export that is interrupted leaves a whole artifact or none: killed, out of disk, two at once.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/directory_lock.h"
#include "base/testing.h"
#include "exporters/verify.h"
#include "models/families.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;

/// A few MB: enough to be caught in the middle.
Checkpoint small_llama() {
  return Checkpoint::synthetic(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 4096, "hidden_size": 256,
          "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4, "tie_word_embeddings": true})");
}

ExportedModel small_export() {
  return OnnxExporter().export_model(small_llama(), {.dynamic = true});
}

/// Whether every file is there with the hash that its export recorded, as `tranship verify` says.
void expect_verified(const fs::path& directory, const std::string& when) {
  const auto files = exporters::check_files(directory);
  EXPECT_EQ(files.size(), 4U) << when;  // export.json, graph, weights, config.json
  for (const exporters::FileVerdict& file : files) {
    ASSERT_EQ(file.kind, exporters::FileVerdict::Kind::kSame)
        << file.file << " " << file.text << ", " << when;
  }
  EXPECT_NO_THROW(ExportedModel::from_pretrained(directory)) << when;
}

/// Runs `work` in a child process. -> its id.
template <class Work>
pid_t in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
      ::_exit(0);
    } catch (const Error&) {
      ::_exit(1);
    }
  }
  return child;
}

TEST(Interrupted, KilledAtAnyMomentADirectoryHoldsAWholeArtifactOrNone) {
  const TestFolder folder;
  const ExportedModel exported = small_export();
  const uint64_t seed = 20261130;
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> microseconds(0, 30000);
  int whole = 0, none = 0;
  for (int i = 0; i < 50; ++i) {
    const fs::path target = folder.path() / "target";
    const pid_t child = in_child([&] { exported.save_pretrained(target); });
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (!fs::exists(target / "export.json")) {
      ++none;
      EXPECT_THROW(ExportedModel::from_pretrained(target), Error);
      continue;
    }
    ++whole;
    expect_verified(target, "kill " + std::to_string(i) + ", seed " + std::to_string(seed));
  }
  RecordProperty("whole", whole);
  RecordProperty("none", none);
  EXPECT_GT(none, 0) << "no kill came in the middle: the test shows nothing";
  // What killed writers left is gone after the next export.
  exported.save_pretrained(folder.path() / "target");
  for (const auto& entry : fs::directory_iterator(folder.path() / "target"))
    EXPECT_THAT(entry.path().filename().string(),
                ::testing::Not(::testing::HasSubstr(".tranship-")));
  expect_verified(folder.path() / "target", "after the last");
}

/// A small disk of its own, under a path that is there. Nobody but root may have one.
class SmallDisk {
 public:
  SmallDisk(const fs::path& path, uint64_t size_bytes) : path_(path) {
    fs::create_directories(path);
    const std::string size = "size=" + std::to_string(size_bytes);
    is_there_ = ::mount("none", path.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~SmallDisk() {
    if (is_there_) ::umount(path_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_there() const { return is_there_; }
  bool make_read_only() const {
    return ::mount("none", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }
  /// Somebody else's file takes all that is left but so many bytes.
  void fill_but(uint64_t left_bytes) const {
    const uint64_t available = fs::space(path_).available;
    const std::string some(4096, 'x');
    std::ofstream file(path_ / "of_somebody_else", std::ios::binary | std::ios::app);
    for (uint64_t at = left_bytes; at < available; at += some.size()) file << some;
  }

 private:
  fs::path path_;
  bool is_there_ = false;
};

uint64_t total_bytes(const ExportedModel& exported) {
  uint64_t total = 0;
  for (const ArtifactFile& file : exported.files()) total += file.size_bytes;
  return total;
}

TEST(Interrupted, ADiskTooSmallIsSaidBeforeAByteIsWritten) {
  const TestFolder folder;
  const ExportedModel exported = small_export();
  const uint64_t total = total_bytes(exported);
  for (int i = 1; i <= 20; ++i) {
    SCOPED_TRACE(i);
    const SmallDisk disk(folder / "disk", total * static_cast<uint64_t>(i) / 20 / 4096 * 4096);
    if (!disk.is_there()) GTEST_SKIP() << "this machine lets nobody mount a tmpfs";
    const fs::path target = folder / "disk/out";
    try {
      exported.save_pretrained(target);
      expect_verified(target, "on a small disk");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
      EXPECT_FALSE(fs::exists(target));
    }
  }
}

class FullDisk : public ::testing::TestWithParam<std::string> {
 protected:
  static ExportedModel exported() {
    return GetParam() == "onnx" ? small_export()
                                : DynamoExporter().export_model(small_llama(), {.dynamic = true});
  }
};

TEST_P(FullDisk, ThatGetsFullMidwayHoldsNothingThatLoads) {
  const TestFolder folder;
  const ExportedModel exported = this->exported();
  const uint64_t total = total_bytes(exported);
  int whole = 0, failed = 0;
  for (uint64_t pages = 0; pages < 20; ++pages) {
    SCOPED_TRACE(pages);
    const SmallDisk disk(folder / "disk", total * 2);
    if (!disk.is_there()) GTEST_SKIP() << "this machine lets nobody mount a tmpfs";
    const fs::path target = folder / "disk/out";
    const uint64_t first = 1 + pages % 4 * (total / 4);  // where in the weights it happens
    bool is_full = false;
    const auto fill = [&](uint64_t done_bytes, uint64_t, std::string_view) {
      if (is_full || done_bytes < first) return;
      is_full = true;
      disk.fill_but(pages * 4096);
    };
    const Sink sink = {.warning = {}, .progress = fill};
    try {
      exported.save_pretrained(target, sink);
      ++whole;
      EXPECT_NO_THROW(ExportedModel::from_pretrained(target));
      for (const exporters::FileVerdict& file : exporters::check_files(target))
        EXPECT_EQ(file.kind, exporters::FileVerdict::Kind::kSame) << file.file << " " << file.text;
    } catch (const Error& error) {
      ++failed;
      EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
      EXPECT_THAT(error.what(), ::testing::HasSubstr("No space left")) << error.what();
      EXPECT_FALSE(fs::exists(target / "export.json"));
      EXPECT_THROW(ExportedModel::from_pretrained(target), Error);
    }
    EXPECT_TRUE(is_full);
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(Interrupted, FullDisk, ::testing::Values("onnx", "dynamo"),
                         [](const auto& format) { return format.param; });

TEST(Interrupted, TwoExportsIntoOneDirectoryDoNotMix) {
  const TestFolder folder;
  const fs::path target = folder.path() / "target";
  fs::create_directories(target);
  {
    const DirectoryLock other(target);
    const Error error = error_of([&] { small_export().save_pretrained(target); });
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("another export is writing there"));
    EXPECT_TRUE(fs::is_empty(target));
  }
  EXPECT_NO_THROW(small_export().save_pretrained(target));
  expect_verified(target, "after the other export");
}

TEST(Interrupted, AReadOnlyTargetIsAnErrorAndStaysAsItIs) {
  const TestFolder folder;
  if (::geteuid() != 0) {
    fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_THROW(small_export().save_pretrained(folder.path()), Error);
    fs::permissions(folder.path(), fs::perms::owner_all);
    EXPECT_TRUE(fs::is_empty(folder.path()));
    return;
  }
  const SmallDisk disk(folder / "disk", 1 << 26);  // root may write everywhere but there
  if (!disk.is_there()) GTEST_SKIP() << "this machine lets nobody mount a tmpfs";
  const fs::path target = folder / "disk/out";
  small_export().save_pretrained(target);
  ASSERT_TRUE(disk.make_read_only());
  for (const fs::path& directory : {target, folder / "disk/other"}) {
    const Error error = error_of([&] { small_export().save_pretrained(directory); });
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("Read-only file system"));
  }
  expect_verified(target, "after an export that could not write");
}

}  // namespace
}  // namespace tranship

// An export that is interrupted leaves a whole artifact or none: killed, out of disk, two at once.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
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

TEST(Interrupted, ADiskTooSmallIsSaidBeforeAByteIsWritten) {
  const TestFolder folder;
  const ExportedModel exported = small_export();
  uint64_t total = 0;
  for (const ArtifactFile& file : exported.files()) total += file.size_bytes;
  for (int i = 1; i <= 20; ++i) {
    const fs::path disk = folder.path() / "disk";
    fs::create_directories(disk);
    const std::string size =
        "size=" + std::to_string(total * static_cast<uint64_t>(i) / 20 / 4096 * 4096);
    if (::mount("none", disk.c_str(), "tmpfs", 0, size.c_str()) != 0)
      GTEST_SKIP() << "this machine lets nobody mount a tmpfs";
    try {
      exported.save_pretrained(disk / "out");
      expect_verified(disk / "out", size);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
      EXPECT_FALSE(fs::exists(disk / "out")) << "with " << size;
    }
    ::umount(disk.c_str());
  }
}

TEST(Interrupted, TwoExportsIntoOneDirectoryDoNotMix) {
  const TestFolder folder;
  const fs::path target = folder.path() / "target";
  fs::create_directories(target);
  {
    const DirectoryLock other(target);
    try {
      small_export().save_pretrained(target);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("another export is writing there"));
    }
    EXPECT_TRUE(fs::is_empty(target));
  }
  EXPECT_NO_THROW(small_export().save_pretrained(target));
  expect_verified(target, "after the other export");
}

TEST(Interrupted, AReadOnlyTargetIsAnErrorAndStaysAsItIs) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TestFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(small_export().save_pretrained(folder.path()), Error);
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace tranship

#include "tranship/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "checkpoint/checkpoint_data.h"
#include "checkpoint/safetensors.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

class CheckpointTest : public testing::Test {
 protected:
  /// A whole checkpoint with one tensor, in a folder below the test's.
  std::filesystem::path make_checkpoint(const std::string& name) {
    folder_.write(name + "/config.json", R"({"model_type": "llama", "hidden_size": 4})");
    write_safetensors(folder_ / (name + "/model.safetensors"), {{"w", Tensor(DType::kF32, {2})}});
    return folder_ / name;
  }
  Error error_for(const std::filesystem::path& path) {
    return error_of([&] { Checkpoint::open(path); });
  }

  TestFolder folder_;
};

TEST_F(CheckpointTest, folder_with_config_and_safetensors_opens) {
  const auto path = make_checkpoint("model");
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.data().kind, CheckpointKind::kSafetensors);
  EXPECT_EQ(checkpoint.data().path, path);
  EXPECT_EQ(checkpoint.data().tensors.size(), 1u);
  EXPECT_NE(checkpoint.data().find_tensor("w", {2}), nullptr);
  EXPECT_EQ(checkpoint.config_json(), "{\n  \"hidden_size\": 4,\n  \"model_type\": \"llama\"\n}");
  EXPECT_EQ(checkpoint.generation_config_json(), "");
}

TEST_F(CheckpointTest, generation_config_is_read_when_it_is_there) {
  const auto path = make_checkpoint("model");
  folder_.write("model/generation_config.json", R"({"eos_token_id": [1, 2]})");
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_THAT(checkpoint.data().generation_config->integers("eos_token_id"), ElementsAre(1, 2));
  EXPECT_THAT(checkpoint.generation_config_json(), HasSubstr("eos_token_id"));
}

TEST_F(CheckpointTest, companions_are_the_tokenizers_and_processors_files_that_exist) {
  const auto path = make_checkpoint("model");
  for (const char* name :
       {"merges.txt", "tokenizer.json", "chat_template.jinja", "README.md", "training_args.bin"}) {
    folder_.write(std::string("model/") + name, "x");
  }
  folder_.write("model/chat_templates/tool_use.jinja", "x");
  folder_.write("model/chat_templates/notes.txt", "x");
  std::filesystem::create_symlink("nowhere", path / "vocab.json");
  EXPECT_THAT(
      Checkpoint::open(path).data().companions,
      ElementsAre(Pair("chat_template.jinja", path / "chat_template.jinja"),
                  Pair("chat_templates/tool_use.jinja", path / "chat_templates/tool_use.jinja"),
                  Pair("merges.txt", path / "merges.txt"),
                  Pair("tokenizer.json", path / "tokenizer.json")));
}

TEST_F(CheckpointTest, sharded_folder_opens) {
  folder_.write("config.json", "{}");
  write_safetensors(folder_ / "a.safetensors", {{"a", Tensor(DType::kF32, {2})}});
  write_safetensors(folder_ / "b.safetensors", {{"b", Tensor(DType::kF32, {2})}});
  folder_.write("model.safetensors.index.json",
                R"({"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})");
  EXPECT_EQ(Checkpoint::open(folder_.path()).data().tensors.size(), 2u);
}

TEST_F(CheckpointTest, single_file_comes_before_an_index_as_in_transformers) {
  const auto path = make_checkpoint("model");
  folder_.write("model/model.safetensors.index.json",
                R"({"weight_map": {"a": "absent.safetensors"}})");
  EXPECT_EQ(Checkpoint::open(path).data().tensors.count("w"), 1u);
}

TEST_F(CheckpointTest, config_that_is_missing_is_said_to_be) {
  const auto path = make_checkpoint("model");
  std::filesystem::remove(path / "config.json");
  const Error error = error_for(path);
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("has weights but no config.json"));
}

TEST_F(CheckpointTest, config_that_is_not_json_is_corrupt_with_its_path) {
  const auto path = make_checkpoint("model");
  folder_.write("model/config.json", "{");
  const Error error = error_for(path);
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("model/config.json"));
}

// The Hub's cache.

class HubCacheTest : public CheckpointTest {
 protected:
  /// A snapshot as the Hub's library makes it: links into blobs/.
  std::filesystem::path make_snapshot(const std::string& commit) {
    const std::filesystem::path repository = folder_ / "models--org--name";
    folder_.write("models--org--name/blobs/" + commit + "-1", R"({"commit": ")" + commit + "\"}");
    write_safetensors(repository / "blobs" / (commit + "-2"), {{"w", Tensor(DType::kF32, {2})}});
    const std::filesystem::path snapshot = repository / "snapshots" / commit;
    std::filesystem::create_directories(snapshot);
    std::filesystem::create_symlink("../../blobs/" + commit + "-1", snapshot / "config.json");
    std::filesystem::create_symlink("../../blobs/" + commit + "-2", snapshot / "model.safetensors");
    return snapshot;
  }
  std::string opened_commit() {
    return Checkpoint::open(folder_ / "models--org--name").data().config.text("commit");
  }
};

TEST_F(HubCacheTest, snapshot_of_links_opens) {
  EXPECT_EQ(Checkpoint::open(make_snapshot("c0ffee")).data().tensors.size(), 1u);
}

TEST_F(HubCacheTest, repository_opens_at_the_snapshot_of_main) {
  make_snapshot("aaaa");
  make_snapshot("bbbb");
  folder_.write("models--org--name/refs/main", "bbbb");
  EXPECT_EQ(opened_commit(), "bbbb");
  folder_.write("models--org--name/refs/main", "aaaa\n");
  EXPECT_EQ(opened_commit(), "aaaa");
}

TEST_F(HubCacheTest, repository_without_main_opens_at_its_only_snapshot) {
  make_snapshot("aaaa");
  EXPECT_EQ(opened_commit(), "aaaa");
}

TEST_F(HubCacheTest, several_snapshots_that_main_does_not_choose_from_are_listed) {
  make_snapshot("aaaa");
  make_snapshot("bbbb");
  for (const char* main : {"cccc", "../snapshots/aaaa", "..", ""}) {
    folder_.write("models--org--name/refs/main", main);
    const Error error = error_for(folder_ / "models--org--name");
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("'aaaa', 'bbbb'"));
  }
}

TEST_F(HubCacheTest, repository_without_a_snapshot_is_an_io_error) {
  std::filesystem::create_directories(folder_ / "models--org--name/snapshots");
  EXPECT_THAT(error_for(folder_ / "models--org--name").what(), HasSubstr("has no snapshot"));
}

TEST_F(HubCacheTest, snapshot_whose_weights_did_not_arrive_holds_no_checkpoint) {
  const auto snapshot = make_snapshot("aaaa");
  std::filesystem::remove(folder_ / "models--org--name/blobs/aaaa-2");
  EXPECT_EQ(error_for(snapshot).kind(), ErrorKind::kIo);
}

// GGUF: gguf_test.cpp reads whole ones.

TEST_F(CheckpointTest, gguf_file_and_a_folder_with_one_are_opened_as_gguf) {
  const auto file = folder_.write("model/x.gguf", "not GGUF");
  for (const auto& path : {file, folder_ / "model"}) {
    const Error error = error_for(path);
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("x.gguf"));
  }
}

TEST_F(CheckpointTest, several_gguf_files_are_listed) {
  folder_.write("b.gguf", "x");
  folder_.write("a.gguf", "x");
  const Error error = error_for(folder_.path());
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("'a.gguf', 'b.gguf'"));
}

TEST_F(CheckpointTest, safetensors_come_before_a_gguf_beside_them) {
  const auto path = make_checkpoint("model");
  folder_.write("model/x.gguf", "not GGUF");
  EXPECT_EQ(Checkpoint::open(path).data().kind, CheckpointKind::kSafetensors);
}

// What is refused.

TEST_F(CheckpointTest, pickled_weights_are_unsupported_and_the_message_says_how_to_convert) {
  folder_.write("config.json", "{}");
  folder_.write("pytorch_model-00001-of-00002.bin", "x");
  folder_.write("consolidated.00.pth", "x");
  const Error error = error_for(folder_.path());
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("'consolidated.00.pth', 'pytorch_model-00001-of-00002.bin'"));
  EXPECT_THAT(error.what(), HasSubstr("save_pretrained"));
  EXPECT_EQ(error_for(folder_ / "consolidated.00.pth").kind(), ErrorKind::kUnsupported);
}

TEST_F(CheckpointTest, path_that_does_not_exist_is_an_io_error) {
  const Error error = error_for(folder_ / "absent");
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("absent' does not exist"));
  EXPECT_THAT(error.what(), Not(HasSubstr("Hub")));
  EXPECT_THAT(error_for("./absent").what(), Not(HasSubstr("Hub")));
}

TEST_F(CheckpointTest, hub_id_is_answered_with_how_to_get_a_folder) {
  const Error error = error_for("some-org/some-model");
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("downloading is not built in"));
  EXPECT_THAT(error.what(), HasSubstr("models--some-org--some-model"));
}

TEST_F(CheckpointTest, empty_folder_holds_no_checkpoint) {
  const Error error = error_for(folder_.path());
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("expected config.json with model.safetensors"));
}

TEST_F(CheckpointTest, safetensors_under_another_name_are_mentioned) {
  write_safetensors(folder_ / "consolidated.safetensors", {});
  EXPECT_THAT(error_for(folder_.path()).what(), HasSubstr("it has 'consolidated.safetensors'"));
}

TEST_F(CheckpointTest, other_file_is_an_invalid_argument) {
  const auto path = make_checkpoint("model");
  const Error error = error_for(path / "model.safetensors");
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("the directory that holds"));
}

// Without files.

TEST(SyntheticCheckpointTest, every_tensor_exists_with_hash_weights) {
  const Checkpoint checkpoint = Checkpoint::synthetic(R"({"model_type": "llama"})");
  EXPECT_EQ(checkpoint.data().kind, CheckpointKind::kSynthetic);
  EXPECT_THAT(checkpoint.data().tensors, IsEmpty());
  const auto source = checkpoint.data().find_tensor("model.norm.weight", {5});
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->dtype(), DType::kF32);
  EXPECT_THAT(source->shape(), ElementsAre(5));
  const Tensor again = read_all(*hash_source("model.norm.weight", DType::kF32, {5}));
  EXPECT_TRUE(std::ranges::equal(read_all(*source).bytes(), again.bytes()));
  EXPECT_THAT(checkpoint.config_json(), HasSubstr("llama"));
}

TEST(SyntheticCheckpointTest, dtype_is_the_configs_under_either_name) {
  const auto dtype_of = [](const char* config) {
    return Checkpoint::synthetic(config).data().find_tensor("w", {2})->dtype();
  };
  EXPECT_EQ(dtype_of(R"({"dtype": "bfloat16", "torch_dtype": "float16"})"), DType::kBF16);
  EXPECT_EQ(dtype_of(R"({"torch_dtype": "float16"})"), DType::kF16);
  EXPECT_EQ(dtype_of(R"({"dtype": null})"), DType::kF32);
  EXPECT_EQ(error_of([&] { dtype_of(R"({"dtype": "float3"})"); }).kind(), ErrorKind::kUnsupported);
}

TEST(SyntheticCheckpointTest, config_that_is_not_an_object_is_corrupt) {
  EXPECT_EQ(error_of([] { Checkpoint::synthetic("[]"); }).kind(), ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace tranship

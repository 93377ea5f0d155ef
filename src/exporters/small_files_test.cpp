#include "exporters/small_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"

namespace tranship::exporters {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

/// A checkpoint's folder, as far as the small files go.
struct Home {
  Home() {
    folder.write("config.json", R"({"model_type": "llama"})");
    folder.write("tokenizer.json", "{}");
    data.path = folder.path();
    data.companions = companions_in(folder.path());
    data.generation_config =
        Config::parse("generation_config.json", R"({"top_k": 5, "eos_token_id": [1, 2]})");
  }
  SmallFiles files(bool with_generation_config = true) const {
    return small_files_of(data, "{}\n", with_generation_config);
  }
  TestFolder folder;
  CheckpointData data;
};

TEST(SmallFiles, the_exported_config_names_class_and_dtype) {
  const Config config =
      Config::parse("config.json",
                    R"({"torch_dtype": "bfloat16", "model_type": "llama", "rms_norm_eps": 1e-05})");
  EXPECT_EQ(exported_config(config, "LlamaModel", DType::kF32), R"({
  "architectures": [
    "LlamaModel"
  ],
  "dtype": "float32",
  "model_type": "llama",
  "rms_norm_eps": 1e-05
}
)");
  EXPECT_EQ(exported_config(Config::parse("config.json", "{}"), "X", DType::kF32),
            "{\n  \"architectures\": [\n    \"X\"\n  ]\n}\n");
}

TEST(SmallFiles, are_written_with_the_sizes_that_were_listed) {
  const Home home;
  const TestFolder to;
  write(home.files(), to.path());
  std::vector<std::string> names;
  for (const ArtifactFile& file : list(home.files())) {
    names.push_back(file.name);
    EXPECT_EQ(fs::file_size(to / file.name), file.size_bytes) << file.name;
  }
  EXPECT_THAT(names,
              testing::ElementsAre("config.json", "generation_config.json", "tokenizer.json"));
  EXPECT_EQ(read_text(to / "generation_config.json"),
            "{\n  \"eos_token_id\": [\n    1,\n    2\n  ],\n  \"top_k\": 5\n}\n");
}

TEST(SmallFiles, the_generation_config_goes_along_only_if_asked) {
  const Home home;
  const TestFolder to;
  write(home.files(false), to.path());
  EXPECT_FALSE(fs::exists(to / "generation_config.json"));
}

TEST(SmallFiles, made_ones_are_written) {
  Home home;
  home.data.companions.clear();
  home.data.made_companions = {{"tokenizer.json", "{\"made\": 1}"}};
  const TestFolder to;
  write(home.files(), to.path());
  EXPECT_EQ(read_text(to / "tokenizer.json"), "{\"made\": 1}");
}

TEST(SmallFiles, what_is_in_the_checkpoints_own_folder_stays) {
  const Home home;
  write(home.files(), home.folder.path());
  EXPECT_EQ(read_text(home.folder / "config.json"), R"({"model_type": "llama"})");
  EXPECT_EQ(read_text(home.folder / "tokenizer.json"), "{}");
  EXPECT_TRUE(fs::exists(home.folder / "generation_config.json"));  // was not there
}

TEST(SmallFiles, the_checkpoints_folder_is_known_under_another_name) {
  const Home home;
  const TestFolder elsewhere;
  fs::create_directory_symlink(home.folder.path(), elsewhere / "link");
  write(home.files(), elsewhere / "link");
  EXPECT_EQ(read_text(home.folder / "config.json"), R"({"model_type": "llama"})");
}

TEST(SmallFiles, a_link_to_the_checkpoints_file_is_not_written_through) {
  const Home home;
  const TestFolder to;
  fs::create_symlink(home.folder / "config.json", to / "config.json");
  fs::create_symlink(home.folder / "tokenizer.json", to / "tokenizer.json");
  write(home.files(), to.path());
  EXPECT_EQ(read_text(home.folder / "config.json"), R"({"model_type": "llama"})");
  EXPECT_EQ(read_text(home.folder / "tokenizer.json"), "{}");
  EXPECT_EQ(read_text(to / "config.json"), "{}\n");
}

TEST(SmallFiles, of_a_saved_artifact_are_found_again) {
  const Home home;
  const TestFolder to;
  write(home.files(), to.path());
  const SmallFiles found = small_files_in(to.path());
  EXPECT_EQ(found.config, "{}\n");
  EXPECT_THAT(found.generation_config, HasSubstr("top_k"));
  EXPECT_TRUE(found.copies.contains("tokenizer.json"));
}

TEST(SmallFiles, named_chat_templates_go_along_in_their_folder) {
  Home home;
  home.folder.write("chat_templates/tool_use.jinja", "{{ tools }}");
  home.data.companions = companions_in(home.folder.path());
  const TestFolder to;
  write(home.files(), to.path());
  EXPECT_EQ(read_text(to / "chat_templates/tool_use.jinja"), "{{ tools }}");
  EXPECT_TRUE(small_files_in(to.path()).copies.contains("chat_templates/tool_use.jinja"));
}

}  // namespace
}  // namespace tranship::exporters

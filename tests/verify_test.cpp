// Proof on demand: each planted fault is found. (That clean artifacts pass: verify_clean_test.cpp.)
#include "exporters/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "support/tiny_checkpoint.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using exporters::FileVerdict;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::tiny_checkpoint;

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-05, "tie_word_embeddings": false})";

CheckpointData with_tokenizer(const TestFolder& folder) {
  CheckpointData checkpoint = tiny_checkpoint(kLlama);
  checkpoint.companions = {
      {"tokenizer.json", folder.write("checkpoint/tokenizer.json", R"({"version": "1.0"})")}};
  return checkpoint;
}

fs::path export_to(const fs::path& directory, CheckpointData checkpoint) {
  const Checkpoint shared(std::make_shared<const CheckpointData>(std::move(checkpoint)));
  OnnxExporter().export_for_generation(shared, {.dynamic = true}).save_pretrained(directory);
  return directory;
}

std::vector<std::string> files_of_kind(const fs::path& directory, FileVerdict::Kind kind) {
  std::vector<std::string> files;
  for (const FileVerdict& verdict : exporters::check_files(directory)) {
    if (verdict.kind == kind) files.push_back(verdict.file);
  }
  return files;
}

std::vector<std::string> wrong_files(const fs::path& directory) {
  return files_of_kind(directory, FileVerdict::Kind::kWrong);
}

void change(const fs::path& file, const std::function<void(std::string&)>& edit) {
  std::string text = read_text(file);
  edit(text);
  write_text(file, text);
}

/// Replaces the first place of a text that must be there.
void replace(const fs::path& file, std::string_view before, std::string_view after) {
  change(file, [&](std::string& text) {
    const size_t at = text.find(before);
    ASSERT_NE(at, text.npos) << before;
    text.replace(at, before.size(), after);
  });
}

void flip(const fs::path& file, size_t at_per_mille, int bit = 0) {
  change(file, [&](std::string& text) {
    const size_t at = (text.size() - 1) * at_per_mille / 1000;
    text[at] = static_cast<char>(text[at] ^ (1 << bit));
  });
}

/// Exchanges two tensors of one size, found by their bytes.
void swap_tensors(const fs::path& data, const std::string& a, const std::string& b) {
  const CheckpointData checkpoint = tiny_checkpoint(kLlama);
  const std::string first(as_text(read_all(*checkpoint.tensors.at(a)).bytes()));
  const std::string second(as_text(read_all(*checkpoint.tensors.at(b)).bytes()));
  ASSERT_EQ(first.size(), second.size());
  change(data, [&](std::string& text) {
    const size_t at_first = text.find(first), at_second = text.find(second);
    ASSERT_NE(at_first, text.npos);
    ASSERT_NE(at_second, text.npos);
    text.replace(at_first, first.size(), second);
    text.replace(at_second, second.size(), first);
  });
}

// ---- files

struct FileFault {
  std::string name;
  std::string file;  // that must be named
  std::function<void(const fs::path& directory)> plant;
};

const std::vector<FileFault>& file_faults() {
  static const std::vector<FileFault> kFaults = {
      {"flipped_first_byte_of_the_weights", "prefill.onnx.data",
       [](const fs::path& d) { flip(d / "prefill.onnx.data", 0); }},
      {"flipped_middle_bit_of_the_weights", "prefill.onnx.data",
       [](const fs::path& d) { flip(d / "prefill.onnx.data", 500, 7); }},
      {"flipped_last_byte_of_the_weights", "prefill.onnx.data",
       [](const fs::path& d) { flip(d / "prefill.onnx.data", 1000); }},
      {"swapped_pair_of_tensors", "prefill.onnx.data",
       [](const fs::path& d) {
         swap_tensors(d / "prefill.onnx.data", "model.layers.0.mlp.gate_proj.weight",
                      "model.layers.1.mlp.gate_proj.weight");
       }},
      {"truncated_weights", "prefill.onnx.data",
       [](const fs::path& d) {
         change(d / "prefill.onnx.data", [](std::string& t) { t.resize(t.size() - 64); });
       }},
      {"extended_weights", "prefill.onnx.data",
       [](const fs::path& d) {
         change(d / "prefill.onnx.data", [](std::string& t) { t += '\0'; });
       }},
      {"missing_weights", "prefill.onnx.data",
       [](const fs::path& d) { fs::remove(d / "prefill.onnx.data"); }},
      {"missing_second_data_file", "decode.onnx.data",
       [](const fs::path& d) { fs::remove(d / "decode.onnx.data"); }},
      {"missing_graph", "decode.onnx", [](const fs::path& d) { fs::remove(d / "decode.onnx"); }},
      {"truncated_graph", "decode.onnx",
       [](const fs::path& d) {
         change(d / "decode.onnx", [](std::string& t) { t.resize(t.size() / 2); });
       }},
      {"flipped_bit_of_a_graph", "decode.onnx",
       [](const fs::path& d) { flip(d / "decode.onnx", 700); }},
      {"a_folder_in_place_of_a_graph", "decode.onnx",
       [](const fs::path& d) {
         fs::remove(d / "decode.onnx");
         fs::create_directory(d / "decode.onnx");
       }},
      {"the_other_graph", "decode.onnx",
       [](const fs::path& d) {
         fs::copy_file(d / "prefill.onnx", d / "decode.onnx", fs::copy_options::overwrite_existing);
       }},
      {"edited_config", "config.json",
       [](const fs::path& d) { replace(d / "config.json", "1e-05", "1e-06"); }},
      {"missing_config", "config.json", [](const fs::path& d) { fs::remove(d / "config.json"); }},
      {"edited_tokenizer", "tokenizer.json",
       [](const fs::path& d) { replace(d / "tokenizer.json", "1.0", "1.1"); }},
      {"wrong_dtype_in_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "float32", "float16"); }},
      {"wrong_size_in_export_json", "export.json",
       [](const fs::path& d) {
         replace(d / "export.json", "\"size_bytes\": ", "\"size_bytes\": 1");
       }},
      {"wrong_hash_in_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "\"hash\": \"", "\"hash\": \"x"); }},
      {"no_hashes_in_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "\"tranship\": {", "\"other\": {"); }},
      {"exchanged_components_in_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "prefill.onnx\"", "decode.onnx\""); }},
      {"broken_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "{", "["); }},
  };
  return kFaults;
}

class FileFaults : public ::testing::TestWithParam<FileFault> {};

TEST_P(FileFaults, is_found_and_named) {
  const TestFolder folder;
  const fs::path artifact = export_to(folder / "artifact", with_tokenizer(folder));
  ASSERT_THAT(wrong_files(artifact), IsEmpty());
  GetParam().plant(artifact);
  EXPECT_THAT(wrong_files(artifact), Contains(GetParam().file));
}

INSTANTIATE_TEST_SUITE_P(Verify, FileFaults, ::testing::ValuesIn(file_faults()),
                         [](const auto& fault) { return fault.param.name; });

TEST(Verify, names_all_faults_at_once) {
  const TestFolder folder;
  const fs::path artifact = export_to(folder / "artifact", with_tokenizer(folder));
  flip(artifact / "prefill.onnx", 500);
  fs::remove(artifact / "decode.onnx");
  replace(artifact / "config.json", "1e-05", "1e-06");
  EXPECT_THAT(wrong_files(artifact),
              ::testing::UnorderedElementsAre("prefill.onnx", "decode.onnx", "config.json"));
}

TEST(Verify, finds_a_flip_anywhere_in_the_small_files) {
  const TestFolder folder;
  const fs::path artifact = export_to(folder / "artifact", tiny_checkpoint(kLlama));
  for (const std::string name : {"config.json", "export.json"}) {
    const std::string text = read_text(artifact / name);
    for (size_t at = 0; at < text.size(); at += 7) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      folder.write("artifact/" + name, changed);
      EXPECT_THAT(wrong_files(artifact), Contains(name)) << at;
    }
    folder.write("artifact/" + name, text);
  }
}

TEST(Verify, a_directory_without_an_export_json_is_an_error) {
  const TestFolder folder;
  const fs::path artifact = export_to(folder / "artifact", tiny_checkpoint(kLlama));
  fs::remove(artifact / "export.json");
  const Error error = error_of([&] { exporters::check_files(artifact); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("export.json"));
}

TEST(Verify, of_an_artifact_of_transformers_says_what_cannot_be_checked) {
  const TestFolder folder;
  const fs::path artifact = folder / "artifact";
  fs::copy(fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/python_export/llama", artifact);
  EXPECT_THAT(wrong_files(artifact), IsEmpty());
  EXPECT_THAT(files_of_kind(artifact, FileVerdict::Kind::kUnknown),
              ElementsAre("export.json", "model.onnx", "model.onnx.data"));
  fs::resize_file(artifact / "model.onnx.data", 1000);
  EXPECT_THAT(wrong_files(artifact), ElementsAre("model.onnx.data"));
  fs::remove(artifact / "model.onnx");
  EXPECT_THAT(wrong_files(artifact), ElementsAre("model.onnx"));
}

// ---- weights that stay in the checkpoint

/// An artifact that points into the checkpoint beside it.
fs::path export_beside(const fs::path& directory) {
  testing::write_checkpoint(tiny_checkpoint(kLlama), directory);
  OnnxExporter()
      .export_model(Checkpoint::open(directory),
                    {.dynamic = true, .weights = WeightsPlacement::kReference})
      .save_pretrained(directory);
  return directory;
}

struct ReferredFault {
  std::string name;
  ErrorKind kind;  // of loading
  std::function<void(const fs::path& file)> plant;
};

class ReferredFaults : public ::testing::TestWithParam<ReferredFault> {};

TEST_P(ReferredFaults, is_found_and_cannot_be_loaded) {
  const TestFolder folder;
  const fs::path artifact = export_beside(folder / "beside");
  ASSERT_THAT(wrong_files(artifact), IsEmpty());
  EXPECT_THAT(files_of_kind(artifact, FileVerdict::Kind::kUnknown),
              ElementsAre("model.safetensors"));
  ASSERT_NO_THROW(ExportedModel::from_pretrained(artifact));
  GetParam().plant(artifact / "model.safetensors");
  EXPECT_THAT(wrong_files(artifact), ElementsAre("model.safetensors"));
  const Error error = error_of([&] { ExportedModel::from_pretrained(artifact); });
  EXPECT_EQ(error.kind(), GetParam().kind);
  EXPECT_THAT(error.what(), HasSubstr("'model.safetensors'"));
}

INSTANTIATE_TEST_SUITE_P(
    Verify, ReferredFaults,
    ::testing::Values(
        ReferredFault{"another_training", ErrorKind::kCorrupt,
                      [](const fs::path& file) {
                        CheckpointData other = tiny_checkpoint(kLlama);
                        const std::string name = "model.layers.0.mlp.up_proj.weight";
                        other.tensors.at(name) = hash_source("other", DType::kF32, {48, 32});
                        const uintmax_t before = fs::file_size(file);
                        testing::write_checkpoint(other, file.parent_path());
                        ASSERT_EQ(fs::file_size(file), before);
                      }},
        ReferredFault{"another_header", ErrorKind::kCorrupt,
                      [](const fs::path& file) { replace(file, "layers.0.mlp", "layers.9.mlp"); }},
        ReferredFault{
            "another_size", ErrorKind::kCorrupt,
            [](const fs::path& file) { change(file, [](std::string& text) { text += '\0'; }); }},
        ReferredFault{"missing", ErrorKind::kIo, [](const fs::path& file) { fs::remove(file); }}),
    [](const auto& fault) { return fault.param.name; });

}  // namespace
}  // namespace tranship

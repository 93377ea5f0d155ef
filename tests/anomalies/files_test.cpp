// Checkpoints and artifacts as files: what is missing, malformed, left behind or linked (README.md
// has the list).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "anomalies/support.h"
#include "base/atomic_file.h"
#include "base/json.h"
#include "formats/onnx/model_summary.h"
#include "models/families.h"

namespace tranship::anomalies {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

// ---- shards

class Shards : public ::testing::Test {
 protected:
  Shards() {
    folder_.write("config.json", kLlama);
    write_safetensors(folder_ / "model-1.safetensors", {{"a", Tensor(DType::kF32, {2})}});
    write_safetensors(folder_ / "model-2.safetensors", {{"b", Tensor(DType::kF32, {2})}});
  }
  Error error_with_index(std::string_view weight_map) const {
    folder_.write("model.safetensors.index.json",
                  fmt::format(R"({{"weight_map": {}}})", weight_map));
    return error_of([&] { Checkpoint::open(folder_.path()); });
  }
  TestFolder folder_;
};

TEST_F(Shards, that_the_index_names_and_that_are_not_there_are_listed_as_an_incomplete_download) {
  const Error error = error_with_index(
      R"({"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-3.safetensors", "d": "model-4.safetensors"})");
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'model-3.safetensors', 'model-4.safetensors'"),
                                  HasSubstr("incomplete download?")));
}

TEST_F(Shards, of_a_stale_index_are_refused_with_the_tensors_that_differ) {
  EXPECT_THAT(
      error_with_index(R"({"a": "model-1.safetensors", "old": "model-2.safetensors"})").what(),
      HasSubstr("'old in model-2.safetensors'"));
  EXPECT_THAT(
      error_with_index(R"({"a": "model-1.safetensors", "b": "model-1.safetensors"})").what(),
      HasSubstr("'b in model-1.safetensors'"));
}

// ---- malformed safetensors

struct Malformed {
  const char* name;
  const char* header;
  std::optional<uint64_t> length;  // in place of the header's own
  const char* message;
};

class MalformedSafetensors : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedSafetensors, is_refused_without_a_read_past_the_map) {
  const Malformed& m = GetParam();
  const uint64_t length = m.length.value_or(std::strlen(m.header));
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += m.header + std::string(8, '\0');  // and room for two f32
  const TestFolder folder;
  const fs::path file = folder.write("model.safetensors", bytes);
  const Error error = error_of([&] { open_safetensors(file); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(m.message), HasSubstr(file.string())));
}

INSTANTIATE_TEST_SUITE_P(
    Six, MalformedSafetensors,
    ::testing::Values(
        Malformed{"shape_that_contradicts_the_offsets",
                  R"({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})",
                  {},
                  "takes 12 bytes"},
        Malformed{"offsets_past_the_end_of_the_file",
                  R"({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})",
                  {},
                  "incomplete download?"},
        Malformed{
            "shape_product_that_wraps_to_zero",
            R"({"w": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})",
            {},
            "overflows"},
        Malformed{"header_length_near_2_to_the_64", "{}", UINT64_MAX - 3, "the header claims"},
        Malformed{"end_before_begin",
                  R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})",
                  {},
                  "before its begin"},
        Malformed{"unknown_dtype",
                  R"({"w": {"dtype": "F31", "shape": [2], "data_offsets": [0, 8]}})",
                  {},
                  "'F31'"},
        Malformed{"negative_offset",
                  R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}})",
                  {},
                  "a negative number"}),
    [](const auto& test) { return test.param.name; });

TEST(Pickles, are_never_opened_and_the_message_says_how_to_convert) {
  const TestFolder folder;
  folder.write("config.json", kLlama);
  folder.write("pytorch_model.bin", "cos\nsystem\n(S'touch pwned'\ntR.");
  const Error error = error_of([&] { Checkpoint::open(folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("pytorch_model.bin"), HasSubstr("does not unpickle"),
                                  HasSubstr("save_pretrained(TO)` writes model.safetensors")));
}

// ---- artifacts

TEST(ExternalData, is_where_the_weights_are_so_that_no_protobuf_is_over_2_gb) {
  const std::string large = with(kLlama, {{"vocab_size", "150000"}, {"hidden_size", "4096"}});
  const Checkpoint checkpoint = Checkpoint::synthetic(large);  // 4.9 GB, of which nothing is read
  const ExportedModel model = OnnxExporter().export_model(checkpoint, {.dynamic = true});
  for (const ArtifactFile& file : model.files()) {
    if (file.name == "model.onnx") {
      EXPECT_LT(file.size_bytes, 1U << 20);
    } else if (file.name == "model.onnx.data") {
      EXPECT_GT(file.size_bytes, uint64_t{4} << 30);
    }
  }
  const Error error = error_of(
      [&] { OnnxExporter().export_model(checkpoint, {.dynamic = true, .external_data = false}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("2 GB"));
}

/// The artifact of somebody else: its weights lie under a name of their own.
void write_foreign(const TestFolder& folder, const std::string& data) {
  OnnxExporter()
      .export_model(Checkpoint::synthetic(kLlama), {.dynamic = true})
      .save_pretrained(folder.path());
  const std::string ours = "model.onnx.data";
  ASSERT_EQ(data.size(), ours.size()) << "the name stands in a protobuf";
  std::string program = read_text(folder / "model.onnx");
  for (size_t at = program.find(ours); at != program.npos; at = program.find(ours, at))
    program.replace(at, ours.size(), data);
  folder.write("model.onnx", program);
  fs::rename(folder / ours, folder / data);
  Json manifest = parse_json("test", "export.json", read_text(folder / "export.json"));
  manifest.erase("tranship");
  folder.write("export.json", manifest.dump());
}

TEST(DataFiles, go_along_whatever_their_name) {
  for (const std::string data : {"model.onnx_data", "b9f1c2d4-weight"}) {
    const TestFolder from, to;
    write_foreign(from, data);
    ExportedModel::from_pretrained(from.path()).save_pretrained(to.path());
    EXPECT_EQ(read_text(to / data), read_text(from / data));
    const NamedTensors inputs = {{"input_ids", ints({5, 17, 40}, {1, 3})}};
    EXPECT_NO_THROW(ExportedModel::from_pretrained(to.path())(inputs));
  }
}

TEST(DataFiles, that_stayed_behind_are_named) {
  const TestFolder folder;
  write_foreign(folder, "model.onnx_data");
  fs::remove(folder / "model.onnx_data");
  const Error error = error_of([&] { ExportedModel::from_pretrained(folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("'model.onnx_data'"), HasSubstr("move it along with the .onnx")));
}

/// A snapshot of the Hub's cache: all files are links into a folder of blobs.
fs::path write_snapshot(const TestFolder& folder) {
  const TestFolder plain;
  write_checkpoint(plain, kLlama);
  plain.write("tokenizer.json", "{}");
  const fs::path snapshot = folder / "models--org--name/snapshots/c0ffee";
  fs::create_directories(snapshot);
  fs::create_directories(folder / "models--org--name/blobs");
  for (const auto& entry : fs::directory_iterator(plain.path())) {
    const std::string name = entry.path().filename().string();
    fs::rename(entry.path(), folder / ("models--org--name/blobs/" + name));
    fs::create_symlink("../../blobs/" + name, snapshot / name);
  }
  return snapshot;
}

TEST(Links, of_the_hub_s_cache_are_read_and_what_is_written_is_a_regular_file_with_one_name) {
  const TestFolder cache, out;
  const Checkpoint checkpoint = Checkpoint::open(write_snapshot(cache));
  OnnxExporter().export_model(checkpoint, {.dynamic = true}).save_pretrained(out.path());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(out.path())) {
    names.push_back(entry.path().filename().string());
    EXPECT_EQ(entry.symlink_status().type(), fs::file_type::regular) << names.back();
    EXPECT_EQ(entry.hard_link_count(), 1U) << names.back();
  }
  EXPECT_THAT(names, AllOf(Contains("model.onnx.data"), Contains("tokenizer.json")));
  EXPECT_THAT(onnx::read_summary(out / "model.onnx").data_files, ElementsAre("model.onnx.data"));
}

TEST(Links, are_not_what_weights_can_be_referred_to_through) {
  const TestFolder cache;
  const fs::path snapshot = write_snapshot(cache);
  const ExportedModel model = OnnxExporter().export_model(
      Checkpoint::open(snapshot), {.dynamic = true, .weights = WeightsPlacement::kReference});
  const Error error = error_of([&] { model.save_pretrained(snapshot); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("refuses links"));
}

// ---- tokenizers

class Tokenizers : public ::testing::Test {
 protected:
  ExportedModel exported(std::string_view config) {
    return OnnxExporter().export_model(write_checkpoint(folder_, config), {.dynamic = true},
                                       warnings_.sink());
  }
  static std::vector<std::string> inputs_of(const ExportedModel& model) {
    std::vector<std::string> names;
    for (const Port& port : model.program().inputs()) names.push_back(port.name);
    return names;
  }
  TestFolder folder_;
  Warnings warnings_;
};

TEST_F(Tokenizers, that_make_no_token_type_ids_get_a_graph_without_them) {
  folder_.write("tokenizer.json", "{}");
  folder_.write("tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizer"})");
  EXPECT_THAT(inputs_of(exported(kBert)), ElementsAre("input_ids", "attention_mask"));
  EXPECT_THAT(warnings_.all, IsEmpty());
}

TEST_F(Tokenizers, that_make_token_type_ids_may_leave_them_out_for_zeros) {
  folder_.write("tokenizer.json", "{}");
  folder_.write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
  const ExportedModel bert = exported(kBert);
  EXPECT_THAT(inputs_of(bert), Contains("token_type_ids"));
  NamedTensors inputs = {{"input_ids", ints({5, 17, 40}, {1, 3})}};
  const NamedTensors left_out = bert(inputs);
  inputs.emplace("token_type_ids", ints({0, 0, 0}, {1, 3}));
  const Tensor expected = bert(inputs).at("last_hidden_state");
  const Tensor& found = left_out.at("last_hidden_state");
  EXPECT_EQ(slice(found, 0, found.num_elements()), slice(expected, 0, expected.num_elements()));
}

TEST_F(Tokenizers, that_are_missing_are_a_reported_result) {
  exported(kLlama);
  EXPECT_THAT(warnings_.all, ElementsAre(HasSubstr("has no tokenizer")));
}

TEST_F(Tokenizers, are_not_missed_by_a_model_of_images) {
  exported(models::find_family("vit")->tiny_config);
  EXPECT_THAT(warnings_.all, IsEmpty());
}

TEST_F(Tokenizers, of_an_older_kind_go_along_and_are_reported) {
  for (const char* name : {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model",
                           "vocab.json", "tekken.json", "tiktoken.model"}) {
    folder_.write(name, "the vocabulary");
    warnings_.all.clear();
    const TestFolder out;
    exported(kLlama).save_pretrained(out.path());
    EXPECT_EQ(read_text(out / name), "the vocabulary");
    EXPECT_THAT(warnings_.all,
                ElementsAre(AllOf(HasSubstr("no tokenizer.json, only"), HasSubstr(name))));
    fs::remove(folder_ / name);
  }
}

}  // namespace
}  // namespace tranship::anomalies

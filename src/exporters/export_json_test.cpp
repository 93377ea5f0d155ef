#include "exporters/export_json.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"

namespace tranship::exporters {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Manifest example() {
  ExportMetadata metadata;
  metadata.architecture = "LlamaForCausalLM";
  metadata.packages = {{"tranship", "0.1.0"}};
  metadata.export_config = R"({"dynamic": true})";
  metadata.export_dtype = "float32";
  metadata.export_device = "cpu";
  metadata.kwargs = R"({"input_ids": {"rank": 2, "shape": [2, 8], "dtype": "int64"}})";
  metadata.in_spec = "[1, {}]";
  metadata.out_spec = "[1, {\"type\": null}]";
  metadata.in_constants = R"({"attention_mask": null})";
  metadata.out_constants = "[[2, null]]";
  metadata.logits_to_keep = 1;
  return {"onnx",
          {{"prefill", "prefill.onnx", metadata}, {"decode", "decode.onnx", metadata}},
          {{"prefill.onnx", 12}, {"decode.onnx", 0}}};
}

std::string message_of(std::string_view text) {
  const Error error = error_of([&] { read_manifest("export.json", text); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  return error.what();
}

/// A manifest of one component with this entry.
std::string with_component(std::string_view entry) {
  return fmt::format(
      R"({{"schema_version": 1, "export_format": "onnx", "components": {{"model": {}}}}})", entry);
}

TEST(ExportJson, reads_back_what_it_wrote) {
  const std::string text = write_manifest(example());
  const Manifest read = read_manifest("export.json", text);
  ASSERT_THAT(read.components, SizeIs(2));
  EXPECT_EQ(read.components[0].name, "prefill");
  EXPECT_EQ(read.components[1].file, "decode.onnx");
  ASSERT_THAT(read.files, SizeIs(2));
  EXPECT_EQ(read.files[0].size_bytes, 12);
  EXPECT_EQ(write_manifest(read), text);
  EXPECT_TRUE(text.ends_with("\n  }\n}\n"));
}

TEST(ExportJson, has_all_keys_of_metadata_even_if_nothing_is_known) {
  const Json json = Json::parse(write_manifest({"onnx", {{"model", "model.onnx", {}}}, {}}));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json["components"]["model"]["metadata"].items())
    keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("architecture", "packages", "export_config", "export_dtype",
                                "export_device", "kwargs", "in_spec", "out_spec", "in_constants",
                                "out_constants"));
  EXPECT_FALSE(json.contains("tranship"));
}

TEST(ExportJson, writes_again_what_transformers_wrote) {
  for (const char* name : {"llama", "bert"}) {
    const auto path = std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/python_export" /
                      name / "export.json";
    const std::string text = read_text(path);
    const Manifest manifest = read_manifest(path.string(), text);
    EXPECT_THAT(manifest.files, IsEmpty());
    EXPECT_EQ(nlohmann::json::parse(write_manifest(manifest)),
              nlohmann::json::parse(text));  // packages are in order of name
  }
}

TEST(ExportJson, cut_off_anywhere_is_corrupt) {
  const std::string text = write_manifest(example());
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    const Error error =
        error_of([&] { read_manifest("export.json", std::string_view(text).substr(0, size)); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << size;
  }
}

TEST(ExportJson, a_flip_of_any_byte_is_seen) {
  const std::string text = write_manifest(example());
  EXPECT_EQ(is_as_written("export.json", text), true);
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    try {
      const Manifest manifest = read_manifest("export.json", changed);
      const std::optional<bool> as_written = is_as_written("export.json", changed);
      // Without a hash, what remains says that it must have one.
      const bool must_have = manifest.components.at(0).metadata.packages.contains("tranship");
      EXPECT_TRUE(as_written ? !*as_written : must_have) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << at;
    }
  }
}

TEST(ExportJson, wrong_types_are_corrupt_with_their_path) {
  EXPECT_THAT(message_of("[]"), HasSubstr("the file is a JSON array, expected an object"));
  EXPECT_THAT(message_of(R"({"export_format": 3})"),
              HasSubstr("export_format is a JSON number, expected a string"));
  EXPECT_THAT(message_of(R"({"components": {}})"), HasSubstr("export_format is missing"));
  EXPECT_THAT(message_of(R"({"export_format": "onnx"})"), HasSubstr("components is missing"));
  EXPECT_THAT(message_of(R"({"export_format": "onnx", "components": []})"),
              HasSubstr("components is a JSON array"));
  EXPECT_THAT(message_of(R"({"export_format": "onnx", "components": {}})"),
              HasSubstr("0 components"));
  EXPECT_THAT(message_of(R"({"schema_version": -1, "export_format": "onnx", "components": {}})"),
              HasSubstr("schema_version is a JSON number, expected a number from 0"));
  EXPECT_THAT(message_of(with_component("3")), HasSubstr("components.model is a JSON number"));
  EXPECT_THAT(message_of(with_component("{}")), HasSubstr("components.model.file is missing"));
  const auto of_metadata = [](std::string_view metadata) {
    return message_of(
        with_component(fmt::format(R"({{"file": "a.onnx", "metadata": {}}})", metadata)));
  };
  EXPECT_THAT(of_metadata("[]"), HasSubstr("components.model.metadata is a JSON array"));
  EXPECT_THAT(of_metadata(R"({"in_spec": 1})"),
              HasSubstr("components.model.metadata.in_spec is a JSON number"));
  EXPECT_THAT(of_metadata(R"({"packages": {"torch": 2}})"),
              HasSubstr("metadata.packages.torch is a JSON number"));
  EXPECT_THAT(of_metadata(R"({"kwargs": []})"), HasSubstr("metadata.kwargs is a JSON array"));
  EXPECT_THAT(of_metadata(R"({"out_constants": {}})"),
              HasSubstr("metadata.out_constants is a JSON object, expected a list"));
}

TEST(ExportJson, file_names_that_lead_elsewhere_are_corrupt) {
  for (const char* name : {"", ".", "..", "...", "/etc/passwd", "../model.onnx", "a/model.onnx",
                           "a\\\\model.onnx", "C:model.onnx", "a\\u0000b"}) {
    EXPECT_THAT(message_of(with_component(fmt::format(R"({{"file": "{}"}})", name))),
                HasSubstr("components.model.file is"))
        << name;
  }
  EXPECT_THAT(message_of(with_component(fmt::format(R"({{"file": "{}"}})", std::string(256, 'a')))),
              HasSubstr("plain name"));
  EXPECT_THAT(message_of(R"({"export_format": "onnx", "components": {"m": {"file": "m.onnx"}},
                             "tranship": {"files": {"../x": {"size_bytes": 1}}}})"),
              HasSubstr("tranship.files.../x is"));
}

TEST(ExportJson, small_files_may_lie_in_the_folder_of_chat_templates_and_in_no_other) {
  const auto with_small_file = [](const std::string& name) {
    Manifest manifest = example();
    manifest.small_files = {{name, 3}};
    return write_manifest(manifest);
  };
  const std::string text = with_small_file("chat_templates/tool_use.jinja");
  EXPECT_EQ(read_manifest("export.json", text).small_files.at(0).name,
            "chat_templates/tool_use.jinja");
  for (const char* name : {"chat_templates/../x", "chat_templates/", "chat_templates/..", "a/b"})
    EXPECT_THAT(message_of(with_small_file(name)), HasSubstr("expected the plain name")) << name;
}

TEST(ExportJson, too_many_components_are_corrupt) {
  Json json = {{"export_format", "onnx"}, {"components", Json::object()}};
  for (int i = 0; i < 65; ++i) json["components"][std::to_string(i)] = {{"file", "m.onnx"}};
  EXPECT_THAT(message_of(json.dump()), HasSubstr("65 components"));
}

TEST(ExportJson, passes_over_what_it_does_not_know) {
  const Manifest read = read_manifest(
      "export.json", R"({"export_format": "onnx", "new": [1], "components": {"m": {"file": "m.onnx",
    "new": 1, "metadata": {"architecture": null, "new": {}}}}, "tranship": {"new": 1}})");
  EXPECT_EQ(read.components[0].file, "m.onnx");
  EXPECT_EQ(read.components[0].metadata.architecture, "");
}

TEST(ExportJson, a_newer_schema_is_a_warning) {
  std::vector<std::string> warnings;
  const Sink sink = {.warning = [&](std::string_view text) { warnings.emplace_back(text); },
                     .progress = {}};
  read_manifest(
      "export.json",
      R"({"schema_version": 1, "export_format": "x", "components": {"m": {"file": "m"}}})", sink);
  EXPECT_THAT(warnings, IsEmpty());
  read_manifest(
      "export.json",
      R"({"schema_version": 2, "export_format": "x", "components": {"m": {"file": "m"}}})", sink);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("schema_version 2")));
}

}  // namespace
}  // namespace tranship::exporters

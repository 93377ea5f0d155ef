// Against Transformers 5.23: tests/golden/tokenizer, made by tools/make_tokenizer_goldens.py.
#include "tranship/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint_data.h"
#include "text/testing.h"

namespace tranship::text {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int64_t>;

Ids flat(const Json& rows) {
  Ids out;
  for (const Json& row : rows) {
    for (const Json& id : row) out.push_back(id.get<int64_t>());
  }
  return out;
}

class TokenizerGolden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto folder = folder_of(GetParam());
    if (!folder) GTEST_SKIP() << "TRANSHIP_MINILM does not say where all-MiniLM-L6-v2 is";
    tokenizer = Tokenizer::open(*folder);
    expected = golden(GetParam());
  }
  std::optional<Tokenizer> tokenizer;
  Json expected;
};

TEST_P(TokenizerGolden, ids_are_those_of_transformers) {
  ASSERT_GE(expected["texts"].size(), 40u);
  for (const Json& c : expected["texts"]) {
    const std::string text = c["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text), c["ids"].get<Ids>()) << c["text"];
    EXPECT_EQ(tokenizer->encode(text, false), c["plain_ids"].get<Ids>()) << c["text"];
  }
}

TEST_P(TokenizerGolden, decoded_text_is_that_of_transformers) {
  for (const Json& c : expected["texts"]) {
    EXPECT_EQ(tokenizer->decode(c["ids"].get<Ids>()), c["decoded"]) << c["text"];
    EXPECT_EQ(tokenizer->decode(c["ids"].get<Ids>(), false), c["decoded_whole"]) << c["text"];
  }
  for (const Json& c : expected["decodes"]) {
    EXPECT_EQ(tokenizer->decode(c["ids"].get<Ids>(), c["skip_special_tokens"].get<bool>()),
              c["text"])
        << c["ids"];
  }
}

TEST_P(TokenizerGolden, batches_are_those_of_transformers) {
  ASSERT_GE(expected["batches"].size(), 6u);
  for (const Json& c : expected["batches"]) {
    BatchOptions options;
    if (c["padding_side"] == "left") options.padding_side = Side::kLeft;
    if (c["padding_side"] == "right") options.padding_side = Side::kRight;
    if (!c["max_length"].is_null()) options.max_length_tokens = c["max_length"].get<int64_t>();
    const Encoding batch =
        tokenizer->encode_batch(c["texts"].get<std::vector<std::string>>(), options);
    EXPECT_EQ(batch.num_rows, c["ids"].size());
    EXPECT_EQ(batch.num_columns, c["ids"][0].size());
    EXPECT_EQ(batch.ids, flat(c["ids"])) << c;
    EXPECT_EQ(batch.type_ids, flat(c["type_ids"])) << c;
    EXPECT_EQ(batch.attention_mask, flat(c["attention_mask"])) << c;
  }
}

TEST_P(TokenizerGolden, settings_are_those_of_transformers) {
  for (const auto& [key, pair] : expected["special"].items()) {
    EXPECT_EQ(tokenizer->special_token(key), pair[0].get<std::string>()) << key;
    EXPECT_EQ(tokenizer->special_token_id(key), pair[1].get<int64_t>()) << key;
  }
  for (const char* key :
       {"bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "image_token"}) {
    EXPECT_EQ(tokenizer->special_token(key).has_value(), expected["special"].contains(key)) << key;
  }
  EXPECT_EQ(tokenizer->vocab_size(), expected["vocab_size"]);
  EXPECT_EQ(Json(tokenizer->model_input_names()), expected["model_input_names"]);
  EXPECT_EQ(tokenizer->padding_side() == Side::kLeft, expected["padding_side"] == "left");
}

INSTANTIATE_TEST_SUITE_P(all, TokenizerGolden,
                         testing::Values("bytelevel", "metaspace", "wordpiece", "unigram",
                                         "minilm"),
                         [](const auto& test) { return test.param; });

Tokenizer small(const std::string& config = "") {
  return Tokenizer::from_json(case_text("tokenizer/bytelevel/tokenizer.json"), config);
}

TEST(Tokenizer, ids_and_tokens_name_each_other) {
  const Tokenizer tokenizer = small();
  EXPECT_EQ(tokenizer.token_to_id("<|im_end|>"), 2);
  EXPECT_EQ(tokenizer.id_to_token(2), "<|im_end|>");
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(1 << 30), std::nullopt);
}

TEST(Tokenizer, ids_that_cannot_be_are_refused) {
  const Tokenizer tokenizer = small();
  for (const int64_t id : {int64_t{-1}, int64_t{1} << 32}) {
    const Error error = error_of([&] { tokenizer.decode(Ids{id}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(id)));
  }
}

TEST(Tokenizer, text_that_is_not_utf8_is_refused_with_its_place) {
  const Error error = error_of([] { small().encode("abc\xFF"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("at byte 3"));
}

TEST(Tokenizer, a_batch_without_a_pad_token_needs_one_only_for_unequal_rows) {
  Json file = parse_json("test", "tokenizer.json", case_text("tokenizer/bytelevel/tokenizer.json"));
  file["padding"] = nullptr;
  const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "");
  const std::vector<std::string> equal{"a", "b"}, unequal{"a", "b c"};
  EXPECT_EQ(tokenizer.encode_batch(equal).num_columns, 2);
  const Error error = error_of([&] { tokenizer.encode_batch(unequal); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("pad_id"));
  EXPECT_EQ(tokenizer.encode_batch(unequal, {.padding_side = Side::kLeft, .pad_id = 7}).ids[0], 7);
}

TEST(Tokenizer, a_batch_of_nothing_is_empty) {
  const Encoding batch = small().encode_batch({});
  EXPECT_EQ(batch.num_rows, 0);
  EXPECT_TRUE(batch.ids.empty());
}

TEST(Tokenizer, a_length_that_does_not_hold_the_special_tokens_is_refused) {
  const Error error = error_of([] {
    const std::vector<std::string> texts{"a b"};
    small().encode_batch(texts, {.max_length_tokens = 0});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("does not hold"));
}

TEST(Tokenizer, special_tokens_are_text_where_the_config_says_so) {
  EXPECT_EQ(small().encode("<|im_end|>", false), Ids{2});
  EXPECT_GT(small("{\"split_special_tokens\": true}").encode("<|im_end|>", false).size(), 1u);
}

TEST(Tokenizer, a_missing_file_is_named_with_what_to_do) {
  const TestFolder folder;
  const Error nothing = error_of([&] { Tokenizer::open(folder.path()); });
  EXPECT_EQ(nothing.kind(), ErrorKind::kIo);
  EXPECT_THAT(nothing.what(), HasSubstr("'tokenizer.json', 'tokenizer_config.json'"));
  folder.write("vocab.txt", "[PAD]\n");
  const Error older = error_of([&] { Tokenizer::open(folder.path()); });
  EXPECT_EQ(older.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(older.what(), HasSubstr("only 'vocab.txt'"));
  EXPECT_THAT(older.what(), HasSubstr("save_pretrained"));
}

TEST(Tokenizer, a_checkpoint_gives_its_own) {
  const std::filesystem::path folder = *folder_of("wordpiece");
  auto data = std::make_shared<CheckpointData>();
  data->config = Config::parse("config.json", "{\"model_type\": \"bert\"}");
  data->companions = companions_in(folder);
  const Tokenizer of_files = Tokenizer::of(Checkpoint(data));
  EXPECT_EQ(of_files.encode("hello"), Tokenizer::open(folder).encode("hello"));
  EXPECT_THAT(of_files.model_input_names(), testing::Contains("token_type_ids"));
  data->companions.clear();
  data->made_companions = {{"tokenizer.json", case_text("tokenizer/bytelevel/tokenizer.json")},
                           {"tokenizer_config.json", "{\"bos_token\": \"<|im_start|>\"}"}};
  EXPECT_EQ(Tokenizer::of(Checkpoint(data)).special_token_id("bos_token"), 1);
  data->made_companions.clear();
  EXPECT_EQ(error_of([&] { Tokenizer::of(Checkpoint(data)); }).kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace tranship::text

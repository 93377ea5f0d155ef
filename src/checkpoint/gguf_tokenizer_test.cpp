// What the ids are is tested against Transformers: tests/interop/test_gguf.py.
#include "checkpoint/gguf_tokenizer.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/json.h"
#include "checkpoint/gguf_testing.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GgufTokenizerTest : public GgufTest {
 protected:
  Json json_of(const GgufBuilder& builder) const {
    return parse_json("test", "tokenizer.json", gguf_tokenizer_json(open(builder)));
  }
  Json config_of(const GgufBuilder& builder) const {
    return parse_json("test", "tokenizer_config.json", gguf_tokenizer_config_json(open(builder)));
  }
  void expect_error(ErrorKind kind, const GgufBuilder& builder, const std::string& message) const {
    const Error error = error_of([&] { gguf_tokenizer_json(open(builder)); });
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
};

GgufBuilder byte_level(const std::string& pre = "gpt-2") {
  GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", pre);
  builder.texts("tokenizer.ggml.tokens", {"<s>", "a", "b", "ab", "<think>", "\"\\\n", "\xC4\xA0"});
  builder.i32s("tokenizer.ggml.token_type", {3, 1, 1, 1, 4, 1, 1})
      .texts("tokenizer.ggml.merges", {"a b"});
  return builder;
}

GgufBuilder scored(const std::vector<std::string>& tokens, const std::vector<float>& scores) {
  GgufBuilder builder;
  builder.text("general.architecture", "llama").text("tokenizer.ggml.model", "llama");
  builder.texts("tokenizer.ggml.tokens", tokens).f32s("tokenizer.ggml.scores", scores);
  return builder;
}

TEST_F(GgufTokenizerTest, byte_level_vocabulary_merges_and_added_tokens_are_written) {
  const Json json = json_of(byte_level());
  EXPECT_EQ(json["model"]["vocab"].size(), 7u);
  EXPECT_EQ(json["model"]["vocab"]["ab"], 3);
  EXPECT_EQ(json["model"]["vocab"]["\"\\\n"], 5);
  EXPECT_EQ(json["model"]["vocab"]["\xC4\xA0"], 6);
  EXPECT_EQ(json["model"]["merges"], Json::array({Json::array({"a", "b"})}));
  EXPECT_EQ(json["model"]["byte_fallback"], false);
  ASSERT_EQ(json["added_tokens"].size(), 2u);
  EXPECT_EQ(json["added_tokens"][0]["content"], "<s>");
  EXPECT_EQ(json["added_tokens"][0]["special"], true);
  EXPECT_EQ(json["added_tokens"][1]["content"], "<think>");
  EXPECT_EQ(json["added_tokens"][1]["id"], 4);
  EXPECT_EQ(json["added_tokens"][1]["special"], false);
}

TEST_F(GgufTokenizerTest, each_pre_has_its_split) {
  EXPECT_EQ(json_of(byte_level())["pre_tokenizer"]["use_regex"], true);
  EXPECT_EQ(json_of(byte_level("smollm"))["pre_tokenizer"]["pretokenizers"][0]["type"], "Digits");
  EXPECT_EQ(json_of(byte_level("qwen2"))["normalizer"]["type"], "NFC");
  EXPECT_EQ(json_of(byte_level("llama-bpe"))["model"]["ignore_merges"], true);
  const Json split =
      json_of(byte_level("llama-bpe"))["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
  EXPECT_THAT(split.get<std::string>(), HasSubstr(R"(|\p{N}{1,3}|)"));
}

TEST_F(GgufTokenizerTest, unknown_pre_and_model_are_refused_by_name) {
  expect_error(ErrorKind::kUnsupported, byte_level("superbpe"), "'superbpe'");
  expect_error(ErrorKind::kUnsupported, GgufBuilder().text("tokenizer.ggml.model", "rwkv"),
               "'rwkv'");
}

TEST_F(GgufTokenizerTest, template_adds_what_the_flags_say) {
  const auto single = [&](const GgufBuilder& builder) {
    std::vector<std::string> parts;
    const Json json = json_of(builder);
    for (const Json& part : json["post_processor"]["single"])
      parts.push_back(part.begin()->at("id"));
    return parts;
  };
  const auto with_ids = [](const std::string& pre) {
    return byte_level(pre)
        .u32("tokenizer.ggml.bos_token_id", 0)
        .u32("tokenizer.ggml.eos_token_id", 4);
  };
  EXPECT_THAT(single(with_ids("gpt-2")), ElementsAre("A"));
  EXPECT_THAT(single(with_ids("llama-bpe")), ElementsAre("<s>", "A"));
  EXPECT_THAT(single(with_ids("llama-bpe").boolean("tokenizer.ggml.add_bos_token", false)),
              ElementsAre("A"));
  EXPECT_THAT(single(with_ids("gpt-2").boolean("tokenizer.ggml.add_eos_token", true)),
              ElementsAre("A", "<think>"));
  EXPECT_THAT(single(byte_level().boolean("tokenizer.ggml.add_bos_token", true)),
              ElementsAre("A"));  // which one?
  EXPECT_THAT(single(scored({"<s>", "a"}, {0, 0}).u32("tokenizer.ggml.bos_token_id", 0)),
              ElementsAre("<s>", "A"));
}

TEST_F(GgufTokenizerTest, merges_follow_from_scores) {
  // Best score first; of equal ones the longer left part, then the longer right part.
  const Json json = json_of(scored({"a", "b", "ab", "bb", "abb", "\xE2\x96\x81",
                                    "\xE2\x96\x81"
                                    "a"},
                                   {-9, -9, -2, -1, -3, -9, -2}));
  EXPECT_EQ(
      json["model"]["merges"],
      Json::parse(
          "[[\"b\",\"b\"],[\"a\",\"b\"],[\"\xE2\x96\x81\",\"a\"],[\"ab\",\"b\"],[\"a\",\"bb\"]]"));
  EXPECT_EQ(json["model"]["byte_fallback"], true);
  EXPECT_EQ(json["pre_tokenizer"]["prepend_scheme"], "first");
}

TEST_F(GgufTokenizerTest, of_equal_tokens_the_last_has_the_id) {
  const Json json = json_of(scored({"a", "b", "a"}, {0, 0, 0}));
  EXPECT_EQ(json["model"]["vocab"], Json::parse(R"({"b":1,"a":2})"));
}

TEST_F(GgufTokenizerTest, broken_lists_are_corrupt) {
  expect_error(ErrorKind::kCorrupt, byte_level().u32("tokenizer.ggml.bos_token_id", 7),
               "bos_token_id' is 7");
  expect_error(ErrorKind::kCorrupt, scored({"a", "b"}, {0}), "has 1 elements for 2 tokens");
  expect_error(ErrorKind::kCorrupt, scored({"a"}, {0}).i32s("tokenizer.ggml.token_type", {1, 1}),
               "has 2 elements for 1 tokens");
  expect_error(ErrorKind::kCorrupt, scored({}, {}), "has no tokens");
  expect_error(ErrorKind::kCorrupt, scored({"a"}, {std::nanf("")}), "score of token 0");
  expect_error(ErrorKind::kCorrupt, scored({std::string(1025, 'a')}, {0}),
               "token 0 has 1025 bytes");
  for (const char* merge : {"b a", "a", "", "a c", " ab"}) {
    expect_error(ErrorKind::kCorrupt,
                 scored({"a", "b", "ab"}, {0, 0, 0}).texts("tokenizer.ggml.merges", {merge}),
                 "merge 0");
  }
}

TEST_F(GgufTokenizerTest, invalid_utf8_is_corrupt) {
  for (const char* text : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xe0\x80\x80", "a\x80", "\xf0\x9f\x98"}) {
    expect_error(ErrorKind::kCorrupt, scored({text}, {0}), "UTF-8");
  }
  for (const char* text :
       {"\xc3\xa9", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\xe0\xa0\x80", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(json_of(scored({text}, {0}))["model"]["vocab"][text], 0);
  }
}

TEST_F(GgufTokenizerTest, a_chat_template_that_is_not_utf8_is_corrupt) {
  const Error error =
      error_of([&] { config_of(byte_level().text("tokenizer.chat_template", "{{ a\x89 }}")); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(),
              HasSubstr("metadata 'tokenizer.chat_template' is not UTF-8: byte 0x89 at 4"));
}

TEST_F(GgufTokenizerTest, configuration_names_special_tokens_and_the_chat_template) {
  const Json config = config_of(byte_level()
                                    .u32("tokenizer.ggml.bos_token_id", 0)
                                    .u32("tokenizer.ggml.padding_token_id", 4)
                                    .text("tokenizer.chat_template", "{{ messages }}")
                                    .u32("llama.context_length", 64));
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_EQ(config["pad_token"], "<think>");
  EXPECT_FALSE(config.contains("eos_token"));
  EXPECT_EQ(config["chat_template"], "{{ messages }}");
  EXPECT_EQ(config["add_bos_token"], false);
  EXPECT_EQ(config["padding_side"], "left");
  EXPECT_EQ(config["model_input_names"], Json::array({"input_ids", "attention_mask"}));
  EXPECT_EQ(config["model_max_length"], 64);
}

TEST(GgufTokenizerFixture, has_every_byte) {
  const GgufFile gguf = GgufFile::open(gguf_case("sentencepiece.gguf"));
  const Json json = parse_json("test", "tokenizer.json", gguf_tokenizer_json(gguf));
  EXPECT_EQ(json["model"]["vocab"]["<0x00>"], 3);
  EXPECT_EQ(json["model"]["vocab"]["<0xFF>"], 258);
  EXPECT_EQ(json["added_tokens"].size(), 5u);
}

}  // namespace
}  // namespace tranship

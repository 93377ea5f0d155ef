// A tokenizer.json from a stranger: errors, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/testing.h"
#include "tranship/tokenizer.h"

namespace tranship::text {
namespace {

using testing::HasSubstr;

// Loads and uses a tokenizer; whatever is wrong must come as an Error of a kind that blames the
// file or the call.
void survive(const std::string& tokenizer_json, const std::string& config_json) {
  try {
    const Tokenizer tokenizer = Tokenizer::from_json(tokenizer_json, config_json);
    const std::vector<int64_t> ids = tokenizer.encode("Hello, w\xC3\xB6rld!  <|im_end|> 123");
    tokenizer.decode(ids);
    const std::vector<std::string> texts{"a", "a longer text"};
    tokenizer.encode_batch(texts, {.max_length_tokens = 3});
    TokenStream stream(tokenizer);
    for (const int64_t id : {0, 5, 100, 300}) stream.push(id);
    stream.flush();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    EXPECT_NE(error.kind(), ErrorKind::kUnsupported) << error.what();
  }
}

TEST(Hostile, a_truncated_file_is_corrupt) {
  const std::string whole = case_text("tokenizer/bytelevel/tokenizer.json");
  for (size_t length = 0; length + 1 < whole.size(); length += length < 600 ? 1 : 37) {
    const Error error = error_of([&] { Tokenizer::from_json(whole.substr(0, length), ""); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << length;
    EXPECT_THAT(error.what(), HasSubstr("'tokenizer.json'")) << length;
  }
}

// All values of a document, replaced one by one.
void replace_each(Json& place, const std::function<void()>& use) {
  const Json original = place;
  for (const Json& other :
       {Json(nullptr), Json(true), Json(-1), Json(1e300), Json(uint64_t{1} << 63), Json(""),
        Json("\xED\x9F\xBF["), Json::array(), Json::object(), Json({{"type", "Sequence"}})}) {
    place = other;
    use();
  }
  place = original;
  if (!place.is_structured()) return;
  size_t count = 0;
  for (Json& child : place) {
    if (++count > 12) break;  // the vocabulary's entries are alike
    replace_each(child, use);
  }
}

class HostileValues : public testing::TestWithParam<std::string> {};

TEST_P(HostileValues, wrong_values_give_errors_only) {
  const std::string folder = "tokenizer/" + GetParam();
  const std::string config_text = case_text(folder + "/tokenizer_config.json");
  const std::string tokenizer_text = case_text(folder + "/tokenizer.json");
  Json file = parse_json("test", "tokenizer.json", tokenizer_text);
  replace_each(file, [&] { survive(file.dump(), config_text); });
  Json config = parse_json("test", "config", config_text);
  replace_each(config, [&] { survive(tokenizer_text, config.dump()); });
}

INSTANTIATE_TEST_SUITE_P(all, HostileValues,
                         testing::Values("bytelevel", "metaspace", "wordpiece", "unigram"),
                         [](const auto& test) { return test.param; });

TEST(Hostile, flipped_bytes_give_errors_only) {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  for (const std::string name : {"bytelevel", "metaspace", "wordpiece", "unigram"}) {
    const std::string whole = case_text("tokenizer/" + name + "/tokenizer.json");
    for (int i = 0; i < 300; ++i) {
      std::string text = whole;
      text[random() % std::min<size_t>(text.size(), 2500)] = static_cast<char>(random());
      survive(text, "");
    }
  }
}

TEST(Hostile, deep_nesting_is_corrupt) {
  const std::string deep = std::string(100000, '[');
  EXPECT_EQ(error_of([&] { Tokenizer::from_json(deep, ""); }).kind(), ErrorKind::kCorrupt);
  const std::string whole = case_text("tokenizer/bytelevel/tokenizer.json");
  EXPECT_EQ(error_of([&] { Tokenizer::from_json(whole, deep); }).kind(), ErrorKind::kCorrupt);
  std::string decoder = "{\"type\":\"Fuse\"}";
  for (int i = 0; i < 100; ++i) decoder = "{\"type\":\"Sequence\",\"decoders\":[" + decoder + "]}";
  const std::string model = "{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}";
  survive("{\"version\":\"1.0\",\"model\":" + model + ",\"decoder\":" + decoder + "}", "");
}

TEST(Hostile, settings_of_another_type_name_their_key) {
  const std::string whole = case_text("tokenizer/bytelevel/tokenizer.json");
  for (const auto& [config, key] : std::initializer_list<std::pair<std::string, std::string>>{
           {"{\"pad_token\": 5}", "pad_token"},
           {"{\"padding_side\": \"up\"}", "padding_side"},
           {"{\"model_input_names\": [1]}", "model_input_names"},
           {"{\"chat_template\": 1}", "chat_template"},
           {"{\"added_tokens_decoder\": {\"1\": {}}}", "added_tokens_decoder"},
           {"{\"clean_up_tokenization_spaces\": 1}", "clean_up_tokenization_spaces"}}) {
    const Error error = error_of([&] { Tokenizer::from_json(whole, config); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << config;
    EXPECT_THAT(error.what(), HasSubstr(key)) << config;
  }
}

}  // namespace
}  // namespace tranship::text

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing.h"
#include "tranship/tokenizer.h"

namespace tranship::text {
namespace {

using Ids = std::vector<int64_t>;

// Pushes all ids; each piece must be whole characters.
std::string streamed(TokenStream& stream, const Ids& ids) {
  std::string all;
  for (const int64_t id : ids) {
    const std::string piece = stream.push(id);
    EXPECT_TRUE(piece.empty() || (static_cast<unsigned char>(piece[0]) & 0xC0) != 0x80)
        << "half a character";
    all += piece;
  }
  return all + stream.flush();
}

class TokenStreamGolden : public testing::TestWithParam<std::string> {};

TEST_P(TokenStreamGolden, all_pieces_are_what_decode_gives) {
  const Tokenizer tokenizer = Tokenizer::open(*folder_of(GetParam()));
  const Json expected = golden(GetParam());
  TokenStream skipping(tokenizer), whole(tokenizer, false);
  for (const Json& c : expected["texts"]) {
    EXPECT_EQ(streamed(skipping, c["ids"].get<Ids>()), c["decoded"]) << c["text"];
    EXPECT_EQ(streamed(whole, c["ids"].get<Ids>()), c["decoded_whole"]) << c["text"];
  }
  for (const Json& c : expected["decodes"]) {
    TokenStream& stream = c["skip_special_tokens"].get<bool>() ? skipping : whole;
    EXPECT_EQ(streamed(stream, c["ids"].get<Ids>()), c["text"]) << c["ids"];
  }
}

INSTANTIATE_TEST_SUITE_P(all, TokenStreamGolden,
                         testing::Values("bytelevel", "metaspace", "wordpiece", "unigram"),
                         [](const auto& test) { return test.param; });

TEST(TokenStream, plain_text_comes_at_once) {
  for (const std::string name : {"bytelevel", "metaspace"}) {
    const Tokenizer tokenizer = Tokenizer::open(*folder_of(name));
    const Ids ids = tokenizer.encode("The quick brown fox jumps over the lazy dog", false);
    TokenStream stream(tokenizer);
    stream.push(ids[0]);  // may be a space that the decoder takes away
    for (size_t i = 1; i < ids.size(); ++i) EXPECT_NE(stream.push(ids[i]), "") << name << " " << i;
    EXPECT_EQ(stream.flush(), "");
  }
}

TEST(TokenStream, a_character_waits_for_its_last_byte) {
  const Tokenizer tokenizer = Tokenizer::open(*folder_of("bytelevel"));
  const Ids ids = tokenizer.encode("\xF0\x9F\x98\x80", false);
  ASSERT_EQ(ids.size(), 4u);
  TokenStream stream(tokenizer);
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.push(ids[1]), "");
  EXPECT_EQ(stream.push(ids[2]), "");
  EXPECT_EQ(stream.push(ids[3]), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.flush(), "");
}

TEST(TokenStream, half_a_character_comes_out_at_the_end) {
  const Tokenizer tokenizer = Tokenizer::open(*folder_of("bytelevel"));
  const Ids ids = tokenizer.encode("\xF0\x9F\x98\x80", false);
  TokenStream stream(tokenizer);
  stream.push(ids[0]);
  EXPECT_EQ(stream.flush(), tokenizer.decode(Ids{ids[0]}));
}

// A run of byte tokens is read as a whole: one bad byte spoils all of it.
TEST(TokenStream, byte_tokens_wait_for_the_end_of_their_run) {
  const Tokenizer tokenizer = Tokenizer::open(*folder_of("metaspace"));
  const auto byte = [&](const char* token) { return *tokenizer.token_to_id(token); };
  const Ids euro{byte("<0xE2>"), byte("<0x82>"), byte("<0xAC>")};
  TokenStream stream(tokenizer);
  for (const int64_t id : euro) EXPECT_EQ(stream.push(id), "");
  EXPECT_EQ(stream.push(*tokenizer.token_to_id("t")), "\xE2\x82\xACt");
  for (const int64_t id : euro) EXPECT_EQ(stream.push(id), "");
  EXPECT_EQ(stream.push(byte("<0xFF>")), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(TokenStream, a_decoder_that_rewrites_texts_gives_all_at_the_end) {
  Json file = parse_json("test", "tokenizer.json", case_text("tokenizer/bytelevel/tokenizer.json"));
  const Json rewrite = {{"type", "Replace"}, {"pattern", {{"String", "he"}}}, {"content", "HE"}};
  file["decoder"] = {{"type", "Sequence"}, {"decoders", {file["decoder"], rewrite}}};
  const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "");
  const Ids ids = tokenizer.encode("the ship there", false);
  TokenStream stream(tokenizer);
  std::string early;
  for (const int64_t id : ids) early += stream.push(id);
  EXPECT_EQ(early, "");
  EXPECT_EQ(stream.flush(), tokenizer.decode(ids));
}

TEST(TokenStream, a_long_text_costs_the_same_at_each_step) {
  const Tokenizer tokenizer = Tokenizer::open(*folder_of("bytelevel"));
  const Ids sentence = tokenizer.encode("The quick brown fox. ", false);
  TokenStream stream(tokenizer);
  std::string all;
  for (int i = 0; i < 2000; ++i) {
    for (const int64_t id : sentence) all += stream.push(id);
  }
  EXPECT_EQ(all.size() + stream.flush().size(), 2000u * 21u);
}

}  // namespace
}  // namespace tranship::text

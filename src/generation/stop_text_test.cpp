#include "generation/stop_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "generation/testing.h"

namespace tranship::generation {
namespace {

using testing::ElementsAre;

TEST(StopText, cuts_before_a_stop_string_that_comes_in_pieces) {
  StopText text({"STOP"}, "");
  EXPECT_EQ(text.push("go on S", true), "go on ");
  EXPECT_EQ(text.push("T", true), "");
  EXPECT_FALSE(text.stopped());
  EXPECT_EQ(text.push("OP and more", true), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.push("never", true), "");
  EXPECT_EQ(text.flush(), "");
}

TEST(StopText, lets_out_what_did_not_become_a_stop_string) {
  StopText text({"STOP", "TOAD"}, "");
  EXPECT_EQ(text.push("STO", true), "");
  EXPECT_EQ(text.push("A", true), "S") << "TOA may still be TOAD";
  EXPECT_EQ(text.push("T", true), "TOA");
  EXPECT_EQ(text.flush(), "T");
}

TEST(StopText, the_first_of_two_cuts) {
  StopText text({"ee", "d"}, "");
  EXPECT_EQ(text.push("c", true), "c");
  EXPECT_EQ(text.push("xdee", true), "x");
}

TEST(StopText, a_stop_string_may_begin_in_the_prompt_but_not_lie_there) {
  StopText inside({"ab"}, "xab");
  EXPECT_EQ(inside.push("c", true), "c");
  EXPECT_FALSE(inside.stopped());
  StopText across({"ab"}, "xa");
  EXPECT_EQ(across.push("bcd", true), "");
  EXPECT_TRUE(across.stopped());
}

TEST(StopText, what_is_not_to_be_shown_counts_all_the_same) {
  StopText text({"a<end>"}, "");
  EXPECT_EQ(text.push("ba", true), "b");
  EXPECT_EQ(text.push("<en>", false), "a");
  EXPECT_EQ(text.push("ca", true), "c");
  EXPECT_EQ(text.push("<end>", false), "");
  EXPECT_TRUE(text.stopped());
}

// However a text is cut into pieces, the same comes out: what stands before the first stop string
// to be complete.
TEST(StopText, gives_the_same_whatever_the_pieces) {
  std::mt19937 random(42);
  const std::vector<std::string> stops = {"aab", "ba", "abbb"};
  for (int round = 0; round < 300; ++round) {
    std::string all;
    for (int i = 0; i < 12; ++i) all += "abcc"[random() % 4];
    // By definition: the shortest beginning of the text that ends in a stop string.
    std::string expected = all;
    for (size_t end = 1; end <= all.size() && expected == all; ++end) {
      size_t first = end;
      for (const std::string& stop : stops) {
        if (all.substr(0, end).ends_with(stop)) first = std::min(first, end - stop.size());
      }
      if (first < end) expected = all.substr(0, first);
    }
    StopText by_character(stops, "");
    std::string shown;
    for (const char c : all) shown += by_character.push(std::string(1, c), true);
    EXPECT_EQ(shown + by_character.flush(), expected) << all;
  }
}

class StopGolden : public testing::TestWithParam<size_t> {};

TEST_P(StopGolden, ends_with_the_token_that_ends_it_in_transformers) {
  const Json c = sampling_golden()["stops"].at(GetParam());
  SCOPED_TRACE(c.dump());
  const Tokenizer tokenizer =
      Tokenizer::open(kTests / "cases" / "tokenizer" / c["tokenizer"].get<std::string>());
  SequenceText text(tokenizer, c["stop_strings"].get<std::vector<std::string>>(),
                    c["prompt_ids"].get<Ids>());
  Json num_new;
  std::string shown;
  const Ids ids = c["ids"].get<Ids>();
  for (size_t i = 0; i < ids.size() && !text.stopped(); ++i) {
    shown += text.push(ids[i]);
    if (text.stopped()) num_new = i + 1;
  }
  EXPECT_EQ(num_new, c["num_new"]);
  shown += text.flush();
  const std::string whole = c["text"].get<std::string>();
  EXPECT_TRUE(whole.starts_with(shown)) << shown;
  EXPECT_EQ(shown == whole, num_new.is_null()) << shown;
}

INSTANTIATE_TEST_SUITE_P(all, StopGolden,
                         testing::Range(size_t{0}, sampling_golden()["stops"].size()));

}  // namespace
}  // namespace tranship::generation

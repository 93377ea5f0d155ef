#include "cli/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace tranship::cli {
namespace {

const std::vector<std::string> kCommands = {"export",  "run",  "generate",
                                            "inspect", "list", "completion"};

TEST(Suggest, distance_counts_letters_added_removed_changed_and_swapped) {
  EXPECT_EQ(edit_distance("export", "export"), 0U);
  EXPECT_EQ(edit_distance("exprot", "export"), 1U) << "swapped";
  EXPECT_EQ(edit_distance("expor", "export"), 1U);
  EXPECT_EQ(edit_distance("exxport", "export"), 1U);
  EXPECT_EQ(edit_distance("axport", "export"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

TEST(Suggest, a_mistyped_word_finds_its_neighbour) {
  EXPECT_EQ(nearest("exprot", kCommands), "export");
  EXPECT_EQ(nearest("rnu", kCommands), "run");
  EXPECT_EQ(nearest("lst", kCommands), "list");
  EXPECT_EQ(nearest("--dtyp", std::vector<std::string>{"--task", "--dtype"}), "--dtype");
}

TEST(Suggest, a_word_that_is_begun_finds_its_end) {
  EXPECT_EQ(nearest("gen", kCommands), "generate");
}

TEST(Suggest, a_word_that_is_far_from_all_finds_none) {
  EXPECT_EQ(nearest("quantize", kCommands), std::nullopt);
  EXPECT_EQ(nearest("", kCommands), std::nullopt);
  EXPECT_EQ(nearest("--", std::vector<std::string>{"--task"}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1000, 'x'), kCommands), std::nullopt);
}

}  // namespace
}  // namespace tranship::cli

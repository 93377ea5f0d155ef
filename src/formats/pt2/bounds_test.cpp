#include "formats/pt2/bounds.h"

#include <gtest/gtest.h>

namespace tranship::pt2 {
namespace {

using ir::Dim;

Bounds bounds() {
  Bounds b;
  b.set("s", {1, 8});
  b.set("u", {std::nullopt, std::nullopt});
  return b;
}

TEST(BoundsTest, expressions_lie_between_what_their_symbols_allow) {
  const Bounds b = bounds();
  const auto text = [&](std::string_view expression) {
    const Interval i = b.of(Dim::parse(expression));
    const auto end = [](std::optional<int64_t> n) { return n ? std::to_string(*n) : "?"; };
    return end(i.min) + ".." + end(i.max);
  };
  EXPECT_EQ(text("s"), "1..8");
  EXPECT_EQ(text("n"), "0..?");
  EXPECT_EQ(text("u"), "?..?");
  EXPECT_EQ(text("2*s + 1"), "3..17");
  EXPECT_EQ(text("4 - s"), "-4..3");
  EXPECT_EQ(text("s*s"), "1..64");
  EXPECT_EQ(text("s*n"), "0..?");
  EXPECT_EQ(text("s*u"), "?..?");
  EXPECT_EQ(text("floor_div(s, 3)"), "0..2");
  EXPECT_EQ(text("mod(u, 3)"), "0..2");
  EXPECT_EQ(text("min(n, 5)"), "0..5");
  EXPECT_EQ(text("max(u, 5)"), "5..?");
}

TEST(BoundsTest, an_index_is_clamped_only_where_it_must_be) {
  const Bounds b = bounds();
  const auto clamp = [&](std::string_view index, std::string_view size) {
    return b.clamp(Dim::parse(index), Dim::parse(size)).text();
  };
  EXPECT_EQ(clamp("2", "4"), "2");
  EXPECT_EQ(clamp("9", "4"), "4");
  EXPECT_EQ(clamp("-1", "4"), "3");
  EXPECT_EQ(clamp("-9", "4"), "0");
  EXPECT_EQ(clamp("1", "s"), "1");
  EXPECT_EQ(clamp("2", "s"), "min(2, s)");
  EXPECT_EQ(clamp("-1", "s"), "s - 1");
  EXPECT_EQ(clamp("-2", "s"), "max(0, s - 2)");
  EXPECT_EQ(clamp("s", "2*s"), "s");
  EXPECT_EQ(clamp("s", "n"), "min(n, s)");
}

/// Of unknown sign, as Python does it.
TEST(BoundsTest, an_index_of_unknown_sign_counts_from_either_end) {
  const Dim clamped = bounds().clamp(Dim::symbol("u"), 5);
  const std::pair<int64_t, int64_t> cases[] = {{0, 0}, {3, 3}, {7, 5}, {-1, 4}, {-5, 0}, {-9, 0}};
  for (const auto& [index, expected] : cases)
    EXPECT_EQ(clamped.evaluate({{"u", index}}), expected) << index;
}

}  // namespace
}  // namespace tranship::pt2

#include "base/error.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace tranship {
namespace {

TEST(ErrorTest, fail_throws_its_kind_and_the_formatted_message) {
  const Error error = error_of([] { fail(ErrorKind::kCorrupt, "[x] '{}' has {} bytes", "a", 3); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_STREQ(error.what(), "[x] 'a' has 3 bytes");
}

TEST(ErrorTest, check_that_does_not_hold_is_an_internal_error) {
  check(true, "nothing");
  const Error error = error_of([] { check(false, "a thing is broken"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  EXPECT_STREQ(error.what(), "[internal] a thing is broken: this is a bug in tranship");
}

TEST(ErrorTest, lists_are_quoted_and_cut) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a", "b"}), "'a', 'b'");
  EXPECT_EQ(listed({"a", "b", "c"}, 2), "'a', 'b' and 1 more");
}

}  // namespace
}  // namespace tranship

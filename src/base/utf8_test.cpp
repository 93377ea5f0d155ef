#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace tranship {
namespace {

TEST(Utf8, valid_text_has_no_invalid_byte) {
  for (const char* text : {"", "a", "\xc3\xa9", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\xe0\xa0\x80",
                           "\xf0\x9f\x98\x80", "a\xc3\xa9z"}) {
    EXPECT_EQ(find_invalid_utf8(text), std::string_view::npos) << text;
  }
}

TEST(Utf8, the_first_invalid_byte_is_found) {
  for (const char* text : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xe0\x80\x80", "\x80", "\xf0\x9f\x98"}) {
    EXPECT_EQ(find_invalid_utf8(text), 0) << text;
    EXPECT_EQ(find_invalid_utf8("\xc3\xa9z" + std::string(text)), 3) << text;
  }
}

}  // namespace
}  // namespace tranship

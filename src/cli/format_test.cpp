#include "cli/format.h"

#include <gtest/gtest.h>

namespace tranship::cli {
namespace {

TEST(Format, bytes_have_three_digits_in_powers_of_1024) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(137363456), "131 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(Format, a_size_that_rounds_up_to_the_next_unit_is_in_that_unit) {
  EXPECT_EQ(format_bytes((1u << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(1023 * 1024), "1023 KiB");
  EXPECT_EQ(format_count(999'999), "1.00 M");
}

TEST(Format, counts_have_three_digits_in_powers_of_1000) {
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(134'515'008), "135 M");
  EXPECT_EQ(format_count(405'853'388'800), "406 B");
  EXPECT_EQ(format_count(12'340), "12.3 K");
}

TEST(Format, exact_numbers_have_commas_between_thousands) {
  EXPECT_EQ(format_exact(0), "0");
  EXPECT_EQ(format_exact(999), "999");
  EXPECT_EQ(format_exact(1000), "1,000");
  EXPECT_EQ(format_exact(134'515'008), "134,515,008");
}

TEST(Format, durations_take_the_unit_that_fits) {
  EXPECT_EQ(format_duration(0), "0 ms");
  EXPECT_EQ(format_duration(0.084), "84 ms");
  EXPECT_EQ(format_duration(0.9999), "1.00 s");
  EXPECT_EQ(format_duration(12.34), "12.3 s");
  EXPECT_EQ(format_duration(59.99), "1 min 0 s");
  EXPECT_EQ(format_duration(125), "2 min 5 s");
  EXPECT_EQ(format_duration(3840), "1 h 4 min");
}

TEST(Format, control_characters_cannot_reach_the_terminal) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1B[31mb");
  EXPECT_EQ(printable("tab\tline\n"), "tab\tline\n");
  EXPECT_EQ(printable("\r\x7f"), "\\x0D\\x7F");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xC2\\x9B") << "C1 controls act in some terminals";
}

TEST(Format, what_is_not_utf8_is_shown_as_bytes) {
  EXPECT_EQ(printable("\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(printable("\xF0\x9F\x9A\xA2"), "\xF0\x9F\x9A\xA2");
  EXPECT_EQ(printable("\xC3"), "\\xC3") << "cut";
  EXPECT_EQ(printable("\xC0\xAF"), "\\xC0\\xAF") << "overlong";
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xED\\xA0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xFFz"), "\\xFFz");
}

TEST(Format, text_is_wrapped_at_spaces) {
  EXPECT_EQ(wrap("one two three", 8), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(wrap("one two", 7), "one two");
  EXPECT_EQ(wrap("", 10), "");
  EXPECT_EQ(wrap("no limit at all", 0), "no limit at all");
}

TEST(Format, a_long_word_is_not_cut) {
  EXPECT_EQ(wrap("a /very/long/path b", 6, 2), "a\n  /very/long/path\n  b");
}

TEST(Format, line_ends_and_spaces_of_the_text_stay) {
  EXPECT_EQ(wrap("  one\ntwo", 20, 4), "  one\n    two");
  EXPECT_EQ(wrap("a\n\nb", 20), "a\n\nb");
  EXPECT_EQ(wrap("left   right", 20), "left   right");
}

TEST(Format, a_character_counts_once_however_many_bytes_it_has) {
  EXPECT_EQ(display_width("\xC3\xA9t\xC3\xA9"), 3U);
  EXPECT_EQ(wrap("\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9", 5), "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9");
}

TEST(Format, columns_of_a_table_are_aligned) {
  Table table({"file", ">size", "note"});
  table.add({"a", "1", "x"});
  table.add({"longer", "1000", ""});
  EXPECT_EQ(table.text(),
            "  file    size  note\n"
            "  a          1  x\n"
            "  longer  1000\n");
}

TEST(Format, a_table_without_headers_has_no_line_for_them) {
  Table table({"", ">"});
  table.add({"key", "1"});
  EXPECT_EQ(table.text(0), "key  1\n");
}

}  // namespace
}  // namespace tranship::cli

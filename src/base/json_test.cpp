#include "base/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "base/testing.h"

namespace tranship {
namespace {

using testing::HasSubstr;

Json parsed(std::string_view text) { return parse_json("config", "c.json", text); }

std::string corrupt_message(std::string_view text) {
  const Error error = error_of([&] { parsed(text); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("[config] 'c.json': "));
  return error.what();
}

TEST(ParseJsonTest, document_is_read_in_its_order) {
  const Json value = parsed(R"({"z": 1, "a": [true, null, 1.5, "x"], "o": {"z": 2}})");
  EXPECT_EQ(value.begin().key(), "z");
  EXPECT_EQ(value["a"].size(), 4u);
  EXPECT_EQ(value["o"]["z"], 2);
}

TEST(ParseJsonTest, bad_syntax_is_corrupt_with_line_and_column) {
  EXPECT_THAT(corrupt_message("{\n  \"a\": 1,\n  \"b\": x\n}"),
              HasSubstr("line 3, column 8 is not JSON"));
  EXPECT_THAT(corrupt_message("]"), HasSubstr("line 1, column 1 "));
  EXPECT_THAT(corrupt_message(""), HasSubstr("line 1, column 1 "));
  EXPECT_THAT(corrupt_message("{\"a\": 1"), HasSubstr("is not JSON"));
  EXPECT_THAT(corrupt_message("{\"a\": 1} x"), HasSubstr("column 10 "));
  EXPECT_THAT(corrupt_message("{\"a\": 1 // no\n}"), HasSubstr("is not JSON"));
}

TEST(ParseJsonTest, bad_syntax_says_what_was_expected_and_found_and_nothing_of_the_parser) {
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {"",
            "expected a value (an object, a list, a string, a number, true, false, null), found "
            "the end of the text"},
           {"{", "expected a key in double quotes, or '}', found the end of the text"},
           {"{a: 1}", "expected a key in double quotes, or '}', found 'a:'"},
           {"{'a': 1}", "expected a key in double quotes, or '}', found ''a':'"},
           {R"({"a" 1})", "expected ':', found '1}'"},
           {R"({"a": 1 "b": 2})", "expected ',' or '}', found '\"b\":'"},
           {R"({"a": 1, })", "expected a key in double quotes, or '}', found '}'"},
           {"[1 2]", "expected ',' or ']', found '2]'"},
           {"[1,]", "found ']'"},
           {R"({"a": None})", "true, false, null), found 'None}'"},
           {R"({"a": True, "b": 1})", "true, false, null), found 'True,'"},
           {R"({"a": Infinity})", "true, false, null), found 'Infinity}'"},
           {"{} {}", "expected nothing more, found '{}'"},
           {"\"a\nb\"", "expected no control character in a string"},
           {"\"abc", "expected a string that ends with '\"', found the end of the text"},
           {"\"\xff\"", "expected UTF-8, found the byte 0xff"},
           {R"("\q")", "expected an escape that JSON has"},
           {"[-x]", "expected a digit"}}) {
    const std::string message = corrupt_message(text);
    EXPECT_THAT(message, HasSubstr(problem)) << text;
    EXPECT_THAT(message, testing::Not(HasSubstr("exception"))) << text;
    EXPECT_THAT(message, testing::Not(HasSubstr("literal"))) << text;
  }
}

TEST(ParseJsonTest, numbers_that_only_python_writes_are_read_where_they_are_expected) {
  const std::string_view text =
      R"({"Infinity": "NaN \" -Infinity", "a": [0.0, Infinity, 1, -Infinity], "b": {"c": NaN}, "d": -2})";
  EXPECT_THAT(corrupt_message(text), HasSubstr("column 45 is not JSON"));
  const Json value = parse_json("config", "c.json", text, NonFinite::kAsPython);
  EXPECT_EQ(value["Infinity"], "NaN \" -Infinity");
  EXPECT_EQ(to_python_json_line(value["a"]), "[0.0, Infinity, 1, -Infinity]");
  EXPECT_TRUE(std::isnan(value["b"]["c"].get<double>()));
  EXPECT_EQ(value["d"], -2);
  for (const char* other : {"[inf]", "[nan]", "[infinity]", "[+Infinity]", "[Infinityx]", "[-NaN]",
                            "{NaN: 1}", "[Infinity"}) {
    EXPECT_EQ(error_of([&] { parse_json("config", "c", other, NonFinite::kAsPython); }).kind(),
              ErrorKind::kCorrupt)
        << other;
  }
}

TEST(ParseJsonTest, every_cut_of_a_document_is_corrupt) {
  const std::string_view text = R"({"a": [1, {"b": "c\u00e9"}], "d": true})";
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_EQ(error_of([&] { parsed(text.substr(0, size)); }).kind(), ErrorKind::kCorrupt) << size;
  }
}

TEST(ParseJsonTest, key_that_stands_twice_in_one_object_is_corrupt) {
  EXPECT_THAT(corrupt_message(R"({"a": {"b": 1, "b": 2}})"), HasSubstr("the key 'b' stands twice"));
  EXPECT_EQ(parsed(R"({"a": {"b": 1}, "b": {"b": [{"b": 1}, {"b": 2}]}})").size(), 2u);
}

TEST(ParseJsonTest, object_of_very_many_keys_is_read_in_a_moment) {
  constexpr size_t kKeys = 400'000;  // compared with each other they would take many minutes
  std::string text = "{";
  for (size_t i = 0; i < kKeys; ++i) text += fmt::format("{}\"{}\": {}", i > 0 ? ", " : "", i, i);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(parsed(text + "}").size(), kKeys);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));
}

TEST(ParseJsonTest, nesting_over_256_levels_is_corrupt) {
  EXPECT_EQ(parsed(std::string(200, '[') + std::string(200, ']')).size(), 1u);
  EXPECT_THAT(corrupt_message(std::string(300, '[') + std::string(300, ']')),
              HasSubstr("more than 256 levels"));
  EXPECT_THAT(corrupt_message(std::string(1000000, '[')), HasSubstr("more than 256 levels"));
}

TEST(ParseJsonTest, zero_byte_does_not_end_the_text) {
  EXPECT_THAT(corrupt_message(std::string_view("{}\n\0 x", 6)),
              HasSubstr("line 2, column 1 is not JSON: a zero byte"));
}

TEST(PythonJson, text_that_is_not_utf8_is_an_error_not_an_exception_of_the_library) {
  for (const Json& value : {Json("a\x89"), Json{{"a\x89", 1}}, Json::array({"ok", "\xff"})}) {
    EXPECT_EQ(error_of([&] { to_python_json(value); }).kind(), ErrorKind::kCorrupt);
    EXPECT_EQ(error_of([&] { to_python_json_line(value); }).kind(), ErrorKind::kCorrupt);
  }
}

TEST(ParseJsonTest, invalid_utf8_is_corrupt) {
  EXPECT_THAT(corrupt_message("\"\xff\""), HasSubstr("is not JSON"));
}

TEST(ParseJsonTest, number_too_large_for_a_double_is_corrupt) {
  EXPECT_THAT(corrupt_message("[1e400]"), testing::EndsWith("a number is too large: '1e400'"));
}

// What follows is what Python's json.dumps wrote.

TEST(PythonJsonTest, floats_are_written_as_python_writes_them) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Json value = {0.0,
                      -0.0,
                      1.0,
                      10000.0,
                      1e-05,
                      0.0001,
                      1e15,
                      1e16,
                      123456789012345680.0,
                      1e22,
                      1.5e300,
                      5e-324,
                      0.1,
                      1.0 / 3,
                      500000.0,
                      1e-06,
                      2.2250738585072014e-308,
                      infinity,
                      -infinity,
                      std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(to_python_json_line(value),
            "[0.0, -0.0, 1.0, 10000.0, 1e-05, 0.0001, 1000000000000000.0, 1e+16, "
            "1.2345678901234568e+17, 1e+22, "
            "1.5e+300, 5e-324, 0.1, 0.3333333333333333, 500000.0, 1e-06, 2.2250738585072014e-308, "
            "Infinity, -Infinity, "
            "NaN]");
}

constexpr std::string_view kDocument =
    "{\"z\": [], \"a\": {\"y\": {}, \"x\": [1, [2.5, null]], \"s\": "
    "\"\\t\\\"\\\\/\\u0001\\u00e9\\ud83d\\ude00\"}, "
    "\"\\u00e9\": true, \"Z\": -3, \"big\": 18446744073709551615, \"e\": \"\"}";

TEST(PythonJsonTest, indented_form_keeps_order_and_unicode) {
  EXPECT_EQ(to_python_json(parsed(kDocument)),
            "{\n  \"z\": [],\n  \"a\": {\n    \"y\": {},\n    \"x\": [\n      1,\n      [\n        "
            "2.5,\n        null\n"
            "      ]\n    ],\n    \"s\": \"\\t\\\"\\\\/\\u0001\xc3\xa9\xf0\x9f\x98\x80\"\n  },\n  "
            "\"\xc3\xa9\": true,\n"
            "  \"Z\": -3,\n  \"big\": 18446744073709551615,\n  \"e\": \"\"\n}");
}

TEST(PythonJsonTest, sorted_form_sorts_every_object) {
  EXPECT_EQ(to_python_json(parsed(R"({"b": {"d": 1, "c": 2}, "a": 0, "B": 1})"), true),
            "{\n  \"B\": 1,\n  \"a\": 0,\n  \"b\": {\n    \"c\": 2,\n    \"d\": 1\n  }\n}");
}

TEST(PythonJsonTest, one_line_form_is_ascii) {
  EXPECT_EQ(to_python_json_line(parsed(kDocument)), kDocument);
  EXPECT_EQ(to_python_json_line(Json("\x7f")), "\"\\u007f\"");
}

}  // namespace
}  // namespace tranship

#include "checkpoint/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config parsed(std::string_view text) { return Config::parse("config.json", text); }

TEST(ConfigTest, values_are_read_with_their_types) {
  const Config c = parsed(
      R"({"a": 3, "b": 1e-05, "c": true, "d": "silu", "e": [1, 2], "f": [1, 0.5], "g": ["x"]})");
  EXPECT_EQ(c.integer("a"), 3);
  EXPECT_EQ(c.number("b"), 1e-05);
  EXPECT_TRUE(c.boolean("c", false));
  EXPECT_EQ(c.text("d"), "silu");
  EXPECT_THAT(c.integers("e"), ElementsAre(1, 2));
  EXPECT_THAT(c.numbers("f"), ElementsAre(1.0, 0.5));
  EXPECT_THAT(c.texts("g"), ElementsAre("x"));
  EXPECT_EQ(c.number("a"), 3.0);
  EXPECT_THAT(c.unread(), IsEmpty());
}

TEST(ConfigTest, null_and_absent_are_the_same) {
  const Config c = parsed(R"({"n": null})");
  for (const char* key : {"n", "absent"}) {
    EXPECT_FALSE(c.has(key));
    EXPECT_EQ(c.integer(key, 7), 7);
    EXPECT_EQ(c.number(key, 0.5), 0.5);
    EXPECT_TRUE(c.boolean(key, true));
    EXPECT_EQ(c.text(key, "x"), "x");
    EXPECT_FALSE(c.find_integer(key).has_value());
    EXPECT_FALSE(c.find_number(key).has_value());
    EXPECT_FALSE(c.find_text(key).has_value());
    EXPECT_FALSE(c.find_object(key).has_value());
    EXPECT_THAT(c.integers(key), IsEmpty());
    EXPECT_THAT(c.texts(key), IsEmpty());
    c.require(key, int64_t{1});
  }
}

TEST(ConfigTest, key_without_a_default_that_is_absent_is_an_invalid_argument_with_its_path) {
  const Config c = parsed(R"({"rope_scaling": {"factor": null}})");
  EXPECT_EQ(error_of([&] { c.integer("hidden_size"); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error_of([&] { c.text("hidden_act"); }).what(),
              HasSubstr("'config.json': the key 'hidden_act'"));
  EXPECT_THAT(error_of([&] { c.find_object("rope_scaling")->number("factor"); }).what(),
              HasSubstr("'config.json': the key 'rope_scaling.factor' is absent"));
}

TEST(ConfigTest, value_of_another_type_is_corrupt_with_path_and_value) {
  const Config c =
      parsed(R"({"a": "12", "b": 1.5, "c": {"d": [1, "x"]}, "e": 1, "f": 18446744073709551615})");
  const auto expect_corrupt = [](const Error& error, const char* message) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr(message));
  };
  expect_corrupt(error_of([&] { c.integer("a"); }),
                 "'config.json': 'a' must be an integer, but it is \"12\"");
  expect_corrupt(error_of([&] { c.find_integer("b"); }), "'b' must be an integer, but it is 1.5");
  expect_corrupt(error_of([&] { c.number("a", 1.0); }), "'a' must be a number");
  expect_corrupt(error_of([&] { c.boolean("e", true); }), "'e' must be true or false, but it is 1");
  expect_corrupt(error_of([&] { c.text("e"); }), "'e' must be a string");
  expect_corrupt(error_of([&] { c.find_object("a"); }), "'a' must be an object");
  expect_corrupt(error_of([&] { c.numbers("e"); }), "'e' must be a list of numbers");
  expect_corrupt(error_of([&] { c.integers("a"); }),
                 "'a' must be an integer or a list of integers");
  expect_corrupt(error_of([&] { c.find_object("c")->integers("d"); }),
                 "'c.d[1]' must be an integer");
  expect_corrupt(error_of([&] { c.integer("f"); }), "'f' must be an integer of 64 bits");
}

TEST(ConfigTest, integers_takes_a_single_number_as_a_list_of_one) {
  EXPECT_THAT(parsed(R"({"eos_token_id": 2})").integers("eos_token_id"), ElementsAre(2));
}

TEST(ConfigTest, text_that_is_no_object_is_corrupt) {
  EXPECT_EQ(error_of([] { parsed("[1]"); }).kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error_of([] { parsed(R"({"a": })"); }).what(), HasSubstr("'config.json': line 1"));
  EXPECT_THAT(error_of([] { parsed(R"({"a": 1, "a": 2})"); }).what(),
              HasSubstr("'a' stands twice"));
}

TEST(ConfigTest, unread_keys_are_listed_in_the_order_of_the_file_nested_ones_with_their_path) {
  const Config c = parsed(
      R"({"z": 1, "rope": {"type": "yarn", "beta": 1, "deep": {"x": 1}}, "other": {"y": 1}, "n": null, "a": 2})");
  EXPECT_THAT(c.unread(), ElementsAre("z", "rope", "other", "a"));
  c.integer("a");
  c.find_object("rope")->text("type");
  EXPECT_THAT(c.unread(), ElementsAre("z", "rope.beta", "rope.deep", "other"));
  c.find_object("rope")->find_object("deep");
  EXPECT_THAT(c.unread(), ElementsAre("z", "rope.beta", "rope.deep.x", "other"));
  c.ignore({"z", "other", "not there"});
  EXPECT_THAT(c.unread(), ElementsAre("rope.beta", "rope.deep.x"));
}

TEST(ConfigTest, asking_whether_a_key_is_there_does_not_count_as_reading_it) {
  const Config c = parsed(R"({"a": 1})");
  EXPECT_TRUE(c.has("a"));
  EXPECT_THAT(c.unread(), ElementsAre("a"));
}

TEST(ConfigTest, copies_share_what_was_read) {
  const Config c = parsed(R"({"a": 1, "o": {"b": 1}})");
  const Config copy = c;
  copy.integer("a");
  const Config child = *copy.find_object("o");
  child.integer("b");
  EXPECT_THAT(c.unread(), IsEmpty());
}

TEST(ConfigTest, reset_forgets_what_was_read_and_opened) {
  const Config c = parsed(R"({"a": 1, "o": {"b": 1, "c": 2}})");
  const Config child = *c.find_object("o");
  child.integer("b");
  c.integer("a");
  c.reset_reads();
  EXPECT_THAT(c.unread(), ElementsAre("a", "o"));
  child.integer("c");
  EXPECT_THAT(c.unread(), ElementsAre("a", "o.b"));
}

TEST(ConfigTest, object_outlives_the_configuration_it_came_from) {
  std::optional<Config> child;
  {
    const Config c = parsed(R"({"o": {"b": 5}})");
    child = c.find_object("o");
  }
  EXPECT_EQ(child->integer("b"), 5);
}

TEST(ConfigTest, required_value_that_differs_is_unsupported_with_path_and_both_values) {
  const Config c = parsed(R"({"o": {"act": "gelu"}, "scale": true, "tp": 2, "ok": 1})");
  c.require("ok", int64_t{1});
  const Error error =
      error_of([&] { c.find_object("o")->require("act", std::string_view("silu")); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(),
              HasSubstr("'config.json': 'o.act' is \"gelu\", but only \"silu\" is supported"));
  EXPECT_THAT(error_of([&] { c.require("scale", false); }).what(),
              HasSubstr("'scale' is true, but only false"));
  EXPECT_THAT(error_of([&] { c.require("tp", int64_t{1}); }).what(),
              HasSubstr("'tp' is 2, but only 1"));
  EXPECT_THAT(c.unread(), IsEmpty());
}

TEST(ConfigTest, infinity_as_python_writes_it_is_a_number_of_a_list_and_no_number_of_its_own) {
  const Config config = Config::parse(
      "config.json", R"({"time_step_limit": [0.0, Infinity], "eps": Infinity, "n": NaN})");
  EXPECT_EQ(config.numbers("time_step_limit").at(1), std::numeric_limits<double>::infinity());
  for (const char* key : {"eps", "n"}) {
    EXPECT_THAT(error_of([&] { config.number(key); }).what(), HasSubstr("a finite number"));
  }
  EXPECT_THAT(config.to_json(), HasSubstr("\"eps\": Infinity"));
  EXPECT_TRUE(Config::parse("config.json", config.to_json()).has("eps"));
}

TEST(ConfigTest, where_names_file_and_object) {
  const Config c = parsed(R"({"a": {"b": {}}})");
  EXPECT_EQ(c.where(), "config.json");
  EXPECT_EQ(c.find_object("a")->find_object("b")->where(), "config.json: a.b");
}

TEST(ConfigTest, keys_are_in_the_order_of_the_file) {
  EXPECT_THAT(parsed(R"({"z": 1, "a": null})").keys(), ElementsAre("z", "a"));
}

TEST(ConfigTest, json_text_is_sorted_and_indented_as_transformers_writes_it) {
  EXPECT_EQ(parsed(R"({"z": 1e-5, "a": {"y": [], "x": [1, 10000.0]}, "n": null})").to_json(), R"({
  "a": {
    "x": [
      1,
      10000.0
    ],
    "y": []
  },
  "n": null,
  "z": 1e-05
})");
}

TEST(ConfigTest, with_changes_a_copy_whose_reads_start_anew) {
  const Config c = parsed(R"({"a": 1, "b": 2})");
  c.integer("a");
  const Config changed = c.with("a", "[\"LlamaModel\"]").with("new", "null");
  EXPECT_THAT(changed.texts("a"), ElementsAre("LlamaModel"));
  EXPECT_THAT(changed.keys(), ElementsAre("a", "b", "new"));
  EXPECT_EQ(c.integer("a"), 1);
  EXPECT_THAT(c.unread(), ElementsAre("b"));
  EXPECT_THAT(changed.unread(), ElementsAre("b"));
  EXPECT_EQ(changed.where(), "config.json");
  EXPECT_EQ(error_of([&] { c.with("a", "{"); }).kind(), ErrorKind::kCorrupt);
}

TEST(ConfigTest, empty_configuration_has_no_keys) {
  EXPECT_THAT(Config().keys(), IsEmpty());
  EXPECT_EQ(Config().to_json(), "{}");
}

}  // namespace
}  // namespace tranship

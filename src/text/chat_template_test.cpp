// Against Transformers' apply_chat_template: tests/golden/tokenizer/chat.json, made by
// tools/make_tokenizer_goldens.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "text/testing.h"
#include "tranship/tokenizer.h"

namespace tranship::text {
namespace {

using testing::HasSubstr;

// The small tokenizer with a template of its own.
Tokenizer with_template(const Json& chat_template) {
  Json config =
      parse_json("test", "config", case_text("tokenizer/bytelevel/tokenizer_config.json"));
  config["chat_template"] = chat_template;
  return Tokenizer::from_json(case_text("tokenizer/bytelevel/tokenizer.json"), config.dump());
}

std::vector<ChatMessage> messages_of(const Json& messages) {
  std::vector<ChatMessage> out;
  for (const Json& message : messages)
    out.push_back({message["role"].get<std::string>(), "", message.dump()});
  return out;
}

std::string rendered(const Json& c, const std::string& source) {
  return with_template(source).apply_chat_template(
      messages_of(c["messages"]), c["add_generation_prompt"].get<bool>(),
      c["tools"].is_null() ? "" : c["tools"].dump(), c["variables"].dump());
}

TEST(ChatTemplate, text_and_errors_are_those_of_transformers) {
  std::set<std::string> templates;
  const std::string raised = "TemplateError: ";
  for (const Json& c : golden("chat")) {
    const std::string name = c["template"].get<std::string>();
    templates.insert(name);
    const std::string source = case_text("chat/" + name);
    SCOPED_TRACE(name + " " + c["messages"].dump());
    if (c.contains("text")) {
      EXPECT_EQ(rendered(c, source), c["text"].get<std::string>());
      continue;
    }
    const Error error = error_of([&] { rendered(c, source); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    const std::string expected = c["error"].get<std::string>();
    if (expected.starts_with(raised)) {
      EXPECT_THAT(error.what(), HasSubstr(expected.substr(raised.size())));
    }
  }
  EXPECT_GE(templates.size(), 7u);
}

const std::vector<ChatMessage> kHello{{.role = "user", .content = "hello"}};

std::string render(const std::string& source) {
  return with_template(source).apply_chat_template(kHello);
}

TEST(ChatTemplate, special_tokens_are_variables) {
  EXPECT_EQ(render("{{ bos_token }}{{ eos_token }}{{ image_token }}"),
            "<|endoftext|><|im_end|><|image|>");
}

TEST(ChatTemplate, the_time_is_the_local_one) {
  std::string before, after, text;
  const auto now = [] {
    const std::time_t time = std::time(nullptr);
    char buffer[64];
    return std::string(
        buffer, std::strftime(buffer, sizeof buffer, "%d %b %Y %H:%M", std::localtime(&time)));
  };
  before = now();
  text = render("{{ strftime_now('%d %b %Y %H:%M') }}");
  after = now();
  EXPECT_TRUE(text == before || text == after) << text;
  EXPECT_EQ(render("[{{ strftime_now('') }}]"), "[]");
}

TEST(ChatTemplate, line_ends_are_plain) {
  EXPECT_EQ(render("{% if true %}\r\na\r\n{% endif %}b\rc\r\n"), "a\nb\nc");
}

TEST(ChatTemplate, errors_name_the_line) {
  const Error raised = error_of([] { render("a\n{{ raise_exception('no ' ~ 'way') }}"); });
  EXPECT_EQ(raised.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(raised.what(), HasSubstr("[chat template] no way (line 2"));
  EXPECT_EQ(error_of([] { render("{% if %}"); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error_of([] { render("{{ messages.nothing.more }}"); }).what(),
              HasSubstr("undefined"));
}

TEST(ChatTemplate, a_template_without_an_end_is_stopped) {
  const std::string loops =
      "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
      "{% endfor %}{% endfor %}{% endfor %}";
  EXPECT_THAT(error_of([&] { render(loops); }).what(), HasSubstr("does not end"));
  EXPECT_EQ(error_of([] { render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"); }).kind(),
            ErrorKind::kInvalidArgument);
}

TEST(ChatTemplate, a_template_that_takes_all_memory_is_stopped) {
  std::string doubled = "{% set x = 'x' %}";
  for (int i = 0; i < 60; ++i) doubled += "{% set x = x ~ x %}";
  for (const std::string& hostile :
       {doubled,
        std::string("{% set ns = namespace(x='x') %}{% for i in range(60) %}"
                    "{% set ns.x = ns.x + ns.x %}{% endfor %}"),
        std::string("{% macro m(x, n) %}{% if n %}{{ m(x ~ x, n - 1) }}{% endif %}{% endmacro %}"
                    "{{ m('x', 60) }}"),
        std::string("{% set x = 'x' * 1000000 %}{{ x | replace('x', x) }}"),
        std::string("{% set x = 'x' * 1000000 %}{{ range(9999) | join(x) }}"),
        std::string("{% for i in range(9999) %}{% for j in range(999) %}" +
                    std::string(10000, 'x') + "{% endfor %}{% endfor %}")}) {
    const Error error = error_of([&] { render(hostile); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("memory")) << hostile.substr(0, 80);
    EXPECT_EQ(error_of([&] { render(hostile); }).what(), std::string(error.what())) << "again";
  }
  EXPECT_EQ(error_of([] { render("{{ 'x' * 4000000000 }}"); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(render("{{ ('x' * 1000000) | length }}"), "1000000");
}

TEST(ChatTemplate, a_long_conversation_fits) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 200; ++i)
    messages.push_back({.role = "user", .content = std::string(10000, 'x')});
  const Tokenizer tokenizer = with_template(
      "{% set ns = namespace(all='') %}{% for m in messages %}{% set ns.all = ns.all ~ m.content "
      "%}{% endfor %}{{ ns.all }}");
  EXPECT_EQ(tokenizer.apply_chat_template(messages).size(), 2'000'000U);
}

TEST(ChatTemplate, the_one_named_for_tools_is_taken_with_tools) {
  const Tokenizer tokenizer =
      with_template({{{"name", "default"}, {"template", "plain"}},
                     {{"name", "tool_use"}, {"template", "{{ tools | length }} tools"}}});
  EXPECT_EQ(tokenizer.apply_chat_template(kHello), "plain");
  EXPECT_EQ(tokenizer.apply_chat_template(kHello, true, "[{}, {}]"), "2 tools");
  const Tokenizer other = with_template({{{"name", "rag"}, {"template", "plain"}}});
  EXPECT_THAT(error_of([&] { other.apply_chat_template(kHello); }).what(), HasSubstr("'rag'"));
}

TEST(ChatTemplate, files_go_before_the_config) {
  const TestFolder folder;
  folder.write("tokenizer.json", case_text("tokenizer/bytelevel/tokenizer.json"));
  EXPECT_FALSE(Tokenizer::open(folder.path()).has_chat_template());
  const auto text = [&] { return Tokenizer::open(folder.path()).apply_chat_template(kHello); };
  EXPECT_EQ(error_of(text).kind(), ErrorKind::kInvalidArgument);
  folder.write("chat_template.json", "{\"chat_template\": \"oldest\"}");
  EXPECT_EQ(text(), "oldest");
  folder.write("tokenizer_config.json", "{\"chat_template\": \"config\"}");
  EXPECT_EQ(text(), "config");
  folder.write("chat_templates/rag.jinja", "rag");
  folder.write("chat_template.jinja", "file");
  EXPECT_EQ(text(), "file");
}

TEST(ChatTemplate, bad_arguments_are_refused) {
  const Tokenizer tokenizer = with_template("{{ messages[0].content }}");
  const auto kind = [](auto&& action) { return error_of(action).kind(); };
  EXPECT_EQ(kind([&] { tokenizer.apply_chat_template({}); }), ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind([&] { tokenizer.apply_chat_template(kHello, true, "{"); }),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind([&] { tokenizer.apply_chat_template(kHello, true, "{}"); }),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind([&] { tokenizer.apply_chat_template(kHello, true, "", "[]"); }),
            ErrorKind::kInvalidArgument);
  const std::vector<ChatMessage> broken{{.role = "user", .content = "\xFF"}};
  EXPECT_EQ(kind([&] { tokenizer.apply_chat_template(broken); }), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace tranship::text

// Source: transformers tokenization_utils_base.py apply_chat_template, utils/chat_template_utils.py
// (5.23).
#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer_data.h"
#include "tranship/tokenizer.h"

namespace tranship {
namespace {

Json parse_argument(std::string_view what, std::string_view text, Json::value_t expected) {
  Json value;
  try {
    value = parse_json("chat template", what, text);
  } catch (const Error& error) {
    fail(ErrorKind::kInvalidArgument, "{}", error.what());
  }
  if (value.type() != expected) {
    fail(ErrorKind::kInvalidArgument, "[chat template] {} is a JSON {}, expected {}", what,
         value.type_name(), Json(expected).type_name());
  }
  return value;
}

// Reasoning goes by several names; templates read the first, some the second.
void add_reasoning_names(Json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    if (!message.contains(name)) continue;
    const Json reasoning = message[name];
    message["reasoning_content"] = reasoning;
    if (!message.contains("thinking")) message["thinking"] = reasoning;
    return;
  }
}

Json message_json(const ChatMessage& message) {
  Json all = {{"role", message.role}, {"content", message.content}};
  if (!message.fields_json.empty()) {
    all.update(parse_argument("a message's fields", message.fields_json, Json::value_t::object));
  }
  Json present = Json::object();
  for (const auto& [key, value] : all.items()) {
    if (!value.is_null()) present[key] = value;
  }
  add_reasoning_names(present);
  return present;
}

const std::string& choose_template(const std::map<std::string, std::string>& templates,
                                   bool with_tools) {
  if (templates.empty()) {
    fail(ErrorKind::kInvalidArgument,
         "[chat template] this tokenizer has none: give the prompt as plain text, or put a "
         "chat_template.jinja beside "
         "tokenizer.json");
  }
  if (const auto tools = templates.find("tool_use"); with_tools && tools != templates.end())
    return tools->second;
  if (const auto usual = templates.find("default"); usual != templates.end()) return usual->second;
  std::vector<std::string> names;
  for (const auto& [name, source] : templates) names.push_back(name);
  fail(ErrorKind::kInvalidArgument, "[chat template] this tokenizer has {}, but none named default",
       listed(names));
}

std::string dump(const Json& json) {
  try {
    return json.dump();
  } catch (const nlohmann::json::type_error&) {
    fail(ErrorKind::kInvalidArgument, "[chat template] a message is not UTF-8");
  }
}

}  // namespace

bool Tokenizer::has_chat_template() const { return !data_->settings.chat_templates.empty(); }

std::string Tokenizer::apply_chat_template(std::span<const ChatMessage> messages,
                                           bool add_generation_prompt, std::string_view tools_json,
                                           std::string_view variables_json) const {
  const std::string& source = choose_template(data_->settings.chat_templates, !tools_json.empty());
  if (messages.empty())
    fail(ErrorKind::kInvalidArgument, "[chat template] no message: give at least one");
  Json variables = data_->settings.special_tokens;
  if (!variables_json.empty()) {
    variables.update(
        parse_argument("the template's variables", variables_json, Json::value_t::object));
  }
  variables["messages"] = Json::array();
  for (const ChatMessage& message : messages)
    variables["messages"].push_back(message_json(message));
  variables["tools"] = nullptr;
  if (!tools_json.empty())
    variables["tools"] = parse_argument("the list of tools", tools_json, Json::value_t::array);
  if (!variables.contains("documents")) variables["documents"] = nullptr;
  variables["add_generation_prompt"] = add_generation_prompt;
  return text::render_template(source, dump(variables));
}

}  // namespace tranship

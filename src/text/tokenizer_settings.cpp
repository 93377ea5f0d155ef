// Source: transformers tokenization_utils_base.py (_from_pretrained, __init__) and
// tokenization_utils_tokenizers.py
// (__init__), 5.23.
#include "text/tokenizer_settings.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer_class.h"

namespace tranship::text {
namespace {

constexpr std::string_view kConfigFile = "tokenizer_config.json";
constexpr std::string_view kMapFile = "special_tokens_map.json";

[[noreturn]] void fail_type(std::string_view file, std::string_view key, const Json& value,
                            std::string_view expected) {
  fail(ErrorKind::kCorrupt, "[tokenizer] '{}': {} is a JSON {}, expected {}", file, key,
       value.type_name(), expected);
}

// A value that is there and not null.
const Json* find_value(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> find_text(const Json& object, std::string_view key,
                                     std::string_view file) {
  const Json* value = find_value(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail_type(file, key, *value, "a string");
  return value->get<std::string>();
}

bool find_flag(const Json& object, std::string_view key, bool absent, std::string_view file) {
  const Json* value = find_value(object, key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail_type(file, key, *value, "true or false");
  return value->get<bool>();
}

Json read_object(const TokenizerFiles& files, std::string_view name) {
  const std::string_view text = files.text(std::string(name));
  if (text.empty()) return Json::object();
  Json object = parse_json("tokenizer", name, text);
  if (!object.is_object()) fail_type(name, "the file", object, "an object");
  return object;
}

// A token is written as a string, or as an object with its flags.
std::string token_text(const Json& token, std::string_view key, std::string_view file) {
  const Json& content = token.is_object() && token.contains("content") ? token["content"] : token;
  if (!content.is_string())
    fail_type(file, key, token, "a token: a string, or an object with \"content\"");
  return content.get<std::string>();
}

// As tokenizer.json's "added_tokens" has it.
Json added_token(const Json& token, bool special, std::string_view key, std::string_view file) {
  const Json flags = token.is_object() ? token : Json::object();
  special = find_flag(flags, "special", special, file);
  return {{"content", token_text(token, key, file)},
          {"single_word", find_flag(flags, "single_word", false, file)},
          {"lstrip", find_flag(flags, "lstrip", false, file)},
          {"rstrip", find_flag(flags, "rstrip", false, file)},
          {"normalized", find_flag(flags, "normalized", !special, file)},
          {"special", special}};
}

// The special tokens, by key, and the unnamed extra ones.
struct SpecialTokens {
  std::map<std::string, Json> named;
  std::vector<Json> extra;
};

constexpr auto kNamed = std::to_array<std::string_view>(
    {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"});

std::map<std::string, Json> class_defaults(const TokenizerClass& c) {
  const std::array values{c.bos, c.eos, c.unk, c.sep, c.pad, c.cls, c.mask};
  std::map<std::string, Json> defaults;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].empty()) defaults.emplace(kNamed[i], values[i]);
  }
  return defaults;
}

bool is_token(const Json& value) {
  return value.is_string() || (value.is_object() && value.contains("content"));
}

void add_extra(const Json& value, std::string_view key, std::string_view file,
               SpecialTokens& tokens) {
  if (value.is_object()) {
    for (const auto& [name, token] : value.items()) tokens.named[name] = token;
  } else if (value.is_array()) {
    tokens.extra.insert(tokens.extra.end(), value.begin(), value.end());
  } else {
    fail_type(file, key, value, "a list of tokens");
  }
}

// Reads the keys of one file over what is there. A null takes a class's default away.
void read_special_tokens(const Json& object, std::string_view file, SpecialTokens& tokens) {
  for (const auto& [key, value] : object.items()) {
    const bool known = std::ranges::find(kNamed, key) != kNamed.end();
    if (known && value.is_null()) {
      tokens.named.erase(key);
    } else if (known || (key.ends_with("_token") && is_token(value))) {
      token_text(value, key, file);  // its type is right
      tokens.named[key] = value;
    }
  }
  const Json* extra = find_value(object, "extra_special_tokens");
  if (extra != nullptr && !extra->empty()) {
    add_extra(*extra, "extra_special_tokens", file, tokens);
  } else if (const Json* additional = find_value(object, "additional_special_tokens")) {
    add_extra(*additional, "additional_special_tokens", file, tokens);
  }
}

// added_tokens_decoder: {"0": {"content": ...}}, in the order of the ids.
std::vector<Json> listed_tokens(const Json& config) {
  const Json* listed = find_value(config, "added_tokens_decoder");
  if (listed == nullptr) return {};
  if (!listed->is_object()) fail_type(kConfigFile, "added_tokens_decoder", *listed, "an object");
  std::map<std::pair<size_t, std::string>, Json>
      by_id;  // shorter numbers first: the order of the numbers
  for (const auto& [id, token] : listed->items()) {
    by_id[{id.size(), id}] = added_token(token, false, "added_tokens_decoder", kConfigFile);
  }
  std::vector<Json> tokens;
  for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
  return tokens;
}

// Tokens that the vocabulary lacks, or has with other flags.
Json tokens_to_add(const Json& config, const SpecialTokens& special, const Json& description) {
  Json add = listed_tokens(config);
  std::set<std::string> known = description["added_tokens"].get<std::set<std::string>>();
  for (const Json& token : add) known.insert(token["content"].get<std::string>());
  const auto add_unknown = [&](const Json& token, std::string_view key) {
    Json entry = added_token(token, true, key, kConfigFile);
    entry["special"] = true;
    if (known.insert(entry["content"].get<std::string>()).second) add.push_back(std::move(entry));
  };
  for (const std::string_view key : kNamed) {
    if (const auto found = special.named.find(std::string(key)); found != special.named.end()) {
      add_unknown(found->second, key);
    }
  }
  for (const auto& [key, token] : special.named) add_unknown(token, key);
  for (const Json& token : special.extra) add_unknown(token, "extra_special_tokens");
  return add;
}

Side read_side(const Json& object, std::string_view key, Side absent, std::string_view file) {
  const std::optional<std::string> side = find_text(object, key, file);
  if (!side) return absent;
  if (*side == "left" || *side == "Left") return Side::kLeft;
  if (*side == "right" || *side == "Right") return Side::kRight;
  fail(ErrorKind::kCorrupt, "[tokenizer] '{}': {} is '{}', expected left or right", file, key,
       *side);
}

// tokenizer.json's own padding and truncation do not act, but their sides and tokens are defaults.
void read_sides(const Json& config, const Json& description, const TokenizerClass& kind,
                TokenizerSettings& settings) {
  settings.padding_side = kind.padding_side;
  if (const Json& padding = description["padding"]; padding.is_object()) {
    settings.padding_side =
        read_side(padding, "direction", settings.padding_side, "tokenizer.json");
    settings.pad_type_id = padding.value("pad_type_id", int64_t{0});
  }
  if (const Json& truncation = description["truncation"]; truncation.is_object()) {
    settings.truncation_side =
        read_side(truncation, "direction", settings.truncation_side, "tokenizer.json");
  }
  settings.padding_side = read_side(config, "padding_side", settings.padding_side, kConfigFile);
  settings.truncation_side =
      read_side(config, "truncation_side", settings.truncation_side, kConfigFile);
}

std::vector<std::string> read_input_names(const Json& config, const TokenizerClass& kind) {
  const Json* names = find_value(config, "model_input_names");
  if (names == nullptr) {
    if (kind.token_types) return {"input_ids", "token_type_ids", "attention_mask"};
    return {"input_ids", "attention_mask"};
  }
  const bool valid =
      names->is_array() && std::ranges::all_of(*names, [](const Json& n) { return n.is_string(); });
  if (!valid) fail_type(kConfigFile, "model_input_names", *names, "a list of strings");
  return names->get<std::vector<std::string>>();
}

// One template, or a list of named ones.
void read_config_templates(const Json& config, std::string_view file,
                           std::map<std::string, std::string>& templates) {
  const Json* value = find_value(config, "chat_template");
  if (value == nullptr) return;
  if (value->is_string()) {
    templates["default"] = value->get<std::string>();
    return;
  }
  if (!value->is_array()) fail_type(file, "chat_template", *value, "a string or a list");
  for (const Json& entry : *value) {
    if (!entry.is_object())
      fail_type(file, "chat_template", entry, "an object with name and template");
    const auto name = find_text(entry, "name", file);
    const auto source = find_text(entry, "template", file);
    if (!name || !source)
      fail_type(file, "chat_template", entry, "an object with name and template");
    templates[*name] = *source;
  }
}

std::map<std::string, std::string> read_templates(const TokenizerFiles& files, const Json& config) {
  constexpr std::string_view kFolder = "chat_templates/", kSuffix = ".jinja";
  std::map<std::string, std::string> templates;
  for (const auto& [name, text] : files.texts) {
    if (name == "chat_template.jinja") templates["default"] = text;
    if (!name.starts_with(kFolder) || !name.ends_with(kSuffix)) continue;
    templates[name.substr(kFolder.size(), name.size() - kFolder.size() - kSuffix.size())] = text;
  }
  if (templates.empty()) read_config_templates(config, kConfigFile, templates);
  if (templates.empty())
    read_config_templates(read_object(files, "chat_template.json"), "chat_template.json",
                          templates);
  return templates;
}

// Whether a decoder writes a token's text where it stands, whatever comes later.
bool decodes_in_pieces(const Json& decoder) {
  if (decoder.is_null()) return true;
  const std::string type = decoder.value("type", "");
  if (type == "Sequence") return std::ranges::all_of(decoder["decoders"], decodes_in_pieces);
  if (type == "Strip") return decoder.value("stop", 1) == 0;
  if (type == "Replace") {
    const Json* text = find_value(decoder["pattern"], "String");
    return text != nullptr && text->is_string() && text->get<std::string>() == "\xE2\x96\x81";
  }
  constexpr std::array kPlain{"ByteLevel",  "Metaspace", "WordPiece",
                              "BPEDecoder", "Fuse",      "ByteFallback"};
  return std::ranges::find(kPlain, type) != kPlain.end();
}

// A LlamaTokenizer does not take these steps from the file.
void use_class_steps(const TokenizerClass& kind, const Json& config, RustTokenizer& tokenizer) {
  if (kind.name != "LlamaTokenizer") return;
  const bool prefix = find_flag(config, "add_prefix_space", true, kConfigFile);
  const bool legacy = find_flag(config, "legacy", false, kConfigFile);
  tokenizer.use_llama_steps(!prefix ? kPrependNever : legacy ? kPrependAlways : kPrependFirst);
}

SpecialTokens all_special_tokens(const TokenizerFiles& files, const Json& config,
                                 const TokenizerClass& kind) {
  SpecialTokens special{class_defaults(kind), {}};
  read_special_tokens(config, kConfigFile, special);
  // The older file counts only where the newer one does not list its tokens.
  if (!config.contains("added_tokens_decoder"))
    read_special_tokens(read_object(files, kMapFile), kMapFile, special);
  return special;
}

const TokenizerClass& class_of(const TokenizerFiles& files, const Json& config,
                               const Json& model_config) {
  const auto declared = find_text(config, "tokenizer_class", kConfigFile);
  const bool byte_level =
      files.text("tokenizer.json").find("\"ByteLevel\"") != std::string_view::npos;
  return find_tokenizer_class(
      declared ? declared : find_text(model_config, "tokenizer_class", "config.json"),
      find_text(model_config, "model_type", "config.json").value_or(""), byte_level);
}

}  // namespace

std::vector<std::string> model_input_names(const TokenizerFiles& files) {
  const Json config = read_object(files, kConfigFile);
  return read_input_names(config, class_of(files, config, read_object(files, "config.json")));
}

TokenizerSettings apply_settings(const TokenizerFiles& files, RustTokenizer& tokenizer) {
  const Json config = read_object(files, kConfigFile);
  const Json model_config = read_object(files, "config.json");
  const TokenizerClass& kind = class_of(files, config, model_config);
  use_class_steps(kind, config, tokenizer);
  Json description = parse_json("tokenizer", "tokenizer.json", tokenizer.describe());

  TokenizerSettings settings;
  SpecialTokens special = all_special_tokens(files, config, kind);
  if (const Json& padding = description["padding"];
      padding.is_object() && !config.contains("pad_token")) {
    special.named.try_emplace("pad_token", padding["pad_token"]);
  }
  for (const auto& [key, token] : special.named)
    settings.special_tokens[key] = token_text(token, key, kConfigFile);
  if (const Json add = tokens_to_add(config, special, description); !add.empty()) {
    tokenizer.add_tokens(add.dump());
    description = parse_json("tokenizer", "tokenizer.json", tokenizer.describe());
  }
  if (find_flag(config, "split_special_tokens", false, kConfigFile))
    tokenizer.split_special_tokens();

  settings.model_input_names = read_input_names(config, kind);
  read_sides(config, description, kind, settings);
  settings.vocab_size = description["vocab_size"].get<int64_t>();
  const bool always =
      find_flag(config, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
                false, kConfigFile);
  settings.clean_up_spaces =
      find_flag(config, "clean_up_tokenization_spaces", false, kConfigFile) &&
      (description["model"] != "BPE" || always);
  settings.chat_templates = read_templates(files, config);
  settings.decodes_in_pieces = decodes_in_pieces(description["decoder"]);
  settings.byte_fallback =
      description["decoder"].dump().find("\"ByteFallback\"") != std::string::npos;
  return settings;
}

}  // namespace tranship::text

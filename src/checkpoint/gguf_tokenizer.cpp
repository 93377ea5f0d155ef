// The text is written directly: with 150,000 tokens and as many merges, a JSON library would take
// seconds.
#include "checkpoint/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace tranship {
namespace {

// llama.cpp's types of tokens.
constexpr int64_t kControl = 3;
constexpr int64_t kUserDefined = 4;
constexpr int64_t kLastType = 6;

constexpr size_t kMaxTokenBytes =
    1024;  // real ones have up to some hundred; cutting a token is quadratic in it

// Splits, before bytes become letters. All but GPT-2's (which ByteLevel has built in) are spelled
// out. Sources: gguf_tokenizer_mapping.py (5.23) and the models' own tokenizer.json.
constexpr std::string_view kLlama3Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenSplit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

enum class Split { kGpt2, kDigitsThenGpt2, kRegex };

/// What is known of the tokenizer that `tokenizer.ggml.pre` names.
struct PreTokenizer {
  std::string_view name;
  Split split = Split::kGpt2;
  std::string_view regex = {};
  bool nfc = false;            // text is normalized first
  bool ignore_merges = false;  // a whole word in the vocabulary is taken as it is
  bool add_bos = false;        // if the file does not say
};

constexpr std::array<PreTokenizer, 14> kPreTokenizers = {{
    {.name = "default"},
    {.name = "gpt-2"},
    {.name = "phi-2"},
    {.name = "smollm", .split = Split::kDigitsThenGpt2},
    {.name = "starcoder", .split = Split::kDigitsThenGpt2},
    {.name = "refact", .split = Split::kDigitsThenGpt2},
    {.name = "codeshell", .split = Split::kDigitsThenGpt2},
    {.name = "llama-bpe",
     .split = Split::kRegex,
     .regex = kLlama3Split,
     .ignore_merges = true,
     .add_bos = true},
    {.name = "llama3",
     .split = Split::kRegex,
     .regex = kLlama3Split,
     .ignore_merges = true,
     .add_bos = true},
    {.name = "llama-v3",
     .split = Split::kRegex,
     .regex = kLlama3Split,
     .ignore_merges = true,
     .add_bos = true},
    {.name = "falcon3",
     .split = Split::kRegex,
     .regex = kLlama3Split,
     .ignore_merges = true,
     .add_bos = true},
    {.name = "tekken", .split = Split::kRegex, .regex = kTekkenSplit, .ignore_merges = true},
    {.name = "qwen2", .split = Split::kRegex, .regex = kQwen2Split, .nfc = true},
    {.name = "deepseek-r1-qwen", .split = Split::kRegex, .regex = kQwen2Split},
}};

const PreTokenizer& pre_tokenizer(const GgufFile& gguf) {
  const std::string_view name = gguf.find_text("tokenizer.ggml.pre").value_or("default");
  std::vector<std::string> known;
  for (const PreTokenizer& row : kPreTokenizers) {
    if (row.name == name) return row;
    known.emplace_back(row.name);
  }
  fail(ErrorKind::kUnsupported,
       "[gguf] '{}': the tokenizer splits text as '{}' does (tokenizer.ggml.pre), which is not "
       "known here; known are {}. "
       "Put the model's own tokenizer.json beside the export",
       gguf.label(), name, listed(known));
}

/// JSON text that only grows at its end.
class Writer {
 public:
  Writer(const GgufFile& gguf, size_t size_bytes) : gguf_(gguf) { text_.reserve(size_bytes); }

  Writer& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  Writer& number(int64_t value) { return raw(std::to_string(value)); }
  Writer& boolean(bool value) { return raw(value ? "true" : "false"); }
  Writer& string(std::string_view text) {
    text_ += '"';
    for (size_t i = 0; i < text.size();) {
      size_t plain = i;
      while (plain < text.size() && is_plain(text[plain])) ++plain;
      text_.append(text, i, plain - i);
      if ((i = plain) == text.size()) break;
      const size_t size = code_point_bytes(text.substr(i));
      if (size == 0) {
        fail(ErrorKind::kCorrupt, "[gguf] '{}': a token has a byte {:#04x} that is not UTF-8",
             gguf_.label(), static_cast<unsigned char>(text[i]));
      }
      if (size == 1) {
        character(text[i]);
      } else {
        text_ += text.substr(i, size);
      }
      i += size;
    }
    text_ += '"';
    return *this;
  }
  /// What stands between two elements of a list.
  Writer& comma(bool first) { return raw(first ? "" : ","); }

  std::string take() { return std::move(text_); }

 private:
  static bool is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

  void character(char c) {
    if (c == '"' || c == '\\') text_ += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text_ += c;
    }
  }

  const GgufFile& gguf_;
  std::string text_;
};

/// The special tokens that have a name, by id; absent if the file gives none.
struct NamedTokens {
  std::optional<int64_t> bos;
  std::optional<int64_t> eos;
  std::optional<int64_t> unknown;
  std::optional<int64_t> padding;
};

struct Merge {
  std::string_view left;
  std::string_view right;
};

/// What the metadata says, checked. Views into the file.
struct Tokens {
  std::vector<std::string_view> texts;
  NamedTokens named;
  bool byte_level = false;
  bool add_bos = false;
  bool add_eos = false;

  std::optional<std::string_view> text(std::optional<int64_t> id) const {
    if (!id) return std::nullopt;
    return texts[static_cast<size_t>(*id)];
  }
};

struct Vocabulary : Tokens {
  std::vector<int64_t> types;                           // empty if the file gives none
  std::unordered_map<std::string_view, int64_t> id_of;  // of two equal tokens, the last
  std::vector<bool> hidden;                             // by a later token with the same text
};

std::optional<int64_t> token_id(const GgufFile& gguf, std::string_view name, size_t num_tokens) {
  const auto id = gguf.find_integer(fmt::format("tokenizer.ggml.{}_token_id", name));
  if (id && (*id < 0 || static_cast<size_t>(*id) >= num_tokens)) {
    fail(ErrorKind::kCorrupt,
         "[gguf] '{}': metadata 'tokenizer.ggml.{}_token_id' is {}, but there are {} tokens",
         gguf.label(), name, *id, num_tokens);
  }
  return id;
}

void check_length(const GgufFile& gguf, std::string_view key, size_t length, size_t num_tokens) {
  if (length == num_tokens) return;
  fail(ErrorKind::kCorrupt, "[gguf] '{}': metadata '{}' has {} elements for {} tokens",
       gguf.label(), key, length, num_tokens);
}

Tokens read_tokens(const GgufFile& gguf) {
  const std::string_view model = gguf.find_text("tokenizer.ggml.model").value_or("");
  if (model != "gpt2" && model != "llama") {
    fail(ErrorKind::kUnsupported,
         "[gguf] '{}': the tokenizer is of the kind '{}' (tokenizer.ggml.model); 'gpt2' and "
         "'llama' can be read. Put the "
         "model's own tokenizer.json beside the export",
         gguf.label(), model);
  }
  Tokens tokens;
  tokens.byte_level = model == "gpt2";
  tokens.texts = gguf.texts("tokenizer.ggml.tokens");
  const size_t count = tokens.texts.size();
  if (count == 0)
    fail(ErrorKind::kCorrupt, "[gguf] '{}': the tokenizer has no tokens", gguf.label());
  tokens.named = {.bos = token_id(gguf, "bos", count),
                  .eos = token_id(gguf, "eos", count),
                  .unknown = token_id(gguf, "unknown", count),
                  .padding = token_id(gguf, "padding", count)};
  // A "llama" vocabulary that does not say otherwise gets a BOS, as llama.cpp and Transformers have
  // it.
  const bool bos_by_default = tokens.byte_level ? pre_tokenizer(gguf).add_bos : true;
  tokens.add_bos = tokens.named.bos &&
                   gguf.find_boolean("tokenizer.ggml.add_bos_token").value_or(bos_by_default);
  tokens.add_eos =
      tokens.named.eos && gguf.find_boolean("tokenizer.ggml.add_eos_token").value_or(false);
  return tokens;
}

void check_types(const GgufFile& gguf, const std::vector<int64_t>& types) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] >= 0 && types[i] <= kLastType) continue;
    fail(ErrorKind::kCorrupt, "[gguf] '{}': token {} is of the type {}, expected 0 to {}",
         gguf.label(), i, types[i], kLastType);
  }
}

Vocabulary read_vocabulary(const GgufFile& gguf) {
  Vocabulary v{read_tokens(gguf), gguf.integers("tokenizer.ggml.token_type"), {}, {}};
  if (!v.types.empty())
    check_length(gguf, "tokenizer.ggml.token_type", v.types.size(), v.texts.size());
  check_types(gguf, v.types);
  v.hidden.resize(v.texts.size());
  v.id_of.reserve(v.texts.size());
  for (size_t i = 0; i < v.texts.size(); ++i) {
    if (v.texts[i].size() > kMaxTokenBytes) {
      fail(ErrorKind::kCorrupt, "[gguf] '{}': token {} has {} bytes, expected at most {}",
           gguf.label(), i, v.texts[i].size(), kMaxTokenBytes);
    }
    const auto [place, fresh] = v.id_of.try_emplace(v.texts[i], static_cast<int64_t>(i));
    if (fresh) continue;
    v.hidden[static_cast<size_t>(place->second)] = true;
    place->second = static_cast<int64_t>(i);
  }
  return v;
}

// Merges.

std::vector<Merge> given_merges(const GgufFile& gguf, const Vocabulary& v) {
  std::vector<Merge> merges;
  const std::vector<std::string_view> lines = gguf.texts("tokenizer.ggml.merges");
  merges.reserve(lines.size());
  std::string joined;
  for (const std::string_view line : lines) {
    const size_t space = line.find(' ');
    const Merge merge{line.substr(0, space),
                      space == std::string_view::npos ? "" : line.substr(space + 1)};
    joined.assign(merge.left).append(merge.right);
    if (!v.id_of.contains(merge.left) || !v.id_of.contains(merge.right) ||
        !v.id_of.contains(joined)) {
      fail(ErrorKind::kCorrupt, "[gguf] '{}': merge {} ('{}') is not two tokens that make a third",
           gguf.label(), merges.size(), line);
    }
    merges.push_back(merge);
  }
  return merges;
}

struct ScoredMerge {
  Merge merge;
  double score;
  size_t left_length;  // in code points
  size_t right_length;
  int64_t left_id;
  int64_t right_id;
};

/// All ways to cut one token into two others, in order of their ids.
std::vector<ScoredMerge> cuts(const GgufFile& gguf, const Vocabulary& v, std::string_view token,
                              double score) {
  std::vector<ScoredMerge> found;
  size_t num_points = 0;
  for (size_t i = 0; i < token.size(); ++num_points) {
    const size_t size = code_point_bytes(token.substr(i));
    if (size == 0) fail(ErrorKind::kCorrupt, "[gguf] '{}': a token is not UTF-8", gguf.label());
    i += size;
  }
  size_t cut = 0;
  for (size_t point = 1; point < num_points; ++point) {
    cut += code_point_bytes(token.substr(cut));
    const auto left = v.id_of.find(token.substr(0, cut));
    const auto right = v.id_of.find(token.substr(cut));
    if (left == v.id_of.end() || right == v.id_of.end()) continue;
    found.push_back({{token.substr(0, cut), token.substr(cut)},
                     score,
                     point,
                     num_points - point,
                     left->second,
                     right->second});
  }
  std::stable_sort(found.begin(), found.end(), [](const ScoredMerge& a, const ScoredMerge& b) {
    return std::pair(a.left_id, a.right_id) < std::pair(b.left_id, b.right_id);
  });
  return found;
}

/// SentencePiece takes the pair whose result scores best: as BPE that is the merges in order of
/// their results' scores. Source: tokenization_utils_base.py generate_merges (5.23), its order
/// among equals included.
std::vector<Merge> merges_from_scores(const GgufFile& gguf, const Vocabulary& v) {
  const std::vector<double> scores = gguf.numbers("tokenizer.ggml.scores");
  check_length(gguf, "tokenizer.ggml.scores", scores.size(), v.texts.size());
  std::vector<ScoredMerge> all;
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < v.texts.size(); ++i) {
    // Of two equal tokens the first gives the place, the last the score: a Python dict's order.
    if (!seen.insert(v.texts[i]).second) continue;
    const auto last = static_cast<size_t>(v.id_of.at(v.texts[i]));
    if (std::isnan(scores[last])) {
      fail(ErrorKind::kCorrupt, "[gguf] '{}': the score of token {} is not a number", gguf.label(),
           last);
    }
    const std::vector<ScoredMerge> found = cuts(gguf, v, v.texts[i], scores[last]);
    all.insert(all.end(), found.begin(), found.end());
  }
  std::stable_sort(all.begin(), all.end(), [](const ScoredMerge& a, const ScoredMerge& b) {
    return std::tuple(a.score, a.left_length, a.right_length) >
           std::tuple(b.score, b.left_length, b.right_length);
  });
  std::vector<Merge> merges;
  merges.reserve(all.size());
  for (const ScoredMerge& scored : all) merges.push_back(scored.merge);
  return merges;
}

// The parts of tokenizer.json.

void write_added_tokens(Writer& out, const Vocabulary& v) {
  const NamedTokens& named = v.named;
  bool first = true;
  out.raw(R"("added_tokens":[)");
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    const int64_t type = v.types.empty() ? 0 : v.types[i];
    const bool special = type == kControl || named.bos == id || named.eos == id ||
                         named.unknown == id || named.padding == id;
    if ((!special && type != kUserDefined) || v.texts[i].empty() || v.hidden[i]) continue;
    out.comma(first).raw("\n").raw(R"({"id":)").number(id).raw(R"(,"content":)").string(v.texts[i]);
    out.raw(R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":)");
    out.boolean(special).raw("}");
    first = false;
  }
  out.raw("],\n");
}

void write_pre_tokenizer(Writer& out, const PreTokenizer& pre) {
  const auto byte_level = [&out](bool use_regex) {
    out.raw(R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)")
        .boolean(use_regex);
    out.raw("}");
  };
  out.raw(R"("normalizer":)").raw(pre.nfc ? R"({"type":"NFC"})" : "null").raw(",\n");
  out.raw(R"("pre_tokenizer":)");
  if (pre.split == Split::kGpt2) {
    byte_level(true);
  } else if (pre.split == Split::kDigitsThenGpt2) {
    out.raw(R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)");
    byte_level(true);
    out.raw("]}");
  } else {
    out.raw(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)")
        .string(pre.regex);
    out.raw(R"(},"behavior":"Isolated","invert":false},)");
    byte_level(false);
    out.raw("]}");
  }
  out.raw(",\n");
}

void write_metaspace(Writer& out, bool add_prefix_space) {
  out.raw(R"("normalizer":null,)").raw("\n");
  out.raw(R"("pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":")");
  out.raw(add_prefix_space ? "first" : "never").raw(R"(","split":false},)").raw("\n");
}

void write_template(Writer& out, const Tokens& v) {
  const auto special = [&](int64_t id, std::string_view type_id) {
    out.raw(R"({"SpecialToken":{"id":)")
        .string(*v.text(id))
        .raw(R"(,"type_id":)")
        .raw(type_id)
        .raw("}}");
  };
  const auto sequence = [&](std::string_view name, std::string_view type_id) {
    if (v.add_bos) special(*v.named.bos, type_id), out.raw(",");
    out.raw(R"({"Sequence":{"id":")").raw(name).raw(R"(","type_id":)").raw(type_id).raw("}}");
    if (v.add_eos) out.raw(","), special(*v.named.eos, type_id);
  };
  const auto used = [&](int64_t id) {
    out.string(*v.text(id))
        .raw(R"(:{"id":)")
        .string(*v.text(id))
        .raw(R"(,"ids":[)")
        .number(id)
        .raw(R"(],"tokens":[)");
    out.string(*v.text(id)).raw("]}");
  };
  out.raw(R"("post_processor":{"type":"TemplateProcessing","single":[)");
  sequence("A", "0");
  out.raw(R"(],"pair":[)");
  sequence("A", "0");
  out.raw(",");
  sequence("B", "1");
  out.raw(R"(],"special_tokens":{)");
  if (v.add_bos) used(*v.named.bos);
  if (v.add_eos && !(v.add_bos && v.named.bos == v.named.eos))
    out.comma(!v.add_bos), used(*v.named.eos);
  out.raw("}},\n");
}

void write_decoder(Writer& out, bool byte_level, bool add_prefix_space) {
  if (byte_level) {
    out.raw(
        R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)");
  } else {
    out.raw(
        R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},)");
    out.raw(R"({"type":"ByteFallback"},{"type":"Fuse"})");
    if (add_prefix_space) out.raw(R"(,{"type":"Strip","content":" ","start":1,"stop":0})");
    out.raw("]},");
  }
  out.raw("\n");
}

void write_model(Writer& out, const Vocabulary& v, const std::vector<Merge>& merges,
                 bool ignore_merges) {
  out.raw(R"("model":{"type":"BPE","dropout":null,"unk_token":null,)");
  out.raw(R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":)")
      .boolean(!v.byte_level);
  out.raw(R"(,"byte_fallback":)")
      .boolean(!v.byte_level)
      .raw(R"(,"ignore_merges":)")
      .boolean(ignore_merges);
  out.raw(",\n").raw(R"("vocab":{)");
  bool first = true;
  for (size_t i = 0; i < v.texts.size(); ++i) {
    if (v.hidden[i]) continue;
    out.comma(first).raw("\n").string(v.texts[i]).raw(":").number(static_cast<int64_t>(i));
    first = false;
  }
  out.raw("},\n").raw(R"("merges":[)");
  for (size_t i = 0; i < merges.size(); ++i) {
    out.comma(i == 0).raw("\n[").string(merges[i].left).raw(",").string(merges[i].right).raw("]");
  }
  out.raw("]}");
}

}  // namespace

bool has_tokenizer(const GgufFile& gguf) { return gguf.has("tokenizer.ggml.model"); }

std::string gguf_tokenizer_json(const GgufFile& gguf) {
  const Vocabulary v = read_vocabulary(gguf);
  const bool scored = !v.byte_level && !gguf.has("tokenizer.ggml.merges");
  const std::vector<Merge> merges = scored ? merges_from_scores(gguf, v) : given_merges(gguf, v);
  const bool add_prefix_space = gguf.find_boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  Writer out(gguf, 40 * (v.texts.size() + merges.size()));
  out.raw("{\n").raw(R"("version":"1.0","truncation":null,"padding":null,)").raw("\n");
  write_added_tokens(out, v);
  if (v.byte_level) {
    write_pre_tokenizer(out, pre_tokenizer(gguf));
  } else {
    write_metaspace(out, add_prefix_space);
  }
  write_template(out, v);
  write_decoder(out, v.byte_level, add_prefix_space);
  write_model(out, v, merges, v.byte_level && pre_tokenizer(gguf).ignore_merges);
  out.raw("\n}\n");
  return out.take();
}

std::string gguf_tokenizer_config_json(const GgufFile& gguf) {
  const Tokens tokens = read_tokens(gguf);
  const auto architecture = gguf.find_text("general.architecture").value_or("");
  Json config = {
      {"add_bos_token", tokens.add_bos},
      {"add_eos_token", tokens.add_eos},
      {"clean_up_tokenization_spaces", false},
      {"model_input_names", {"input_ids", "attention_mask"}},
      {"padding_side", "left"},
      {"tokenizer_class", "PreTrainedTokenizerFast"},
  };
  const auto set = [&](std::string_view key, std::optional<std::string_view> text) {
    if (text) config[std::string(key)] = std::string(*text);
  };
  set("bos_token", tokens.text(tokens.named.bos));
  set("eos_token", tokens.text(tokens.named.eos));
  set("unk_token", tokens.text(tokens.named.unknown));
  set("pad_token", tokens.text(tokens.named.padding));
  set("chat_template", gguf.find_text("tokenizer.chat_template"));
  if (const auto length = gguf.find_integer(fmt::format("{}.context_length", architecture))) {
    config["model_max_length"] = *length;
  }
  return to_python_json(config, true);
}

}  // namespace tranship

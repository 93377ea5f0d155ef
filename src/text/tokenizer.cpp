#include "tranship/tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "text/tokenizer_data.h"
#include "text/tokenizer_files.h"

namespace tranship {
namespace {

std::shared_ptr<const TokenizerData> make_data(const text::TokenizerFiles& files) {
  try {
    text::RustTokenizer rust("tokenizer.json", files.text("tokenizer.json"));
    text::TokenizerSettings settings = text::apply_settings(files, rust);
    return std::make_shared<TokenizerData>(std::move(rust), std::move(settings));
  } catch (const Error& error) {
    fail(error.kind(), "{} (of {})", error.what(), files.where);
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  while (at != std::string::npos) {
    text.replace(at, from.size(), to);
    at = text.find(from, at + to.size());
  }
}

text::EncodeOptions row_options(const BatchOptions& options,
                                const text::TokenizerSettings& settings) {
  text::EncodeOptions row{.add_special_tokens = options.add_special_tokens};
  row.truncate_left = settings.truncation_side == Side::kLeft;
  if (options.max_length_tokens) {
    if (*options.max_length_tokens < 0) {
      fail(ErrorKind::kInvalidArgument, "[tokenizer] max_length_tokens is {}, expected 0 or more",
           *options.max_length_tokens);
    }
    row.max_length_tokens = static_cast<size_t>(*options.max_length_tokens);
  }
  return row;
}

// What stands at the places of a row that has no token.
struct Padding {
  Side side;
  int64_t id;
  int64_t type_id;
};

void append_row(const text::EncodedText& row, const Padding& padding, Encoding& batch) {
  const size_t num_padded = static_cast<size_t>(batch.num_columns) - row.ids.size();
  const auto append = [&](std::vector<int64_t>& out, const std::vector<int64_t>& values,
                          int64_t pad) {
    if (padding.side == Side::kLeft) out.insert(out.end(), num_padded, pad);
    out.insert(out.end(), values.begin(), values.end());
    if (padding.side == Side::kRight) out.insert(out.end(), num_padded, pad);
  };
  append(batch.ids, row.ids, padding.id);
  append(batch.type_ids, row.type_ids, padding.type_id);
  append(batch.attention_mask, std::vector<int64_t>(row.ids.size(), 1), 0);
}

}  // namespace

namespace text {

std::string clean_up(std::string text) {
  constexpr auto kPairs =
      std::to_array<std::pair<std::string_view, std::string_view>>({{" .", "."},
                                                                    {" ?", "?"},
                                                                    {" !", "!"},
                                                                    {" ,", ","},
                                                                    {" ' ", "'"},
                                                                    {" n't", "n't"},
                                                                    {" 'm", "'m"},
                                                                    {" 's", "'s"},
                                                                    {" 've", "'ve"},
                                                                    {" 're", "'re"}});
  for (const auto& [from, to] : kPairs) replace_all(text, from, to);
  return text;
}

uint32_t checked_id(int64_t id) {
  if (id < 0 || id > std::numeric_limits<uint32_t>::max()) {
    fail(ErrorKind::kInvalidArgument, "[tokenizer] {} is not a token id: expected 0 to {}", id,
         std::numeric_limits<uint32_t>::max());
  }
  return static_cast<uint32_t>(id);
}

}  // namespace text

std::string TokenizerData::decode_raw(std::span<const int64_t> ids,
                                      bool skip_special_tokens) const {
  std::vector<uint32_t> narrow(ids.size());
  std::ranges::transform(ids, narrow.begin(), text::checked_id);
  return rust.decode(narrow, skip_special_tokens);
}

Tokenizer Tokenizer::open(const std::filesystem::path& directory) {
  return Tokenizer(make_data(text::read_tokenizer_files(directory)));
}

Tokenizer Tokenizer::from_json(std::string_view tokenizer_json,
                               std::string_view tokenizer_config_json) {
  text::TokenizerFiles files{"JSON text", {{"tokenizer.json", std::string(tokenizer_json)}}};
  if (!tokenizer_config_json.empty())
    files.texts.emplace("tokenizer_config.json", tokenizer_config_json);
  return Tokenizer(make_data(files));
}

Tokenizer Tokenizer::of(const Checkpoint& checkpoint) {
  return Tokenizer(make_data(text::tokenizer_files_of(checkpoint)));
}

std::vector<int64_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return data_->rust.encode(text, {.add_special_tokens = add_special_tokens}).ids;
}

Encoding Tokenizer::encode_batch(std::span<const std::string> texts,
                                 const BatchOptions& options) const {
  const text::EncodeOptions row_settings = row_options(options, data_->settings);
  std::vector<text::EncodedText> rows;
  size_t longest = 0, shortest = SIZE_MAX;
  for (const std::string& text : texts) {
    rows.push_back(data_->rust.encode(text, row_settings));
    longest = std::max(longest, rows.back().ids.size());
    shortest = std::min(shortest, rows.back().ids.size());
  }
  const std::optional<int64_t> pad_id = options.pad_id ? options.pad_id : pad_token_id();
  if (!pad_id && !texts.empty() && shortest != longest) {
    fail(ErrorKind::kInvalidArgument,
         "[tokenizer] the texts of a batch have {} to {} tokens, and the tokenizer has no pad "
         "token: set "
         "BatchOptions::pad_id (the end-of-sequence id will do where a mask is used)",
         shortest, longest);
  }
  const Padding padding{options.padding_side.value_or(padding_side()), pad_id.value_or(0),
                        data_->settings.pad_type_id};
  Encoding batch{static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest), {}, {}, {}};
  for (const text::EncodedText& row : rows) append_row(row, padding, batch);
  return batch;
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special_tokens) const {
  std::string text = data_->decode_raw(ids, skip_special_tokens);
  return data_->settings.clean_up_spaces ? text::clean_up(std::move(text)) : text;
}

std::optional<int64_t> Tokenizer::token_to_id(std::string_view token) const {
  return data_->rust.token_to_id(token);
}

std::optional<std::string> Tokenizer::id_to_token(int64_t id) const {
  const std::optional<text::Token> token = data_->rust.id_to_token(text::checked_id(id));
  if (!token) return std::nullopt;
  return token->text;
}

int64_t Tokenizer::vocab_size() const { return data_->settings.vocab_size; }

const std::vector<std::string>& Tokenizer::model_input_names() const {
  return data_->settings.model_input_names;
}

Side Tokenizer::padding_side() const { return data_->settings.padding_side; }

std::optional<std::string> Tokenizer::special_token(std::string_view key) const {
  const auto found = data_->settings.special_tokens.find(std::string(key));
  if (found == data_->settings.special_tokens.end()) return std::nullopt;
  return found->second;
}

std::optional<int64_t> Tokenizer::special_token_id(std::string_view key) const {
  const std::optional<std::string> token = special_token(key);
  return token ? token_to_id(*token) : std::nullopt;
}

}  // namespace tranship

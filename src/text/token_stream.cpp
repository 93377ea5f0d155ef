// Text from ids as they come, without decoding everything again at each step.
//
// A window of the last ids is decoded: some context whose text is already out, and the new ids. The
// context is there because decoders treat the first token of a text differently (a leading space
// goes). Text is held back while later ids may still change it: a character of which only some
// bytes have come, and spaces before punctuation where the tokenizer cleans these up. A decoder
// that rewrites whole texts is not followed: all its text comes at the end.
#include <algorithm>

#include "text/tokenizer_data.h"
#include "tranship/tokenizer.h"

namespace tranship {
namespace {

constexpr std::string_view kReplacement =
    "\xEF\xBF\xBD";  // U+FFFD: bytes that are not (yet) a character

// The length of a text without replacement characters at its end.
size_t whole_characters(std::string_view text) {
  while (text.ends_with(kReplacement)) text.remove_suffix(kReplacement.size());
  return text.size();
}

// "<0xE2>": one byte, written out.
bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with(">");
}

// The clean-up takes a space away by looking at no more than three bytes after it, none of them a
// space (and one more space): after four bytes without a space, what comes does not change what
// was.
size_t beyond_clean_up(std::string_view text) {
  constexpr size_t kRun = 4;
  for (size_t end = text.size(); end >= kRun; --end) {
    const bool at_character =
        end == text.size() || (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (at_character && text.substr(end - kRun, kRun).find(' ') == std::string_view::npos)
      return end;
  }
  return 0;
}

}  // namespace

TokenStream::TokenStream(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string TokenStream::push(int64_t id) {
  const TokenizerData& data = tokenizer_.data();
  const std::optional<text::Token> token = data.rust.id_to_token(text::checked_id(id));
  if (!token || (skip_special_tokens_ && token->special)) return {};  // as decode() leaves them out
  window_.push_back(id);
  if (!data.settings.decodes_in_pieces) return {};
  if (data.settings.byte_fallback && is_byte_token(token->text))
    return {};  // bytes are read as one run
  const std::string text = data.decode_raw(window_, skip_special_tokens_);
  const size_t start = std::min(emitted_, text.size());
  const size_t whole = std::max(whole_characters(text), start);
  const std::string fresh = text.substr(start, whole - start);
  emitted_ = whole;
  if (whole == text.size()) advance(text);
  return settle(fresh, false);
}

// All of `text`, the window's, is out: the new ids become the context, if they say the same without
// the old one.
void TokenStream::advance(const std::string& text) {
  const std::vector<int64_t> shorter(window_.begin() + static_cast<std::ptrdiff_t>(context_),
                                     window_.end());
  context_ = window_.size();
  if (shorter.size() == window_.size()) return;
  const std::string tail = tokenizer_.data().decode_raw(shorter, skip_special_tokens_);
  if (tail.empty() || !text.ends_with(tail)) return;
  window_ = shorter;
  context_ = shorter.size();
  emitted_ = tail.size();
}

// Cleans up what is certain not to change; keeps the rest.
std::string TokenStream::settle(std::string_view text, bool last) {
  if (!tokenizer_.data().settings.clean_up_spaces) return std::string(text);
  held_ += text;
  const size_t certain = last ? held_.size() : beyond_clean_up(held_);
  std::string cleaned = text::clean_up(held_.substr(0, certain));
  held_.erase(0, certain);
  return cleaned;
}

std::string TokenStream::flush() {
  const std::string text = tokenizer_.data().decode_raw(window_, skip_special_tokens_);
  const std::string rest =
      settle(std::string_view(text).substr(std::min(emitted_, text.size())), true);
  window_.clear();
  context_ = 0;
  emitted_ = 0;
  return rest;
}

}  // namespace tranship

#include "generation/stop_text.h"

#include <algorithm>
#include <utility>

#include "text/tokenizer_data.h"

namespace tranship::generation {
namespace {

/// The text of the last ids: enough of them for the longest stop string, since a token has a byte
/// or more.
std::string end_of(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings,
                   std::span<const int64_t> ids) {
  size_t longest = 0;
  for (const std::string& stop : stop_strings) longest = std::max(longest, stop.size());
  return tokenizer.decode(ids.last(std::min(ids.size(), longest)), false);
}

}  // namespace

StopText::StopText(std::vector<std::string> stop_strings, std::string_view before)
    : stop_strings_(std::move(stop_strings)) {
  for (const std::string& stop : stop_strings_) longest_ = std::max(longest_, stop.size());
  held_ = before;
  shown_.assign(held_.size(), false);
  release(held_from());
}

std::string StopText::push(std::string_view piece, bool shown) {
  if (stopped_) return {};
  held_ += piece;
  shown_.resize(held_.size(), shown);
  const std::optional<size_t> stop = find_stop(held_, piece.size());
  if (!stop) return release(held_from());
  stopped_ = true;
  std::string text = release(*stop);
  held_.clear();
  shown_.clear();
  return text;
}

bool StopText::completes(std::string_view piece) const {
  return !stopped_ && find_stop(held_ + std::string(piece), piece.size()).has_value();
}

std::string StopText::flush() { return release(held_.size()); }

std::optional<size_t> StopText::find_stop(std::string_view text, size_t fresh) const {
  const size_t old = text.size() - fresh;
  std::optional<size_t> first;
  for (const std::string& stop : stop_strings_) {
    const size_t found = text.find(stop, old + 1 > stop.size() ? old + 1 - stop.size() : 0);
    if (found != std::string_view::npos && (!first || found < *first)) first = found;
  }
  return first;
}

size_t StopText::held_from() const {
  size_t start = held_.size() - std::min(held_.size(), longest_);
  for (; start < held_.size(); ++start) {
    const std::string_view rest = std::string_view(held_).substr(start);
    if (std::ranges::any_of(stop_strings_,
                            [&](const std::string& stop) { return stop.starts_with(rest); }))
      break;
  }
  return start;
}

std::string StopText::release(size_t end) {
  std::string text;
  for (size_t i = 0; i < end; ++i) {
    if (shown_[i]) text += held_[i];
  }
  held_.erase(0, end);
  shown_.erase(shown_.begin(), shown_.begin() + static_cast<std::ptrdiff_t>(end));
  return text;
}

SequenceText::SequenceText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
                           std::span<const int64_t> prompt_ids)
    : tokenizer_(tokenizer),
      stream_(tokenizer),
      stop_(stop_strings, end_of(tokenizer, stop_strings, prompt_ids)) {}

std::string SequenceText::push(int64_t id) {
  const std::string text = stream_.push(id);
  const TokenizerData& data = tokenizer_.data();
  const std::optional<text::Token> token = data.rust.id_to_token(text::checked_id(id));
  if (token && token->special) return stop_.push(token->text, false);
  if (!text.empty()) {
    waiting_.clear();
    return stop_.push(text, true);
  }
  // A run of byte tokens ("<0x0A>") is not certain before its end, but a stop string may be in it.
  waiting_.push_back(id);
  const std::string early = data.decode_raw(waiting_, false);
  return stop_.completes(early) ? stop_.push(early, true) : std::string();
}

std::string SequenceText::flush() {
  std::string text = stop_.push(stream_.flush(), true);
  if (!stop_.stopped()) text += stop_.flush();
  return text;
}

}  // namespace tranship::generation

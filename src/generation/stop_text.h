// Finds stop strings in a text that comes in pieces, and lets out what cannot be part of one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tranship/tokenizer.h"

namespace tranship::generation {

/// The text of one sequence. Stop strings are looked for in all text, that of special tokens and
/// the end of the prompt included, as Transformers does; only what is to be shown comes out.
class StopText {
 public:
  /// `before`: the end of the text before the first piece, where a stop string may begin.
  StopText(std::vector<std::string> stop_strings, std::string_view before);

  /// Takes the next piece; returns the text to show that can no longer be part of a stop string. If
  /// the piece completes one, that is what stands before it, and stopped() is true from then on:
  /// later pieces give nothing.
  std::string push(std::string_view piece, bool shown);
  /// Whether the piece would complete a stop string.
  bool completes(std::string_view piece) const;
  /// What was held back.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  /// Where the first stop string begins that ends in the last `fresh` bytes of the text.
  std::optional<size_t> find_stop(std::string_view text, size_t fresh) const;
  /// Where the text begins that may still become a stop string.
  size_t held_from() const;
  /// Lets go of the first `end` bytes; returns those to show.
  std::string release(size_t end);

  std::vector<std::string> stop_strings_;
  size_t longest_ = 0;
  std::string held_;
  std::vector<bool> shown_;  // for each byte held
  bool stopped_ = false;
};

/// The text of a sequence from its ids, up to a stop string. A stop string ends the sequence with
/// the token that completes it, as in Transformers; where the tokenizer cleans up spaces
/// (WordPiece), it may be a few tokens later.
class SequenceText {
 public:
  SequenceText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
               std::span<const int64_t> prompt_ids);

  /// Takes the next id; returns the text that is certain.
  std::string push(int64_t id);
  /// The rest, at the end.
  std::string flush();
  bool stopped() const { return stop_.stopped(); }

 private:
  Tokenizer tokenizer_;
  TokenStream stream_;
  StopText stop_;
  std::vector<int64_t> waiting_;  // ids whose text the stream still holds
};

}  // namespace tranship::generation

// What is known of sizes: between which numbers they lie.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/dim.h"

namespace tranship::pt2 {

/// Both ends included; nothing: no bound is known.
struct Interval {
  std::optional<int64_t> min;
  std::optional<int64_t> max;
};

class Bounds {
 public:
  /// A symbol that is not set is a size: 0 or more.
  void set(const std::string& symbol, Interval interval) { symbols_[symbol] = interval; }
  Interval of(const ir::Dim& dim) const;
  /// Whether a <= b whatever the symbols are.
  bool is_known_le(const ir::Dim& a, const ir::Dim& b) const;

  /// An index as Python's slices take it, counted from the end if negative, at most `size`. Only
  /// what is not known appears as min and max.
  ir::Dim clamp(const ir::Dim& index, const ir::Dim& size) const;
  /// min(a, b), without min if the smaller one is known; max likewise.
  ir::Dim smaller(const ir::Dim& a, const ir::Dim& b) const;
  ir::Dim larger(const ir::Dim& a, const ir::Dim& b) const;

 private:
  Interval of(const ir::Dim::Factor& factor) const;
  std::map<std::string, Interval> symbols_;
};

}  // namespace tranship::pt2

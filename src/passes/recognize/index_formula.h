// What a tensor of indices or of truth holds at a place, as a formula over the place's coordinates:
// with it a mask that was computed is read as the rule that it follows.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace tranship::passes {

/// constant + sum of coefficients[i] * coordinate i, of the place that is asked for.
struct Linear {
  ir::Dim constant;
  std::vector<ir::Dim> coefficients;

  static Linear number(ir::Dim constant, size_t coordinates);
  static Linear coordinate(size_t which, size_t coordinates);
  bool is_number() const;
  friend bool operator==(const Linear&, const Linear&) = default;
};
Linear operator+(const Linear& a, const Linear& b);
Linear operator-(const Linear& a, const Linear& b);

using Place = std::vector<Linear>;

/// The place in an operand that was broadcast to the shape of a result: axes counted from the back,
/// those of size 1 at 0.
Place in_operand(const ir::Value& operand, const Place& place);
/// Another tensor that holds, at another place, what `v` holds at this one.
struct Elsewhere {
  ir::Value v;
  Place place;
};
/// Through an op that moves elements, and no more.
std::optional<Elsewhere> moved_from(const ir::Value& v, const Place& place);

/// `value` <= 0.
struct AtMostZero {
  Linear value;
};
/// The bool tensor `flags`, of any rank, at `place`.
struct Flag {
  ir::Value flags;
  Place place;
};
/// All of them hold. Empty: true.
using Conditions = std::vector<std::variant<AtMostZero, Flag>>;

/// An integer tensor at a place: what it holds there; nothing if that is no such formula.
std::optional<Linear> number_at(const ir::Value& v, Place place);
/// A bool tensor at a place: when it is true. What is not understood is a Flag. Nothing if it can
/// be false everywhere, or needs an "or".
std::optional<Conditions> conditions_at(const ir::Value& v, Place place);

}  // namespace tranship::passes

#include "passes/recognize/index_formula.h"

#include <algorithm>

#include "passes/match.h"

namespace tranship::passes {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::Dim;
using ir::OpKind;
using ir::Value;
using match::op_of;
using match::operand;

size_t coordinates_of(const Place& place) {
  return place.empty() ? 0 : place[0].coefficients.size();
}

std::vector<bool> marked(const std::vector<int64_t>& axes, const Value& v) {
  std::vector<bool> is(static_cast<size_t>(v.rank()), false);
  for (const int64_t axis : axes) is[static_cast<size_t>(match::axis_of(axis, v))] = true;
  return is;
}

Place without(const Place& place, const std::vector<bool>& dropped) {
  Place out;
  for (size_t i = 0; i < place.size(); ++i) {
    if (!dropped[i]) out.push_back(place[i]);
  }
  return out;
}

Place with_zeros(const Place& place, const std::vector<bool>& added, size_t coordinates) {
  Place out;
  size_t next = 0;
  for (const bool zero : added)
    out.push_back(zero ? Linear::number(0, coordinates) : place[next++]);
  return out;
}

/// A reshape that only adds or drops axes of size 1.
std::optional<Place> through_ones(const ir::Shape& from, const ir::Shape& to, const Place& place,
                                  size_t coordinates) {
  Place kept, out;
  std::vector<Dim> sizes;
  for (int64_t i = 0; i < from.rank(); ++i) {
    if (from[i] == Dim(1)) continue;
    kept.push_back(place[static_cast<size_t>(i)]);
    sizes.push_back(from[i]);
  }
  size_t next = 0;
  for (int64_t i = 0; i < to.rank(); ++i) {
    if (to[i] == Dim(1)) {
      out.push_back(Linear::number(0, coordinates));
    } else {
      if (next == sizes.size() || !(sizes[next] == to[i])) return std::nullopt;
      out.push_back(kept[next++]);
    }
  }
  if (next != sizes.size()) return std::nullopt;
  return out;
}

std::optional<Elsewhere> through_gather(const Value& v, const Place& place) {
  const Value data = operand(v, 0), indices = operand(v, 1);
  const auto axis = static_cast<size_t>(match::axis_of(op_of<ir::Gather>(v)->axis, data));
  const auto width = static_cast<size_t>(indices.rank());
  const auto begin = place.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto index = number_at(indices, Place(begin, begin + static_cast<std::ptrdiff_t>(width)));
  if (!index) return std::nullopt;
  Place out(place.begin(), begin);
  out.push_back(*index);
  out.insert(out.end(), begin + static_cast<std::ptrdiff_t>(width), place.end());
  return Elsewhere{data, out};
}

/// data at the place that the last axis of the indices names.
std::optional<Elsewhere> through_gather_nd(const Value& v, const Place& place, size_t coordinates) {
  const Value data = operand(v, 0), indices = operand(v, 1);
  const Dim& named = indices.shape().back();
  if (op_of<ir::GatherNd>(v)->batch_dims != 0 || !named.is_static()) return std::nullopt;
  const auto end_of_index = place.begin() + static_cast<std::ptrdiff_t>(indices.rank() - 1);
  Place out;
  for (int64_t i = 0; i < named.value(); ++i) {
    Place at(place.begin(), end_of_index);
    at.push_back(Linear::number(i, coordinates));
    const auto index = number_at(indices, at);
    if (!index) return std::nullopt;
    out.push_back(*index);
  }
  out.insert(out.end(), end_of_index, place.end());
  return Elsewhere{data, out};
}

/// The part of a Concat in which a known place of its axis lies.
std::optional<Elsewhere> in_part(const Value& v, const Place& place) {
  const auto axis = match::axis_of(op_of<ir::Concat>(v)->axis, v);
  const Linear& index = place[static_cast<size_t>(axis)];
  if (!index.is_number() || !index.constant.is_static()) return std::nullopt;
  int64_t rest = index.constant.value();
  for (size_t i = 0; i < match::producer(v).inputs.size(); ++i) {
    const Value part = operand(v, i);
    if (!part.shape()[axis].is_static()) return std::nullopt;
    if (rest < part.shape()[axis].value()) {
      Place out = place;
      out[static_cast<size_t>(axis)].constant = rest;
      return Elsewhere{part, out};
    }
    rest -= part.shape()[axis].value();
  }
  return std::nullopt;
}

}  // namespace

Place in_operand(const Value& operand, const Place& place) {
  const size_t rank = static_cast<size_t>(operand.rank()), skipped = place.size() - rank;
  Place out(place.begin() + static_cast<std::ptrdiff_t>(skipped), place.end());
  for (size_t i = 0; i < rank; ++i) {
    if (operand.shape()[static_cast<int64_t>(i)] == Dim(1))
      out[i] = Linear::number(0, out[i].coefficients.size());
  }
  return out;
}

std::optional<Elsewhere> moved_from(const Value& v, const Place& place) {
  const size_t coordinates = coordinates_of(place);
  const Value x = match::producer(v).inputs.empty() ? Value() : operand(v, 0);
  switch (match::producer(v).kind()) {
    case OpKind::kUnsqueeze:
      return Elsewhere{x, without(place, marked(op_of<ir::Unsqueeze>(v)->axes, v))};
    case OpKind::kSqueeze:
      return Elsewhere{x, with_zeros(place, marked(op_of<ir::Squeeze>(v)->axes, x), coordinates)};
    case OpKind::kExpand:
      return Elsewhere{x, in_operand(x, place)};
    case OpKind::kReshape: {
      const auto out = through_ones(v.shape(), x.shape(), place, coordinates);
      if (!out) return std::nullopt;
      return Elsewhere{x, *out};
    }
    case OpKind::kTranspose: {
      const auto& perm = op_of<ir::Transpose>(v)->perm;
      Place out(place.size());
      for (size_t i = 0; i < perm.size(); ++i) out[static_cast<size_t>(perm[i])] = place[i];
      return Elsewhere{x, out};
    }
    case OpKind::kSlice: {
      const auto* slice = op_of<ir::Slice>(v);
      if (slice->step != 1) return std::nullopt;
      Place out = place;
      Linear& index = out[static_cast<size_t>(match::axis_of(slice->axis, x))];
      index = index + Linear::number(slice->begin, coordinates);
      return Elsewhere{x, out};
    }
    case OpKind::kGather:
      return through_gather(v, place);
    case OpKind::kGatherNd:
      return through_gather_nd(v, place, coordinates);
    case OpKind::kConcat:
      return in_part(v, place);
    default:
      return std::nullopt;
  }
}

namespace {

std::optional<Linear> number_of_binary(const Value& v, const Place& place, size_t coordinates) {
  const Value a = operand(v, 0), b = operand(v, 1);
  auto left = number_at(a, in_operand(a, place)), right = number_at(b, in_operand(b, place));
  if (!left || !right) return std::nullopt;
  left->coefficients.resize(coordinates);
  right->coefficients.resize(coordinates);
  switch (op_of<ir::Binary>(v)->fn) {
    case BinaryKind::kAdd:
      return *left + *right;
    case BinaryKind::kSub:
      return *left - *right;
    default:
      return std::nullopt;
  }
}

std::optional<Conditions> comparison(const Value& v, const Place& place) {
  const Value a = operand(v, 0), b = operand(v, 1);
  const auto left = number_at(a, in_operand(a, place)), right = number_at(b, in_operand(b, place));
  if (!left || !right) return std::nullopt;
  const Linear one = Linear::number(1, coordinates_of(place));
  switch (op_of<ir::Compare>(v)->fn) {
    case CompareKind::kLessEqual:
      return Conditions{AtMostZero{*left - *right}};
    case CompareKind::kLess:
      return Conditions{AtMostZero{*left - *right + one}};
    case CompareKind::kGreaterEqual:
      return Conditions{AtMostZero{*right - *left}};
    case CompareKind::kGreater:
      return Conditions{AtMostZero{*right - *left + one}};
    default:
      return std::nullopt;
  }
}

bool is_all_true(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.at(i) == 0) return false;
  }
  return true;
}

/// a and b: the conditions of both.
std::optional<Conditions> both(const Value& v, const Place& place) {
  const Value a = operand(v, 0), b = operand(v, 1);
  auto left = conditions_at(a, in_operand(a, place));
  const auto right = conditions_at(b, in_operand(b, place));
  if (!left || !right) return std::nullopt;
  left->insert(left->end(), right->begin(), right->end());
  return left;
}

}  // namespace

Linear Linear::number(Dim constant, size_t coordinates) {
  return {std::move(constant), std::vector<Dim>(coordinates, 0)};
}

Linear Linear::coordinate(size_t which, size_t coordinates) {
  Linear out = number(0, coordinates);
  out.coefficients[which] = 1;
  return out;
}

bool Linear::is_number() const {
  return std::all_of(coefficients.begin(), coefficients.end(),
                     [](const Dim& c) { return c == Dim(0); });
}

Linear operator+(const Linear& a, const Linear& b) {
  Linear out = a.coefficients.size() < b.coefficients.size() ? b : a;
  const Linear& other = a.coefficients.size() < b.coefficients.size() ? a : b;
  out.constant = out.constant + other.constant;
  for (size_t i = 0; i < other.coefficients.size(); ++i)
    out.coefficients[i] = out.coefficients[i] + other.coefficients[i];
  return out;
}

Linear operator-(const Linear& a, const Linear& b) {
  Linear negative = b;
  negative.constant = Dim(0) - b.constant;
  for (Dim& c : negative.coefficients) c = Dim(0) - c;
  return a + negative;
}

std::optional<Linear> number_at(const Value& v, Place place) {
  const size_t coordinates = coordinates_of(place);
  if (const auto* dim = op_of<ir::DimToTensor>(v)) return Linear::number(dim->dim, coordinates);
  if (op_of<ir::Iota>(v) != nullptr) return place[0];
  if (v.dtype() != DType::kI64 && v.dtype() != DType::kI32) return std::nullopt;
  if (const auto c = match::number(v)) return Linear::number(static_cast<int64_t>(*c), coordinates);
  if (op_of<ir::Cast>(v) != nullptr) return number_at(operand(v, 0), std::move(place));
  if (op_of<ir::Binary>(v) != nullptr) return number_of_binary(v, place, coordinates);
  const auto elsewhere = moved_from(v, place);
  return elsewhere ? number_at(elsewhere->v, elsewhere->place) : std::nullopt;
}

std::optional<Conditions> conditions_at(const Value& v, Place place) {
  if (const auto truth = match::number(v)) {
    if (*truth == 0) return std::nullopt;
    return Conditions{};
  }
  if (const Tensor* known = match::constant(v); known != nullptr && is_all_true(*known))
    return Conditions{};
  if (op_of<ir::Cast>(v) != nullptr && operand(v, 0).dtype() == DType::kBool)
    return conditions_at(operand(v, 0), std::move(place));
  if (op_of<ir::Compare>(v) != nullptr) {
    if (auto compared = comparison(v, place)) return compared;
  }
  if (match::binary(v, BinaryKind::kAnd)) return both(v, place);
  if (const auto elsewhere = moved_from(v, place))
    return conditions_at(elsewhere->v, elsewhere->place);
  return Conditions{Flag{v, std::move(place)}};
}

}  // namespace tranship::passes

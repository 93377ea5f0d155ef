#include "formats/pt2/advanced_index.h"

#include <algorithm>

#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Value;

struct AxisIndex {
  int64_t axis;
  Value index;
};

std::vector<int64_t> inverse_of(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

Value permuted(Value x, const std::vector<int64_t>& perm) {
  return std::ranges::is_sorted(perm) ? x : transpose(x, perm);
}

/// The indices side by side on a new last axis; for one axis it is just an axis of one.
Value stacked(const AdvancedIndex& index) {
  std::vector<Value> columns;
  for (const Value& i : index.indices) columns.push_back(unsqueeze(i, {-1}));
  return columns.size() == 1 ? columns[0] : concat(columns, -1);
}

/// From [index axes..., the other axes...] to where the index axes belong.
std::vector<int64_t> result_perm(const AdvancedIndex& index, int64_t num_others) {
  const int64_t n = index.shape.rank();
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < index.place; ++i) perm.push_back(n + i);
  for (int64_t i = 0; i < n; ++i) perm.push_back(i);
  for (int64_t i = index.place; i < num_others; ++i) perm.push_back(n + i);
  return perm;
}

}  // namespace

Value places_of(Call& call, Value mask, const std::optional<Dim>& count) {
  ir::NonZero op;
  op.count = call.symbols().birth(count);
  const Dim made = op.count;
  const Value places = add_node(call.graph(), std::move(op), {truth_of(mask)});
  if (count && !(*count == made)) call.graph().assume(made, *count);
  return places;
}

AdvancedIndex advanced_index(Call& call, Value x, const std::vector<Value>& indices,
                             const std::vector<std::optional<Dim>>& sizes) {
  std::vector<AxisIndex> found;
  int64_t axis = 0;
  for (const Value& index : indices) {
    if (!index) {
      ++axis;
      continue;
    }
    const bool is_mask = index.dtype() == DType::kBool || index.dtype() == DType::kU8;
    if (!is_mask) {
      found.push_back({axis++, cast(index, DType::kI64)});
      continue;
    }
    const size_t place = found.empty() ? static_cast<size_t>(axis) : 0;
    const Value places = places_of(call, with_axis_of_one(index),
                                   place < sizes.size() ? sizes[place] : std::nullopt);
    for (int64_t i = 0; i < std::max<int64_t>(index.rank(), 1); ++i)
      found.push_back({axis++, squeeze(slice(places, 1, i, i + 1), {1})});
  }
  if (axis > x.rank()) call.corrupt("{} indices of {} axes", axis, x.rank());
  AdvancedIndex out;
  for (const AxisIndex& f : found) out.shape = broadcast_shape(out.shape, f.index.shape());
  for (const AxisIndex& f : found) {
    out.perm.push_back(f.axis);
    out.indices.push_back(expanded(f.index, out.shape));
  }
  const bool adjacent = !found.empty() && found.back().axis - found.front().axis + 1 ==
                                              static_cast<int64_t>(found.size());
  out.place = adjacent ? found.front().axis : 0;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::ranges::find(out.perm, i) == out.perm.end()) out.perm.push_back(i);
  }
  return out;
}

Value read(Value x, const AdvancedIndex& index) {
  if (index.indices.empty()) return x;
  if (index.indices.size() == 1) return gather(x, index.indices[0], index.perm[0]);
  const Value y = add_node(x.graph(), ir::GatherNd(), {permuted(x, index.perm), stacked(index)});
  const int64_t others = x.rank() - std::ssize(index.indices);
  return permuted(y, result_perm(index, others));
}

Value written(Value x, const AdvancedIndex& index, Value values, ir::ScatterReduction reduction) {
  if (index.indices.empty()) {
    const Value all = expanded(values, x.shape());
    return reduction == ir::ScatterReduction::kAdd ? x + all : all;
  }
  const Value front = permuted(x, index.perm);
  const int64_t count = std::ssize(index.indices), others = x.rank() - count;
  const std::vector<int64_t> perm = result_perm(index, others);
  // The shape that reading gives, to which values broadcast; then index axes go first.
  Shape whole = index.shape;
  for (int64_t i = count; i < x.rank(); ++i) whole.dims.push_back(front.shape()[i]);
  Shape result;
  for (const int64_t axis : perm) result.dims.push_back(whole[axis]);
  const Value updates = permuted(expanded(values, result), inverse_of(perm));
  ir::ScatterNd op;
  op.reduction = reduction;
  const Value out = add_node(x.graph(), op, {front, stacked(index), updates});
  return permuted(out, inverse_of(index.perm));
}

}  // namespace tranship::pt2

// Operators that write elements by index.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/pt2/advanced_index.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::ReduceKind;
using ir::ScatterReduction;
using ir::Shape;
using ir::Value;

/// x[mask] = number: no place needs to be known.
bool is_masked_number(const Value& x, const std::vector<Value>& indices, const Value& values) {
  return indices.size() == 1 && indices[0] && indices[0].dtype() == DType::kBool &&
         values.shape().num_elements() == Dim(1) && indices[0].rank() <= x.rank();
}

Results index_put(Call& call) {
  const Value x = call.tensor("self");
  const std::vector<Value> indices = call.tensors("indices");
  const Value values = cast(call.tensor("values"), x.dtype());
  const bool accumulates = call.flag("accumulate", false);
  call.ignore({"unsafe"});
  if (is_masked_number(x, indices, values) && !accumulates) {
    Value mask = indices[0];
    std::vector<int64_t> behind;
    for (int64_t axis = mask.rank(); axis < x.rank(); ++axis) behind.push_back(axis);
    if (!behind.empty()) mask = unsqueeze(mask, behind);
    return {expanded(where(mask, reshape(values, {}), x), x.shape())};
  }
  const AdvancedIndex place = advanced_index(call, x, indices, {});
  return {
      written(x, place, values, accumulates ? ScatterReduction::kAdd : ScatterReduction::kNone)};
}

Value scattered(Value x, Value index, Value source, int64_t axis, ScatterReduction reduction) {
  ir::ScatterElements op;
  op.axis = axis;
  op.reduction = reduction;
  if (x.rank() > 0)
    return add_node(x.graph(), op, {x, with_axis_of_one(index), with_axis_of_one(source)});
  return reshape(add_node(x.graph(), op,
                          {unsqueeze(x, {0}), with_axis_of_one(index), with_axis_of_one(source)}),
                 {});
}

/// Only the part of the source that the indices cover is taken.
Value covered(Call& call, Value source, const Shape& shape) {
  for (int64_t axis = 0; axis < source.rank(); ++axis) {
    if (!(source.shape()[axis] == shape[axis]) &&
        !(call.bounds().is_known_le(source.shape()[axis], shape[axis]))) {
      source = slice(source, axis, 0, shape[axis]);
    }
  }
  return source;
}

struct Target {
  Value x;
  int64_t axis;
  Value index;
};
Target target_of(Call& call) {
  const Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.rank());
  return {x, axis, call.tensor("index")};
}

ScatterReduction reduction_named(Call& call, const std::string& name) {
  if (name == "add" || name == "sum") return ScatterReduction::kAdd;
  if (name == "multiply" || name == "prod") return ScatterReduction::kMul;
  if (name == "amax") return ScatterReduction::kMax;
  if (name == "amin") return ScatterReduction::kMin;
  if (name == "mean") fail(ErrorKind::kUnsupported, "the reduction 'mean'");
  call.corrupt("the reduction '{}'", name);
}

template <ScatterReduction kReduction>
Results scatter(Call& call) {
  const Target t = target_of(call);
  const Value source = covered(call, call.tensor("src"), t.index.shape());
  return {scattered(t.x, t.index, cast(source, t.x.dtype()), t.axis, kReduction)};
}

Results scatter_named(Call& call) {
  const Target t = target_of(call);
  const Value source = covered(call, call.tensor("src"), t.index.shape());
  const ScatterReduction reduction = reduction_named(call, call.text("reduce", ""));
  return {scattered(t.x, t.index, source, t.axis, reduction)};
}

Results scatter_value(Call& call) {
  const Target t = target_of(call);
  const Value value = operand_value(call.graph(), call.operand("value"), t.x.dtype());
  return {
      scattered(t.x, t.index, expanded(value, t.index.shape()), t.axis, ScatterReduction::kNone)};
}

/// What is not to count in the result is first replaced by what changes nothing.
Results scatter_reduce(Call& call) {
  const Target t = target_of(call);
  const Value source = cast(covered(call, call.tensor("src"), t.index.shape()), t.x.dtype());
  const ScatterReduction reduction = reduction_named(call, call.text("reduce", ""));
  Value x = t.x;
  if (!call.flag("include_self", true)) {
    const double neutral = reduction == ScatterReduction::kMul ? 1 : 0;
    if (reduction == ScatterReduction::kMax || reduction == ScatterReduction::kMin)
      x = scattered(x, t.index, source, t.axis, ScatterReduction::kNone);
    else
      x = scattered(x, t.index, full(call.graph(), x.dtype(), neutral, t.index.shape()), t.axis,
                    ScatterReduction::kNone);
  }
  return {scattered(x, t.index, source, t.axis, reduction)};
}

/// An index for whole slices, as one for their elements.
Value spread_index(Value index, int64_t axis, const Shape& shape) {
  std::vector<int64_t> others = all_axes(shape.rank());
  std::erase(others, axis);
  Value out = with_axis_of_one(index);
  if (!others.empty()) out = unsqueeze(out, others);
  return expanded(out, shape);
}

Value with_rank_of(Value source, const Value& x) {
  return source.rank() == 0 && x.rank() > 0 ? unsqueeze(source, all_axes(x.rank())) : source;
}

Results index_copy(Call& call) {
  const Target t = target_of(call);
  const Value source = with_rank_of(cast(call.tensor("source"), t.x.dtype()), t.x);
  if (t.x.rank() == 0) return {reshape(source, {})};
  const Value index = spread_index(t.index, t.axis, source.shape());
  return {scattered(t.x, index, source, t.axis, ScatterReduction::kNone)};
}

Results index_add(Call& call) {
  const Target t = target_of(call);
  Value source = with_rank_of(cast(call.tensor("source"), t.x.dtype()), t.x);
  const Number alpha = call.number("alpha", Dim(1));
  source = source * number_value(call.graph(), alpha, t.x.dtype());
  if (t.x.rank() == 0) return {t.x + reshape(source, {})};
  const Value index = spread_index(t.index, t.axis, source.shape());
  return {scattered(t.x, index, source, t.axis, ScatterReduction::kAdd)};
}

Results index_fill(Call& call) {
  const Target t = target_of(call);
  const Value value = operand_value(call.graph(), call.operand("value"), t.x.dtype());
  if (t.x.rank() == 0) return {value};
  Shape shape = t.x.shape();
  shape[t.axis] = with_axis_of_one(t.index).shape()[0];
  const Value index = spread_index(t.index, t.axis, shape);
  return {scattered(t.x, index, expanded(value, shape), t.axis, ScatterReduction::kNone)};
}

/// How often each number occurs, or the sum of its weights.
Results bincount(Call& call) {
  const Value x = call.tensor("self");
  const Value weights = call.optional_tensor("weights");
  call.ignore({"minlength"});
  const std::optional<Dim> length = call.output_sizes()[0];
  if (!length || !length->is_static())
    fail(ErrorKind::kUnsupported, "a count whose length depends on the data");
  ir::Graph& g = call.graph();
  const Value hits = compare(ir::CompareKind::kEqual, unsqueeze(iota(g, *length), {1}),
                             unsqueeze(cast(x, DType::kI64), {0}));
  const DType dtype = call.output_dtype();
  Value counts = cast(hits, dtype);
  if (weights) counts = counts * unsqueeze(cast(weights, dtype), {0});
  return {reduce(ReduceKind::kSum, counts, {1}, false)};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.index_put.default", index_put},
    {"aten._unsafe_index_put.default", index_put},
    {"aten._index_put_impl.default", index_put},
    {"aten.scatter.src", scatter<ScatterReduction::kNone>},
    {"aten.scatter.value", scatter_value},
    {"aten.scatter.reduce", scatter_named},
    {"aten.scatter_add.default", scatter<ScatterReduction::kAdd>},
    {"aten.scatter_reduce.two", scatter_reduce},
    {"aten.index_copy.default", index_copy},
    {"aten.index_add.default", index_add},
    {"aten.index_fill.int_Scalar", index_fill},
    {"aten.index_fill.int_Tensor", index_fill},
    {"aten.bincount.default", bincount},
});

}  // namespace

std::span<const Row> scatter_rows() { return kRows; }

}  // namespace tranship::pt2

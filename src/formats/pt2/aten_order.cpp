// Operators that put elements in order, or look for their place in one.
#include <array>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::CompareKind;
using ir::Dim;
using ir::Value;

struct Ordered {
  Value values;
  Value indices;
};

/// A scalar is ordered as it is; bools as 0 and 1.
Ordered top(Value x, int64_t axis, const Dim& k, bool largest, bool sorted) {
  ir::Graph& g = x.graph();
  if (x.rank() == 0) return {x, scalar(g, DType::kI64, 0)};
  ir::TopK op;
  op.axis = axis;
  op.k = k;
  op.largest = largest;
  op.sorted = sorted;
  const bool is_bool = x.dtype() == DType::kBool;
  const Value operand = is_bool ? cast(x, DType::kI32) : x;
  const std::vector<Value> out = g.add(ir::make(std::move(op)), std::vector{operand});
  return {is_bool ? truth_of(out[0]) : out[0], out[1]};
}

Results topk(Call& call) {
  const Value x = call.tensor("self");
  const Dim k = call.size("k");
  const int64_t axis = axis_of(call, call.integer("dim", -1), x.rank());
  const bool largest = call.flag("largest", true);
  const Ordered out = top(x, axis, k, largest, call.flag("sorted", true));
  return {out.values, out.indices};
}

Ordered sorted(Call& call) {
  const Value x = call.tensor("self");
  if (call.node().target.ends_with("stable")) call.ignore({"stable"});
  const int64_t axis = axis_of(call, call.integer("dim", -1), x.rank());
  const Dim size = x.rank() == 0 ? Dim(1) : x.shape()[axis];
  return top(x, axis, size, call.flag("descending", false), true);
}

Results sort(Call& call) {
  const Ordered out = sorted(call);
  return {out.values, out.indices};
}
Results argsort(Call& call) { return {sorted(call).indices}; }

/// (value, index) of the k-th smallest, counted from 1.
Results kthvalue(Call& call) {
  const Value x = call.tensor("self");
  const Dim k = call.size("k");
  const int64_t axis = axis_of(call, call.integer("dim", -1), x.rank());
  const bool keepdims = call.flag("keepdim", false);
  const Ordered out = top(x, axis, k, false, true);
  if (x.rank() == 0) return {out.values, out.indices};
  const auto last = [&](Value v) {
    const Value one = slice(v, axis, k - 1, k);
    return keepdims ? one : squeeze(one, {axis});
  };
  return {last(out.values), last(out.indices)};
}

/// (value, index) in the middle, the lower of two.
Results median(Call& call) {
  const Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim", -1), x.rank());
  const bool keepdims = call.flag("keepdim", false);
  if (x.rank() == 0) return {x, scalar(call.graph(), DType::kI64, 0)};
  const Dim size = x.shape()[axis], middle = floor_div(size - 1, 2);
  const Ordered out = top(x, axis, size, false, true);
  const auto take = [&](Value v) {
    const Value one = slice(v, axis, middle, middle + 1);
    return keepdims ? one : squeeze(one, {axis});
  };
  return {take(out.values), take(out.indices)};
}

/// For each value, how many boundaries lie before it: below, or also equal if `right`.
Value places(Value values, Value boundaries, bool right, DType dtype) {
  const DType common = promote(values.dtype(), boundaries.dtype());
  const Value v = unsqueeze(cast(values, common), {-1});
  const Value b = cast(boundaries, common);
  const Value before = compare(right ? CompareKind::kLessEqual : CompareKind::kLess, b, v);
  return reduce(ir::ReduceKind::kSum, cast(before, dtype), {-1}, false);
}

DType index_dtype(Call& call) { return call.flag("out_int32", false) ? DType::kI32 : DType::kI64; }

Results bucketize(Call& call) {
  const Value values = call.tensor("self"), boundaries = call.tensor("boundaries");
  const DType dtype = index_dtype(call);
  return {places(values, boundaries, call.flag("right", false), dtype)};
}

Results searchsorted(Call& call) {
  const Value boundaries = call.tensor("sorted_sequence"), values = call.tensor("self");
  const DType dtype = index_dtype(call);
  bool right = call.flag("right", false);
  const std::string side = call.text("side", right ? "right" : "left");
  call.refuse("sorter");
  right = side == "right";
  if (boundaries.rank() == 1) return {places(values, boundaries, right, dtype)};
  return {places(values, unsqueeze(boundaries, {-2}), right, dtype)};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.topk.default", topk},
    {"aten.sort.default", sort},
    {"aten.sort.stable", sort},
    {"aten.argsort.default", argsort},
    {"aten.argsort.stable", argsort},
    {"aten.kthvalue.default", kthvalue},
    {"aten.median.dim", median},
    {"aten.bucketize.Tensor", bucketize},
    {"aten.bucketize.Scalar", bucketize},
    {"aten.searchsorted.Tensor", searchsorted},
    {"aten.searchsorted.Scalar", searchsorted},
});

}  // namespace

std::span<const Row> order_rows() { return kRows; }

}  // namespace tranship::pt2

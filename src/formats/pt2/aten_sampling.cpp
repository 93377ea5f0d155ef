// Operators that read between the elements of an image, or put windows back together.
#include <array>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::Dim;
using ir::Shape;
using ir::UnaryKind;
using ir::Value;

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1 };
enum Padding : int64_t { kZeros = 0, kBorder = 1 };

/// One axis of the places to read: where the sample lies, in elements.
struct Axis {
  Value place;  // f32 [N, places]
  Dim size;
};

Value number(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }
Value size_as(Value like, const Dim& size) {
  return number_value(like.graph(), size, like.dtype());
}

/// From -1 ... 1 to elements: the centers of the outermost ones, or their edges.
Axis axis_at(Value grid, int64_t which, Dim size, bool align_corners, int64_t padding) {
  const Value x = squeeze(slice(grid, 2, which, which + 1), {2});
  const Value n = size_as(x, size);
  Value place = align_corners ? (x + 1) * 0.5 * (n - 1) : ((x + 1) * n - 1) * 0.5;
  if (padding == kBorder)
    place = binary(BinaryKind::kMin, binary(BinaryKind::kMax, place, number(place, 0)), n - 1);
  return {place, std::move(size)};
}

/// Elements of x [N, C, H W] at whole places, 0 outside.
Value elements_at(Value x, Value row, Value column, const Axis& rows, const Axis& columns) {
  const auto clamped = [&](Value place, const Dim& size) {
    const Value low = binary(BinaryKind::kMax, place, number(place, 0));
    return binary(BinaryKind::kMin, low, size_as(place, size - 1));
  };
  const auto same = [](Value a, Value b) { return compare(CompareKind::kEqual, a, b); };
  const Value r = clamped(row, rows.size), c = clamped(column, columns.size);
  const Value inside = binary(BinaryKind::kAnd, same(r, row), same(c, column));
  const Value at = cast(r, DType::kI64) * number_value(x.graph(), columns.size, DType::kI64) +
                   cast(c, DType::kI64);
  const Shape shape{x.shape()[0], x.shape()[1], at.shape()[1]};
  const Value found = gather_elements(x, expanded(unsqueeze(at, {1}), shape), 2);
  return found * unsqueeze(cast(inside, x.dtype()), {1});
}

Value bilinear(Value x, const Axis& rows, const Axis& columns) {
  const Value top = unary(UnaryKind::kFloor, rows.place);
  const Value left = unary(UnaryKind::kFloor, columns.place);
  const Value down = rows.place - top, right = columns.place - left;
  Value sum;
  for (const bool lower : {false, true}) {
    for (const bool later : {false, true}) {
      const Value up_weight = lower ? down : unary(UnaryKind::kNeg, down) + 1;
      const Value side_weight = later ? right : unary(UnaryKind::kNeg, right) + 1;
      const Value found =
          elements_at(x, lower ? top + 1 : top, later ? left + 1 : left, rows, columns);
      const Value weighed = found * unsqueeze(up_weight * side_weight, {1});
      sum = sum ? sum + weighed : weighed;
    }
  }
  return sum;
}

/// (input [N, C, H, W], grid [N, h, w, 2] of (x, y)) -> [N, C, h, w].
Results grid_sampler(Call& call) {
  const Value x = call.tensor("input"), grid = call.tensor("grid");
  const int64_t mode = call.integer("interpolation_mode", 0);
  const int64_t padding = call.integer("padding_mode", 0);
  const bool align_corners = call.flag("align_corners", false);
  if (x.rank() != 4 || grid.rank() != 4)
    fail(ErrorKind::kUnsupported, "samples of other than images");
  if ((mode != kBilinear && mode != kNearest) || (padding != kZeros && padding != kBorder))
    fail(ErrorKind::kUnsupported, "samples by cubic interpolation, or reflected at the edges");
  const Shape s = x.shape(), g = grid.shape();
  const Value places = reshape(grid, {g[0], g[1] * g[2], 2});
  const Axis columns = axis_at(places, 0, s[3], align_corners, padding);
  const Axis rows = axis_at(places, 1, s[2], align_corners, padding);
  const Value flat = reshape(x, {s[0], s[1], s[2] * s[3]});
  const Value y = mode == kBilinear
                      ? bilinear(flat, rows, columns)
                      : elements_at(flat, unary(UnaryKind::kRound, rows.place),
                                    unary(UnaryKind::kRound, columns.place), rows, columns);
  return {reshape(y, {s[0], s[1], g[1], g[2]})};
}

struct Folding {
  std::vector<int64_t> size, kernel, dilation, padding, stride;
};

/// Where each element of each window goes in the padded image, in the order of im2col.
Tensor folded_places(Call& call, const Folding& f) {
  std::vector<int64_t> at, count(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = f.size[i] + 2 * f.padding[i] - f.dilation[i] * (f.kernel[i] - 1) - 1;
    if (reach < 0 || f.stride[i] < 1) call.corrupt("windows do not fit");
    count[i] = reach / f.stride[i] + 1;
  }
  const int64_t width = f.size[1] + 2 * f.padding[1];
  for (int64_t kr = 0; kr < f.kernel[0]; ++kr) {
    for (int64_t kc = 0; kc < f.kernel[1]; ++kc) {
      for (int64_t r = 0; r < count[0]; ++r) {
        for (int64_t c = 0; c < count[1]; ++c) {
          at.push_back((r * f.stride[0] + kr * f.dilation[0]) * width + c * f.stride[1] +
                       kc * f.dilation[1]);
        }
      }
    }
  }
  return Tensor::of(at, {static_cast<int64_t>(at.size())});
}

std::vector<int64_t> pair_of(Call& call, std::string_view name) {
  std::vector<int64_t> out = call.integers(name);
  if (out.size() == 1) out.push_back(out[0]);
  if (out.size() != 2) call.corrupt("{} numbers for two axes", out.size());
  return out;
}

/// The sum of windows, put back where im2col took them: [N, C * kernel, windows] -> [N, C, H, W].
Results col2im(Call& call) {
  const Value x = call.tensor("self");
  Folding f;
  f.size = pair_of(call, "output_size");
  f.kernel = pair_of(call, "kernel_size");
  f.dilation = pair_of(call, "dilation");
  f.padding = pair_of(call, "padding");
  f.stride = pair_of(call, "stride");
  constexpr int64_t kMostElements = 1 << 22;
  for (const int64_t n : {f.size[0], f.size[1], f.kernel[0], f.kernel[1]}) {
    if (n < 1 || n > kMostElements) call.corrupt("a size of {}", n);
  }
  if (x.rank() != 3 || f.size[0] * f.size[1] * f.kernel[0] * f.kernel[1] > kMostElements)
    fail(ErrorKind::kUnsupported, "windows without a batch, or too many of them");
  const Tensor places = folded_places(call, f);
  const int64_t kernel = f.kernel[0] * f.kernel[1];
  const Dim batch = x.shape()[0], channels = floor_div(x.shape()[1], kernel);
  const int64_t height = f.size[0] + 2 * f.padding[0], width = f.size[1] + 2 * f.padding[1];
  ir::Graph& g = call.graph();
  const int64_t count = places.num_elements();
  const Value updates = reshape(x, {batch, channels, count});
  const Value index = expanded(constant(g, places), {batch, channels, count});
  ir::ScatterElements op;
  op.axis = 2;
  op.reduction = ir::ScatterReduction::kAdd;
  const Value zeros = full(g, x.dtype(), 0, {batch, channels, height * width});
  Value y = reshape(add_node(g, op, {zeros, index, updates}), {batch, channels, height, width});
  if (f.padding[0] > 0) y = slice(y, 2, f.padding[0], f.padding[0] + f.size[0]);
  if (f.padding[1] > 0) y = slice(y, 3, f.padding[1], f.padding[1] + f.size[1]);
  return {y};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.grid_sampler.default", grid_sampler},
    {"aten.grid_sampler_2d.default", grid_sampler},
    {"aten.col2im.default", col2im},
});

}  // namespace

std::span<const Row> sampling_rows() { return kRows; }

}  // namespace tranship::pt2

// Convolutions, pools and resizing.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Value;

/// One number stands for all axes.
std::vector<int64_t> per_axis(Call& call, std::vector<int64_t> values, size_t count) {
  if (values.size() == 1) values.resize(count, values[0]);
  if (values.size() != count) call.corrupt("{} numbers for {} axes", values.size(), count);
  return values;
}

/// Without a batch there is one of one.
struct Batched {
  Value x;
  bool added = false;
  Value unbatched(Value y) const { return added ? squeeze(y, {0}) : y; }
};
Batched batched(Call& call, Value x, int64_t spatial) {
  if (x.rank() == spatial + 1) return {unsqueeze(x, {0}), true};
  if (x.rank() != spatial + 2) call.corrupt("{} axes, expected {}", x.rank(), spatial + 2);
  return {x, false};
}

struct Convolution {
  Value x, weight, bias;
  std::vector<int64_t> strides, pads_begin, pads_end, dilations, output_padding;
  int64_t groups = 1;
  bool transposed = false;
};

Value convolved(Call& call, const Convolution& c) {
  const Batched in = batched(call, c.x, c.weight.rank() - 2);
  if (c.transposed) {
    ir::ConvTranspose op;
    op.strides = c.strides;
    op.pads_begin = c.pads_begin;
    op.pads_end = c.pads_end;
    op.dilations = c.dilations;
    op.output_padding = c.output_padding;
    op.groups = c.groups;
    return in.unbatched(add_node(call.graph(), op, {in.x, c.weight, c.bias}));
  }
  ir::Conv op;
  op.strides = c.strides;
  op.pads_begin = c.pads_begin;
  op.pads_end = c.pads_end;
  op.dilations = c.dilations;
  op.groups = c.groups;
  return in.unbatched(add_node(call.graph(), op, {in.x, c.weight, c.bias}));
}

Convolution operands(Call& call) {
  Convolution c;
  c.x = call.tensor("input");
  c.weight = call.tensor("weight");
  c.bias = call.optional_tensor("bias");
  if (c.weight.rank() < 3) call.corrupt("a weight of {} axes", c.weight.rank());
  return c;
}

size_t num_spatial(const Convolution& c) { return static_cast<size_t>(c.weight.rank()) - 2; }

std::vector<int64_t> axes_argument(Call& call, std::string_view name, size_t count,
                                   int64_t otherwise) {
  return per_axis(call, call.integers(name, {otherwise}), count);
}

/// conv1d, conv2d, conv3d.
Results conv(Call& call) {
  Convolution c = operands(call);
  const size_t n = num_spatial(c);
  c.strides = axes_argument(call, "stride", n, 1);
  c.pads_begin = c.pads_end = axes_argument(call, "padding", n, 0);
  c.dilations = axes_argument(call, "dilation", n, 1);
  c.groups = call.integer("groups", 1);
  return {convolved(call, c)};
}

/// Padding by a word: "same" keeps the size, what is odd goes to the end.
Results conv_padding(Call& call) {
  Convolution c = operands(call);
  const size_t n = num_spatial(c);
  c.strides = axes_argument(call, "stride", n, 1);
  const std::string padding = call.text("padding", "valid");
  c.dilations = axes_argument(call, "dilation", n, 1);
  c.groups = call.integer("groups", 1);
  c.pads_begin.assign(n, 0);
  c.pads_end.assign(n, 0);
  if (padding != "same" && padding != "valid") call.corrupt("the padding '{}'", padding);
  for (size_t i = 0; i < n && padding == "same"; ++i) {
    const Dim kernel = c.weight.shape()[static_cast<int64_t>(i) + 2];
    if (!kernel.is_static()) fail(ErrorKind::kUnsupported, "a kernel of open size");
    const int64_t total = c.dilations[i] * (kernel.value() - 1);
    c.pads_begin[i] = total / 2;
    c.pads_end[i] = total - total / 2;
  }
  return {convolved(call, c)};
}

Results conv_transpose(Call& call) {
  Convolution c = operands(call);
  const size_t n = num_spatial(c);
  c.transposed = true;
  c.strides = axes_argument(call, "stride", n, 1);
  c.pads_begin = c.pads_end = axes_argument(call, "padding", n, 0);
  c.output_padding = axes_argument(call, "output_padding", n, 0);
  c.groups = call.integer("groups", 1);
  c.dilations = axes_argument(call, "dilation", n, 1);
  return {convolved(call, c)};
}

Results convolution(Call& call) {
  Convolution c = operands(call);
  const size_t n = num_spatial(c);
  c.strides = axes_argument(call, "stride", n, 1);
  c.pads_begin = c.pads_end = axes_argument(call, "padding", n, 0);
  c.dilations = axes_argument(call, "dilation", n, 1);
  c.transposed = call.flag("transposed", false);
  c.output_padding = axes_argument(call, "output_padding", n, 0);
  c.groups = call.integer("groups", 1);
  call.ignore({"benchmark", "deterministic", "cudnn_enabled", "allow_tf32"});
  return {convolved(call, c)};
}

// ---- pools

/// PyTorch lets a window that may reach past the end be longer than all there is.
void clip_kernel(ir::Pool& op, const Value& x) {
  for (size_t i = 0; i < op.kernel.size(); ++i) {
    const Dim& size = x.shape()[x.rank() - std::ssize(op.kernel) + static_cast<int64_t>(i)];
    if (!op.ceil_mode || !size.is_static() || op.dilations[i] != 1) continue;
    op.kernel[i] = std::min(op.kernel[i], size.value() + op.pads_begin[i] + op.pads_end[i]);
  }
}

template <int64_t kSpatial, ir::PoolKind kFn>
Results pool(Call& call) {
  const Batched in = batched(call, call.tensor("self"), kSpatial);
  const auto n = static_cast<size_t>(kSpatial);
  ir::Pool op;
  op.fn = kFn;
  op.kernel = per_axis(call, call.integers("kernel_size"), n);
  const std::vector<int64_t> strides = call.integers("stride");
  op.strides = strides.empty() ? op.kernel : per_axis(call, strides, n);
  op.pads_begin = op.pads_end = axes_argument(call, "padding", n, 0);
  op.dilations.assign(n, 1);
  if (kFn == ir::PoolKind::kMax) op.dilations = axes_argument(call, "dilation", n, 1);
  op.ceil_mode = call.flag("ceil_mode", false);
  clip_kernel(op, in.x);
  if (kFn == ir::PoolKind::kAverage) {
    op.count_include_pad = call.flag("count_include_pad", true);
    call.refuse("divisor_override");
  }
  for (size_t i = 1; i < call.outputs().size(); ++i) {
    if (call.is_used(i)) fail(ErrorKind::kUnsupported, "the places of the largest");
  }
  return {in.unbatched(add_node(call.graph(), op, {in.x}))};
}

/// Row i averages the elements that window i of `out` covers, of `in`.
Value averaging_matrix(ir::Graph& g, DType dtype, int64_t in, int64_t out) {
  Tensor matrix(dtype, {in, out});
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * in / out, end = (i * in + in + out - 1) / out;
    for (int64_t j = begin; j < end; ++j)
      matrix.set(j * out + i, 1.0 / static_cast<double>(end - begin));
  }
  return constant(g, std::move(matrix));
}

/// One axis to `out` windows that may overlap.
Value adapted(Value x, int64_t axis, const Dim& out) {
  const Dim in = x.shape()[axis];
  if (in == out) return x;
  if (out == Dim(1)) return reduce(ir::ReduceKind::kMean, x, {axis}, true);
  constexpr int64_t kMaxElements = 1 << 22;
  if (!in.is_static() || !out.is_static() || in.value() * out.value() > kMaxElements)
    fail(ErrorKind::kUnsupported, "adaptive windows of an axis that is not fixed");
  const Value last = move_axis(x, axis, x.rank() - 1);
  const Value y = ir::matmul(last, averaging_matrix(x.graph(), x.dtype(), in.value(), out.value()));
  return move_axis(y, x.rank() - 1, axis);
}

template <int64_t kSpatial>
Results adaptive_average(Call& call) {
  Value x = call.tensor("self");
  const std::vector<Dim> sizes = call.sizes("output_size");
  if (std::ssize(sizes) != kSpatial || x.rank() < kSpatial)
    call.corrupt("{} sizes of {} axes", sizes.size(), x.rank());
  for (int64_t i = 0; i < kSpatial; ++i)
    x = adapted(x, x.rank() - kSpatial + i, sizes[static_cast<size_t>(i)]);
  return {x};
}

/// Where the windows are all alike they are a pool's.
template <int64_t kSpatial>
Results adaptive_max(Call& call) {
  const Batched in = batched(call, call.tensor("self"), kSpatial);
  const std::vector<Dim> sizes = call.sizes("output_size");
  if (std::ssize(sizes) != kSpatial) call.corrupt("{} sizes", sizes.size());
  if (call.is_used(1)) fail(ErrorKind::kUnsupported, "the places of the largest");
  ir::Pool op;
  for (int64_t i = 0; i < kSpatial; ++i) {
    const Dim from = in.x.shape()[2 + i], to = sizes[static_cast<size_t>(i)];
    const Dim kernel = floor_div(from, to);
    if (!kernel.is_static() || !(kernel * to == from))
      fail(ErrorKind::kUnsupported, "adaptive windows that are not all alike");
    op.kernel.push_back(kernel.value());
  }
  op.strides = op.kernel;
  op.pads_begin = op.pads_end = std::vector<int64_t>(op.kernel.size(), 0);
  op.dilations.assign(op.kernel.size(), 1);
  return {in.unbatched(add_node(call.graph(), op, {in.x}))};
}

/// All windows of an image, as columns: [N, C * kernel, windows].
Results im2col(Call& call) {
  const Batched in = batched(call, call.tensor("self"), 2);
  const std::vector<int64_t> kernel = axes_argument(call, "kernel_size", 2, 1);
  const std::vector<int64_t> dilation = axes_argument(call, "dilation", 2, 1);
  const std::vector<int64_t> padding = axes_argument(call, "padding", 2, 0);
  const std::vector<int64_t> stride = axes_argument(call, "stride", 2, 1);
  ir::Pad pad;
  pad.begin = pad.end = {0, 0, padding[0], padding[1]};
  Value x = add_node(call.graph(), std::move(pad), {in.x, Value()});
  ir::Graph& g = call.graph();
  Dim windows = 1;
  for (const int64_t i : {1, 0}) {  // [N, C, kh, oh, kw, ow]
    const auto at = static_cast<size_t>(i);
    const int64_t reach = dilation[at] * (kernel[at] - 1);
    const Dim count = floor_div(x.shape()[2 + i] - reach - 1, stride[at]) + 1;
    const Value place =
        unsqueeze(counted(g, 0, dilation[at], kernel[at]), {1}) + counted(g, 0, stride[at], count);
    x = gather(x, place, 2 + i);
    windows = windows * count;
  }
  const Shape s = x.shape();
  const Dim rows = s[1] * (kernel[0] * kernel[1]);
  return {in.unbatched(reshape(transpose(x, {0, 1, 2, 4, 3, 5}), {s[0], rows, windows}))};
}

// ---- resizing

struct Resizing {
  Value x;
  std::vector<Dim> sizes;
  std::vector<double> scales;
  bool align_corners = false;
};

/// The axis by a factor: floor(size * factor).
Dim resized(const Dim& from, double factor, const std::optional<Dim>& said) {
  if (from.is_static())
    return static_cast<int64_t>(std::floor(static_cast<double>(from.value()) * factor));
  if (factor == std::floor(factor)) return from * static_cast<int64_t>(factor);
  if (said) return *said;
  fail(ErrorKind::kUnsupported, "a factor of {} for a size that is not fixed", factor);
}

/// One for each axis, in a list or by names.
std::vector<double> factors(Call& call, int64_t spatial, bool by_list) {
  if (by_list) return call.reals("scale_factors");
  static constexpr std::array<std::string_view, 3> kNames = {"scales_d", "scales_h", "scales_w"};
  std::vector<double> out;
  for (int64_t i = 0; i < spatial; ++i) {
    const std::string_view name =
        spatial == 1 ? "scales" : kNames[static_cast<size_t>(3 - spatial + i)];
    if (call.has(name)) out.push_back(call.real(name));
  }
  return out;
}

Resizing resizing(Call& call, int64_t spatial, bool has_corners) {
  const bool by_list = call.node().target.ends_with(".vec");
  Resizing r;
  r.x = call.tensor(by_list ? "input" : "self");
  if (r.x.rank() != spatial + 2) call.corrupt("{} axes", r.x.rank());
  if (call.has("output_size")) r.sizes = call.sizes("output_size");
  if (has_corners) r.align_corners = call.flag("align_corners", false);
  r.scales = factors(call, spatial, by_list);
  if (r.sizes.empty()) {
    const std::vector<std::optional<Dim>> said = call.output_sizes();
    for (size_t i = 0; i < std::min(r.scales.size(), said.size() - 2); ++i)
      r.sizes.push_back(
          resized(r.x.shape()[2 + static_cast<int64_t>(i)], r.scales[i], said[i + 2]));
  }
  if (std::ssize(r.sizes) != spatial) call.corrupt("{} sizes for {} axes", r.sizes.size(), spatial);
  if (std::ssize(r.scales) != spatial || r.align_corners) r.scales.clear();
  return r;
}

struct ResizeKind {
  ir::ResizeMode mode;
  ir::ResizeCoordinates coordinates;
  bool antialias = false;
};

template <int64_t kSpatial>
Results resize(Call& call, ResizeKind kind, bool has_corners) {
  const Resizing r = resizing(call, kSpatial, has_corners);
  ir::Resize op;
  op.mode = kind.mode;
  op.coordinates = r.align_corners ? ir::ResizeCoordinates::kAlignCorners : kind.coordinates;
  op.antialias = kind.antialias;
  op.sizes = Shape(r.sizes);
  op.scales = r.scales;
  return {add_node(call.graph(), std::move(op), {r.x})};
}

constexpr ResizeKind kNearest = {ir::ResizeMode::kNearest, ir::ResizeCoordinates::kAsymmetric};
constexpr ResizeKind kNearestExact = {ir::ResizeMode::kNearest, ir::ResizeCoordinates::kHalfPixel};
constexpr ResizeKind kLinear = {ir::ResizeMode::kLinear, ir::ResizeCoordinates::kHalfPixel};
constexpr ResizeKind kCubic = {ir::ResizeMode::kCubic, ir::ResizeCoordinates::kHalfPixel};
constexpr ResizeKind kSmoothLinear = {ir::ResizeMode::kLinear, ir::ResizeCoordinates::kHalfPixel,
                                      true};
constexpr ResizeKind kSmoothCubic = {ir::ResizeMode::kCubic, ir::ResizeCoordinates::kHalfPixel,
                                     true};

template <int64_t kSpatial>
Results nearest(Call& call) {
  return resize<kSpatial>(call, kNearest, false);
}
template <int64_t kSpatial>
Results nearest_exact(Call& call) {
  return resize<kSpatial>(call, kNearestExact, false);
}
template <int64_t kSpatial>
Results linear(Call& call) {
  return resize<kSpatial>(call, kLinear, true);
}
Results cubic(Call& call) { return resize<2>(call, kCubic, true); }
Results smooth_linear(Call& call) { return resize<2>(call, kSmoothLinear, true); }
Results smooth_cubic(Call& call) { return resize<2>(call, kSmoothCubic, true); }

constexpr ir::PoolKind kMax = ir::PoolKind::kMax, kAverage = ir::PoolKind::kAverage;

constexpr std::array kRows = std::to_array<Row>({
    {"aten.conv1d.default", conv},
    {"aten.conv2d.default", conv},
    {"aten.conv3d.default", conv},
    {"aten.conv1d.padding", conv_padding},
    {"aten.conv2d.padding", conv_padding},
    {"aten.conv3d.padding", conv_padding},
    {"aten.conv_transpose1d.default", conv_transpose},
    {"aten.conv_transpose2d.input", conv_transpose},
    {"aten.conv_transpose3d.input", conv_transpose},
    {"aten.convolution.default", convolution},
    {"aten._convolution.default", convolution},
    {"aten.max_pool1d.default", pool<1, kMax>},
    {"aten.max_pool2d.default", pool<2, kMax>},
    {"aten.max_pool3d.default", pool<3, kMax>},
    {"aten.max_pool1d_with_indices.default", pool<1, kMax>},
    {"aten.max_pool2d_with_indices.default", pool<2, kMax>},
    {"aten.max_pool3d_with_indices.default", pool<3, kMax>},
    {"aten.avg_pool1d.default", pool<1, kAverage>},
    {"aten.avg_pool2d.default", pool<2, kAverage>},
    {"aten.avg_pool3d.default", pool<3, kAverage>},
    {"aten.adaptive_avg_pool1d.default", adaptive_average<1>},
    {"aten.adaptive_avg_pool2d.default", adaptive_average<2>},
    {"aten._adaptive_avg_pool2d.default", adaptive_average<2>},
    {"aten.adaptive_avg_pool3d.default", adaptive_average<3>},
    {"aten._adaptive_avg_pool3d.default", adaptive_average<3>},
    {"aten.adaptive_max_pool1d.default", adaptive_max<1>},
    {"aten.adaptive_max_pool2d.default", adaptive_max<2>},
    {"aten.im2col.default", im2col},
    {"aten.upsample_nearest1d.default", nearest<1>},
    {"aten.upsample_nearest1d.vec", nearest<1>},
    {"aten.upsample_nearest2d.default", nearest<2>},
    {"aten.upsample_nearest2d.vec", nearest<2>},
    {"aten.upsample_nearest3d.default", nearest<3>},
    {"aten.upsample_nearest3d.vec", nearest<3>},
    {"aten._upsample_nearest_exact1d.default", nearest_exact<1>},
    {"aten._upsample_nearest_exact1d.vec", nearest_exact<1>},
    {"aten._upsample_nearest_exact2d.default", nearest_exact<2>},
    {"aten._upsample_nearest_exact2d.vec", nearest_exact<2>},
    {"aten.upsample_linear1d.default", linear<1>},
    {"aten.upsample_linear1d.vec", linear<1>},
    {"aten.upsample_bilinear2d.default", linear<2>},
    {"aten.upsample_bilinear2d.vec", linear<2>},
    {"aten.upsample_trilinear3d.default", linear<3>},
    {"aten.upsample_trilinear3d.vec", linear<3>},
    {"aten.upsample_bicubic2d.default", cubic},
    {"aten.upsample_bicubic2d.vec", cubic},
    {"aten._upsample_bilinear2d_aa.default", smooth_linear},
    {"aten._upsample_bilinear2d_aa.vec", smooth_linear},
    {"aten._upsample_bicubic2d_aa.default", smooth_cubic},
    {"aten._upsample_bicubic2d_aa.vec", smooth_cubic},
});

}  // namespace

std::span<const Row> window_rows() { return kRows; }

}  // namespace tranship::pt2

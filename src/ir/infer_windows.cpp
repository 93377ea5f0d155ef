// Types of what slides windows over the axes behind [batch, channels], of padding and resizing.
#include "ir/inferrer.h"

namespace tranship::ir {
namespace {

/// What a window of `kernel` elements spans.
Dim span_of(const Dim& kernel, int64_t dilation) { return dilation * (kernel - 1) + 1; }

}  // namespace

int64_t Inferrer::window_axes() {
  need_float(0);
  const int64_t axes = shape(0).rank() - 2;
  if (axes < 1 || axes > 3)
    error("x has shape {}, expected [batch, channels] and one to three axes", shape(0).text());
  return axes;
}

void Inferrer::need_entries(const std::vector<int64_t>& list, std::string_view what,
                            int64_t least) const {
  if (static_cast<int64_t>(list.size()) != shape(0).rank() - 2)
    error("{} has {} entries, expected {}", what, list.size(), shape(0).rank() - 2);
  for (const int64_t entry : list) {
    if (entry < least || entry > int64_t{1} << 31) error("{} has {}", what, entry);
  }
}

void Inferrer::need_channels(size_t bias, const Dim& channels) {
  need_same_dtype();
  if (!has(bias)) return;
  need_rank(bias, 1);
  equal(shape(bias)[0], channels, "channels out and bias");
}

std::vector<Type> Inferrer::conv() {
  need_count(2, 3);
  const int64_t axes = window_axes();
  const auto& c = as<Conv>(op_);
  need_entries(c.strides, "strides", 1);
  need_entries(c.dilations, "dilations", 1);
  need_entries(c.pads_begin, "pads_begin", 0);
  need_entries(c.pads_end, "pads_end", 0);
  need_rank(1, axes + 2);
  if (c.groups < 1) error("groups is {}", c.groups);
  equal(shape(0)[1], shape(1)[1] * c.groups, "channels in");
  const Dim& out_channels = shape(1)[0];
  if (out_channels.is_static() && out_channels.value() % c.groups != 0)
    error("{} channels out are not a multiple of {} groups", out_channels.text(), c.groups);
  need_channels(2, out_channels);
  Shape out = {shape(0)[0], out_channels};
  for (int64_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    const Dim room = shape(0)[2 + i] + (c.pads_begin[at] + c.pads_end[at]) -
                     span_of(shape(1)[2 + i], c.dilations[at]);
    if (room.is_static() && room.value() < 0)
      error("axis {} of {} is shorter than the kernel {}", 2 + i, shape(0).text(), shape(1).text());
    out.dims.push_back(floor_div(room, c.strides[at]) + 1);
  }
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::conv_transpose() {
  need_count(2, 3);
  const int64_t axes = window_axes();
  const auto& c = as<ConvTranspose>(op_);
  need_entries(c.strides, "strides", 1);
  need_entries(c.dilations, "dilations", 1);
  need_entries(c.pads_begin, "pads_begin", 0);
  need_entries(c.pads_end, "pads_end", 0);
  need_entries(c.output_padding, "output_padding", 0);
  need_rank(1, axes + 2);
  if (c.groups < 1) error("groups is {}", c.groups);
  equal(shape(0)[1], shape(1)[0], "channels in");
  if (shape(1)[0].is_static() && shape(1)[0].value() % c.groups != 0)
    error("{} channels in are not a multiple of {} groups", shape(1)[0].text(), c.groups);
  const Dim out_channels = shape(1)[1] * c.groups;
  need_channels(2, out_channels);
  Shape out = {shape(0)[0], out_channels};
  for (int64_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    if (c.output_padding[at] >= std::max(c.strides[at], c.dilations[at]))
      error("output_padding {} is not below the stride or dilation", c.output_padding[at]);
    const Dim size = (shape(0)[2 + i] - 1) * c.strides[at] +
                     span_of(shape(1)[2 + i], c.dilations[at]) +
                     (c.output_padding[at] - c.pads_begin[at] - c.pads_end[at]);
    if (size.is_static() && size.value() < 0) error("pads take more than there is");
    out.dims.push_back(size);
  }
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::pool() {
  need_count(1, 1);
  const int64_t axes = window_axes();
  const auto& p = as<Pool>(op_);
  need_entries(p.kernel, "kernel", 1);
  need_entries(p.strides, "strides", 1);
  need_entries(p.dilations, "dilations", 1);
  need_entries(p.pads_begin, "pads_begin", 0);
  need_entries(p.pads_end, "pads_end", 0);
  Shape out = {shape(0)[0], shape(0)[1]};
  for (int64_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    if (p.fn == PoolKind::kAverage && p.dilations[at] != 1)
      error("an average has dilation {}", p.dilations[at]);
    if (p.pads_begin[at] > p.kernel[at] / 2 || p.pads_end[at] > p.kernel[at] / 2)
      error("pads are over half of the kernel {}", p.kernel[at]);
    const Dim padded = shape(0)[2 + i] + p.pads_begin[at];
    const Dim room = padded + p.pads_end[at] - span_of(p.kernel[at], p.dilations[at]);
    if (room.is_static() && room.value() < 0)
      error("axis {} of {} is shorter than the kernel {}", 2 + i, shape(0).text(), p.kernel[at]);
    out.dims.push_back(p.ceil_mode ? min(ceil_div(room, p.strides[at]) + 1,
                                         floor_div(padded - 1, p.strides[at]) + 1)
                                   : floor_div(room, p.strides[at]) + 1);
  }
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::resize() {
  need_count(1, 1);
  const int64_t axes = window_axes();
  const auto& r = as<Resize>(op_);
  if (r.sizes.rank() != axes) error("{} sizes for {} axes", r.sizes.rank(), axes);
  if (!r.scales.empty() && static_cast<int64_t>(r.scales.size()) != axes)
    error("{} scales for {} axes", r.scales.size(), axes);
  for (const double scale : r.scales) {
    if (!(scale > 0) || scale > 1e9) error("a scale is {}", scale);
  }
  if (r.antialias && (r.mode == ResizeMode::kNearest ||
                      r.coordinates != ResizeCoordinates::kHalfPixel || !r.scales.empty()))
    error("antialias needs linear or cubic, half_pixel, and no scales");
  if (!r.scales.empty() && r.coordinates == ResizeCoordinates::kAlignCorners)
    error("scales do not count with align_corners");
  if (r.mode == ResizeMode::kNearest && r.coordinates == ResizeCoordinates::kAlignCorners)
    error("nearest needs half_pixel or asymmetric");
  if ((r.antialias || r.mode == ResizeMode::kCubic) && axes != 2)
    error("antialias and cubic need two axes, x has {}", axes);
  Shape out = {shape(0)[0], shape(0)[1]};
  for (const Dim& size : r.sizes.dims) {
    if (size.is_static() && size.value() < 1) error("a size is {}", size.text());
    out.dims.push_back(size);
  }
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::pad() {
  need_count(1, 2);
  need_same_dtype();
  const auto& p = as<Pad>(op_);
  if (has(1)) need_rank(1, 0);
  if (has(1) && p.mode != PadMode::kConstant) error("a value is for the constant mode alone");
  if (p.begin.rank() != shape(0).rank() || p.end.rank() != shape(0).rank())
    error("{} and {} amounts for shape {}", p.begin.rank(), p.end.rank(), shape(0).text());
  Shape out = shape(0);
  for (int64_t i = 0; i < out.rank(); ++i) {
    for (const Dim& amount : {p.begin[i], p.end[i]}) {
      if (!amount.is_static()) continue;
      const int64_t reach = amount.value() + (p.mode == PadMode::kReflect ? 1 : 0);
      if (amount.value() < 0) error("an amount is {}", amount.text());
      const bool is_bounded = p.mode == PadMode::kReflect || p.mode == PadMode::kWrap;
      if (is_bounded && amount.value() > 0 && shape(0)[i].is_static() &&
          reach > shape(0)[i].value())
        error("an amount of {} for an axis of {}", amount.text(), shape(0)[i].text());
    }
    out[i] = p.begin[i] + shape(0)[i] + p.end[i];
  }
  return one(in(0).dtype, out);
}

}  // namespace tranship::ir

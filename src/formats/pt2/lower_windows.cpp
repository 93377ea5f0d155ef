// Convolutions, pools, resizing and padding in ATen's words.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "formats/pt2/lowering.h"

namespace tranship::pt2 {

using ir::as;
using ir::Dim;
using ir::Node;

namespace {

/// The type with pads around the axes behind batch and channels.
ir::Type with_pads(ir::Type type, const std::vector<int64_t>& begin,
                   const std::vector<int64_t>& end) {
  for (size_t i = 0; i < begin.size(); ++i) {
    Dim& size = type.shape[static_cast<int64_t>(i) + 2];
    size = size + begin[i] + end[i];
  }
  return type;
}

bool is_none(const std::vector<int64_t>& pads) {
  return std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; });
}

}  // namespace

/// Pads the axes behind batch and channels with a number, a Scalar.
std::string Lowering::padded(std::string value, ir::Type& type, const std::vector<int64_t>& begin,
                             const std::vector<int64_t>& end, const std::string& with) {
  if (is_none(begin) && is_none(end)) return value;
  std::vector<int64_t> pads;  // from the last axis on
  for (size_t i = begin.size(); i-- > 0;) pads.insert(pads.end(), {begin[i], end[i]});
  type = with_pads(std::move(type), begin, end);
  return emit_.node("aten.constant_pad_nd.default",
                    {{"self", as_tensor(value)}, {"pad", as_ints(pads)}, {"value", with}}, type);
}

void Lowering::lower_conv(const Node& n) {
  const auto& c = as<ir::Conv>(*n.op);
  const bool even = c.pads_begin == c.pads_end;
  const std::vector<int64_t> none(c.strides.size(), 0);
  ir::Type made = type(n.inputs[0]);
  std::string x = tensor(n.inputs[0]);
  if (!even) x = padded(std::move(x), made, c.pads_begin, c.pads_end, as_float(0));
  say(n, "aten.convolution.default",
      {{"input", as_tensor(x)},
       operand("weight", n, 1),
       {"bias", has(n, 2) ? as_tensor(tensor(n.inputs[2])) : as_none()},
       {"stride", as_ints(c.strides)},
       {"padding", as_ints(even ? c.pads_begin : none)},
       {"dilation", as_ints(c.dilations)},
       {"transposed", as_bool(false)},
       {"output_padding", as_ints(none)},
       {"groups", as_int(c.groups)}});
}

void Lowering::lower_conv_transpose(const Node& n) {
  const auto& c = as<ir::ConvTranspose>(*n.op);
  std::vector<int64_t> pads;  // what both ends have; the rest is cut off
  ir::Type made = type(n.outputs[0]);
  for (size_t i = 0; i < c.strides.size(); ++i) {
    pads.push_back(std::min(c.pads_begin[i], c.pads_end[i]));
    Dim& size = made.shape[static_cast<int64_t>(i) + 2];
    size = size + (c.pads_begin[i] + c.pads_end[i] - 2 * pads[i]);
  }
  std::string y = emit_.node("aten.convolution.default",
                             {operand("input", n, 0),
                              operand("weight", n, 1),
                              {"bias", has(n, 2) ? as_tensor(tensor(n.inputs[2])) : as_none()},
                              {"stride", as_ints(c.strides)},
                              {"padding", as_ints(pads)},
                              {"dilation", as_ints(c.dilations)},
                              {"transposed", as_bool(true)},
                              {"output_padding", as_ints(c.output_padding)},
                              {"groups", as_int(c.groups)}},
                             made);
  for (size_t i = 0; i < pads.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2, first = c.pads_begin[i] - pads[i];
    const Dim& size = shape(n.outputs[0])[axis];
    if (made.shape[axis] == size) continue;
    made.shape[axis] = size;
    y = emit_.node("aten.slice.Tensor",
                   {{"self", as_tensor(y)},
                    {"dim", as_int(axis)},
                    {"start", as_int(first)},
                    {"end", emit_.size(size + first)}},
                   made);
  }
  set(n, y);
}

void Lowering::lower_pool(const Node& n) {
  const auto& p = as<ir::Pool>(*n.op);
  const bool is_max = p.fn == ir::PoolKind::kMax;
  bool plain = p.pads_begin == p.pads_end;  // as PyTorch's pools have them
  for (size_t i = 0; i < p.kernel.size(); ++i) plain &= 2 * p.pads_begin[i] <= p.kernel[i];
  if (!plain && (p.ceil_mode || (!is_max && !p.count_include_pad))) {
    return lower_unsupported(n, "Pool", "uneven or wide padding with ceil_mode, or not counted");
  }
  ir::Type made = type(n.inputs[0]);
  std::string x = tensor(n.inputs[0]);
  std::vector<int64_t> pads = p.pads_begin;
  if (!plain) {
    const double with = is_max ? -std::numeric_limits<double>::infinity() : 0;
    x = padded(std::move(x), made, p.pads_begin, p.pads_end, as_float(with));
    pads.assign(pads.size(), 0);
  }
  std::vector<Operand> operands = {{"self", as_tensor(x)},
                                   {"kernel_size", as_ints(p.kernel)},
                                   {"stride", as_ints(p.strides)},
                                   {"padding", as_ints(pads)}};
  if (is_max) operands.push_back({"dilation", as_ints(p.dilations)});
  operands.push_back({"ceil_mode", as_bool(p.ceil_mode)});
  if (!is_max) operands.push_back({"count_include_pad", as_bool(p.count_include_pad)});
  say(n, fmt::format("aten.{}_pool{}d.default", is_max ? "max" : "avg", p.kernel.size()), operands);
}

namespace {

/// PyTorch's name of a resize, or nothing if it has none.
std::string resize_target(const ir::Resize& op) {
  using ir::ResizeCoordinates;
  const size_t rank = op.sizes.dims.size();
  const bool is_asymmetric = op.coordinates == ResizeCoordinates::kAsymmetric;
  if (op.mode == ir::ResizeMode::kNearest) {
    if (op.antialias || op.coordinates == ResizeCoordinates::kAlignCorners) return {};
    return fmt::format("aten.{}{}d.default",
                       is_asymmetric ? "upsample_nearest" : "_upsample_nearest_exact", rank);
  }
  const bool is_cubic = op.mode == ir::ResizeMode::kCubic;
  if (is_asymmetric || ((op.antialias || is_cubic) && rank != 2)) return {};
  const std::string_view name = is_cubic    ? "bicubic2d"
                                : rank == 1 ? "linear1d"
                                : rank == 2 ? "bilinear2d"
                                            : "trilinear3d";
  return fmt::format("aten.{}upsample_{}{}.default", op.antialias ? "_" : "", name,
                     op.antialias ? "_aa" : "");
}

}  // namespace

void Lowering::lower_resize(const Node& n) {
  const auto& op = as<ir::Resize>(*n.op);
  const std::string target = resize_target(op);
  if (target.empty()) return lower_unsupported(n, "Resize", "a kind that PyTorch does not have");
  std::vector<Operand> operands = {self(n), {"output_size", emit_.sizes(op.sizes.dims)}};
  if (op.mode != ir::ResizeMode::kNearest) {
    const bool aligned = op.coordinates == ir::ResizeCoordinates::kAlignCorners;
    operands.push_back({"align_corners", as_bool(aligned)});
  }
  const size_t rank = op.sizes.dims.size();
  for (size_t i = 0; i < op.scales.size(); ++i) {
    const char axis = "dhw"[3 - rank + i];
    operands.push_back(
        {rank == 1 ? "scales" : fmt::format("scales_{}", axis), as_float(op.scales[i])});
  }
  say(n, target, operands);
}

/// Places of an axis by index: [size of index] in place of it.
std::string Lowering::taken(const std::string& value, ir::Type& type, int64_t axis,
                            const std::string& index, const Dim& size) {
  type.shape[axis] = size;
  return emit_.node(
      "aten.index_select.default",
      {{"self", as_tensor(value)}, {"dim", as_int(axis)}, {"index", as_tensor(index)}}, type);
}

/// For each place of a padded axis the place that it repeats: i64 [begin + size + end].
std::string Lowering::places(ir::PadMode mode, const Dim& size, const Dim& begin, const Dim& end) {
  const ir::Type made{DType::kI64, {begin + size + end}};
  std::vector<Operand> range = {{"start", emit_.size(Dim(0) - begin)},
                                {"end", emit_.size(size + end)}};
  for (Operand& o : made_of(DType::kI64)) range.push_back(std::move(o));
  std::string at = emit_.node("aten.arange.start", range, made);
  const auto step = [&](std::string_view target, std::string name, const std::string& with) {
    at = emit_.node(target, {{"self", as_tensor(at)}, {std::move(name), with}}, made);
  };
  if (mode == ir::PadMode::kWrap) {
    step("aten.remainder.Scalar", "other", emit_.size(size));
  } else if (mode == ir::PadMode::kEdge) {
    step("aten.clamp_min.default", "min", as_int(0));
    step("aten.clamp_max.default", "max", emit_.size(size - 1));
  } else {  // reflected at both edges: last - |last - |place||
    at = emit_.node("aten.abs.default", {{"self", as_tensor(at)}}, made);
    step("aten.rsub.Scalar", "other", emit_.size(size - 1));
    at = emit_.node("aten.abs.default", {{"self", as_tensor(at)}}, made);
    step("aten.rsub.Scalar", "other", emit_.size(size - 1));
  }
  return at;
}

void Lowering::lower_pad(const Node& n) {
  const auto& op = as<ir::Pad>(*n.op);
  if (op.mode == ir::PadMode::kConstant) {
    std::string value = as_int(0);
    if (has(n, 1)) {
      const std::optional<std::string> number = scalar(n.inputs[1]);
      if (!number) return lower_unsupported(n, "Pad", "a value that is computed");
      value = *number;
    }
    std::vector<Dim> pads;  // from the last axis on
    for (size_t i = op.begin.dims.size(); i-- > 0;)
      pads.insert(pads.end(), {op.begin.dims[i], op.end.dims[i]});
    return say(n, "aten.constant_pad_nd.default",
               {self(n), {"pad", emit_.sizes(pads)}, {"value", value}});
  }
  ir::Type made = type(n.inputs[0]);
  std::string x = tensor(n.inputs[0]);
  for (int64_t axis = 0; axis < made.shape.rank(); ++axis) {
    if (op.begin[axis] == Dim(0) && op.end[axis] == Dim(0)) continue;
    const std::string at = places(op.mode, made.shape[axis], op.begin[axis], op.end[axis]);
    x = taken(x, made, axis, at, shape(n.outputs[0])[axis]);
  }
  set(n, x);
}

}  // namespace tranship::pt2

// Convolutions, pools, padding and resizing in ONNX's words.
#include <algorithm>
#include <numeric>

#include "formats/onnx/op_lowering.h"

namespace tranship::onnx {
namespace {

using ir::as;
using ir::Dim;

Attribute pads_attribute(std::vector<int64_t> begin, const std::vector<int64_t>& end) {
  begin.insert(begin.end(), end.begin(), end.end());
  return Attribute::of("pads", std::move(begin));
}

/// Elements [begin, end) of an axis.
std::string sliced(const OpLowering& n, const std::string& x, int64_t axis, const Dim& begin,
                   const Dim& end) {
  return n.step("Slice", {x, n.emit.size(begin), n.emit.size(end), n.emit.ints({axis})});
}

}  // namespace

std::string lower_conv(const OpLowering& n) {
  const auto& c = as<ir::Conv>(*n.node.op);
  return n.last("Conv", n.in,
                {Attribute::of("strides", c.strides), pads_attribute(c.pads_begin, c.pads_end),
                 Attribute::of("dilations", c.dilations), Attribute::of("group", c.groups)});
}

std::string lower_conv_transpose(const OpLowering& n) {
  const auto& c = as<ir::ConvTranspose>(*n.node.op);
  return n.last("ConvTranspose", n.in,
                {Attribute::of("strides", c.strides), pads_attribute(c.pads_begin, c.pads_end),
                 Attribute::of("dilations", c.dilations), Attribute::of("group", c.groups),
                 Attribute::of("output_padding", c.output_padding)});
}

namespace {

/// An average whose last windows may reach past the padding: ONNX Runtime counts what is there,
/// PyTorch the padding alone. With the padding as elements of x the two agree.
std::string lower_ceil_average(const OpLowering& n, const ir::Pool& p,
                               const std::vector<Attribute>& attributes) {
  std::vector<int64_t> pads = {0, 0};
  pads.insert(pads.end(), p.pads_begin.begin(), p.pads_begin.end());
  pads.insert(pads.end(), {0, 0});
  pads.insert(pads.end(), p.pads_end.begin(), p.pads_end.end());
  std::vector<Attribute> all = attributes;
  const std::vector<int64_t> none(p.kernel.size(), 0);
  all.push_back(pads_attribute(none, none));
  std::string y = n.step("AveragePool", {n.step("Pad", {n.in[0], n.emit.ints(pads)})}, all);
  // A window that begins in the padding behind x is one too many.
  const ir::Shape& out = n.graph.type(n.node.outputs[0]).shape;
  for (int64_t axis = 2; axis < out.rank(); ++axis) y = sliced(n, y, axis, 0, out[axis]);
  return y;
}

}  // namespace

std::string lower_pool(const OpLowering& n) {
  const auto& p = as<ir::Pool>(*n.node.op);
  std::vector<Attribute> attributes = {Attribute::of("kernel_shape", p.kernel),
                                       Attribute::of("strides", p.strides),
                                       Attribute::of("ceil_mode", p.ceil_mode ? 1 : 0)};
  const bool is_max = p.fn == ir::PoolKind::kMax;
  if (!is_max && p.ceil_mode && p.count_include_pad) return lower_ceil_average(n, p, attributes);
  attributes.push_back(pads_attribute(p.pads_begin, p.pads_end));
  if (is_max) {
    attributes.push_back(Attribute::of("dilations", p.dilations));
  } else {
    attributes.push_back(Attribute::of("count_include_pad", p.count_include_pad ? 1 : 0));
  }
  return n.last(is_max ? "MaxPool" : "AveragePool", n.in, attributes);
}

namespace {

/// One axis of a resize that ONNX Runtime rounds otherwise than PyTorch: coordinates in f32, as
/// PyTorch computes them.
class AxisResize {
 public:
  AxisResize(const OpLowering& n, const ir::Resize& op, size_t i)
      : n_(n),
        axis_(static_cast<int64_t>(i) + 2),
        size_(n.shape(0)[axis_]),
        new_size_(op.sizes[static_cast<int64_t>(i)]) {
    scale_ = op.scales.empty() ? divided(as_float(size_), as_float(new_size_))
                               : number(static_cast<float>(1 / op.scales[i]));
    const std::string places =
        n.step("Range", {n.emit.scalar(DType::kI64, 0), n.emit.scalar_size(new_size_),
                         n.emit.scalar(DType::kI64, 1)});
    places_ = n.cast(places, DType::kI64, DType::kF32);
  }

  /// The element below place * scale, or for `is_exact` below (place + 1/2) * scale.
  std::string nearest(const std::string& x, bool is_exact) const {
    const std::string place = is_exact ? n_.step("Add", {places_, number(0.5)}) : places_;
    return taken(x, n_.step("Floor", {n_.step("Mul", {place, scale_})}), 0);
  }

  /// Keys' cubic at (place + 1/2) * scale - 1/2.
  std::string cubic(const std::string& x) const {
    const std::string at = n_.step(
        "Sub", {n_.step("Mul", {n_.step("Add", {places_, number(0.5)}), scale_}), number(0.5)});
    const std::string below = n_.step("Floor", {at});
    const std::string part = n_.step("Sub", {at, below});
    const std::string rest = n_.step("Sub", {number(1), part});
    std::string sum;
    const std::string weights[] = {far(part), near(part), near(rest), far(rest)};
    for (int k = 0; k < 4; ++k) {
      const std::string weight =
          axis_ == 2 ? n_.step("Unsqueeze", {weights[k], n_.emit.ints({1})}) : weights[k];
      const std::string term = n_.step("Mul", {taken(x, below, k - 1), weight});
      sum = sum.empty() ? term : n_.step("Add", {sum, term});
    }
    return sum;
  }

 private:
  std::string number(double value) const { return n_.emit.scalar(DType::kF32, value); }
  std::string as_float(const Dim& size) const {
    return n_.cast(n_.emit.scalar_size(size), DType::kI64, DType::kF32);
  }
  std::string divided(const std::string& a, const std::string& b) const {
    return n_.step("Div", {a, b});
  }
  std::string taken(const std::string& x, const std::string& below, int64_t offset) const {
    std::string index = n_.cast(below, DType::kF32, DType::kI64);
    if (offset != 0)
      index = n_.step("Add", {index, n_.emit.scalar(DType::kI64, static_cast<double>(offset))});
    index = n_.step("Max", {index, n_.emit.scalar(DType::kI64, 0)});
    index = n_.step("Min", {index, n_.emit.scalar_size(size_ - 1)});
    return n_.step("Gather", {x, index}, {Attribute::of("axis", axis_)});
  }
  /// Horner's form of a polynomial.
  std::string polynomial(const std::string& t, std::initializer_list<double> coefficients) const {
    std::string sum;
    for (const double c : coefficients)
      sum = sum.empty() ? number(c) : n_.step("Add", {n_.step("Mul", {sum, t}), number(c)});
    return sum;
  }
  /// The weight of what is t away, and of what is 1 + t away; a = -0.75.
  std::string near(const std::string& t) const { return polynomial(t, {1.25, -2.25, 0, 1}); }
  std::string far(const std::string& t) const { return polynomial(t, {-0.75, 1.5, -0.75, 0}); }

  const OpLowering& n_;
  int64_t axis_;
  Dim size_, new_size_;
  std::string scale_, places_;
};

bool is_multiple(const Dim& large, const Dim& small) {
  for (int64_t factor = 1; factor <= 16; ++factor) {
    if (large == small * factor) return true;
  }
  return false;
}

/// Whether ONNX's nearest takes what PyTorch's takes: where sizes double, and so on.
bool is_whole(const OpLowering& n, const ir::Resize& op) {
  for (int64_t i = 0; i < op.sizes.rank(); ++i) {
    if (!is_multiple(op.sizes[i], n.shape(0)[i + 2])) return false;
  }
  return op.scales.empty() || op.coordinates == ir::ResizeCoordinates::kAsymmetric;
}

std::vector<Attribute> resize_attributes(const ir::Resize& op) {
  std::vector<Attribute> attributes;
  switch (op.coordinates) {
    case ir::ResizeCoordinates::kHalfPixel:
      attributes.push_back(Attribute::of_text("coordinate_transformation_mode", "half_pixel"));
      break;
    case ir::ResizeCoordinates::kAlignCorners:
      attributes.push_back(Attribute::of_text("coordinate_transformation_mode", "align_corners"));
      break;
    case ir::ResizeCoordinates::kAsymmetric:
      attributes.push_back(Attribute::of_text("coordinate_transformation_mode", "asymmetric"));
      break;
  }
  const bool is_nearest = op.mode == ir::ResizeMode::kNearest;
  attributes.push_back(Attribute::of_text(
      "mode", is_nearest ? "nearest" : (op.mode == ir::ResizeMode::kLinear ? "linear" : "cubic")));
  if (is_nearest) {
    const bool is_exact = op.coordinates == ir::ResizeCoordinates::kHalfPixel;
    attributes.push_back(
        Attribute::of_text("nearest_mode", is_exact ? "round_prefer_ceil" : "floor"));
  }
  if (op.mode == ir::ResizeMode::kCubic)
    attributes.push_back(Attribute::of_float("cubic_coeff_a", op.antialias ? -0.5f : -0.75f));
  if (op.antialias) {  // weights outside of x count for nothing
    attributes.push_back(Attribute::of("antialias", 1));
    attributes.push_back(Attribute::of("exclude_outside", 1));
  }
  return attributes;
}

std::string resized_by_kernel(const OpLowering& n, const ir::Resize& op, const std::string& x) {
  const bool by_scales = !op.scales.empty() && op.mode == ir::ResizeMode::kLinear;
  if (!by_scales) {
    std::vector<Dim> sizes = {n.shape(0)[0], n.shape(0)[1]};
    sizes.insert(sizes.end(), op.sizes.dims.begin(), op.sizes.dims.end());
    return n.step("Resize", {x, "", "", n.emit.shape(sizes)}, resize_attributes(op));
  }
  std::vector<float> scales = {1, 1};
  for (size_t i = 0; i < op.scales.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const bool keeps = op.sizes[axis] == n.shape(0)[axis + 2];  // then PyTorch copies
    scales.push_back(keeps ? 1.0f : static_cast<float>(op.scales[i]));
  }
  const auto count = static_cast<int64_t>(scales.size());
  return n.step("Resize", {x, "", n.emit.constant(Tensor::of(scales, {count}))},
                resize_attributes(op));
}

}  // namespace

std::string lower_resize(const OpLowering& n) {
  const auto& op = as<ir::Resize>(*n.node.op);
  std::string x = n.cast(n.in[0], n.dtype(0), DType::kF32);
  const bool by_index = op.mode == ir::ResizeMode::kNearest && !is_whole(n, op);
  // ONNX Runtime copies where a size stays, PyTorch follows the scale.
  const bool is_scaled_cubic = op.mode == ir::ResizeMode::kCubic && !op.scales.empty();
  if (by_index || is_scaled_cubic) {
    for (size_t i = 0; i < static_cast<size_t>(op.sizes.rank()); ++i) {
      const AxisResize axis(n, op, i);
      x = by_index ? axis.nearest(x, op.coordinates == ir::ResizeCoordinates::kHalfPixel)
                   : axis.cubic(x);
    }
  } else {
    x = resized_by_kernel(n, op, x);
  }
  if (n.dtype(0) == DType::kF32) return x;
  return n.last("Cast", {x}, {Attribute::of("to", onnx_dtype(n.dtype(0)))});
}

namespace {

/// ONNX Runtime moves a padding of zeros into the pool behind it, where it is not zeros any more;
/// one that names its axes it leaves alone. Source: onnxruntime/core/optimizer/pad_fusion.cc
/// (1.31).
bool feeds_pool(const OpLowering& n) {
  return std::ranges::any_of(n.graph.nodes(), [&](const ir::Node& user) {
    return (user.kind() == ir::OpKind::kPool || user.kind() == ir::OpKind::kCast) &&
           user.inputs[0] == n.node.outputs[0];
  });
}

}  // namespace

std::string lower_pad(const OpLowering& n) {
  const auto& p = as<ir::Pad>(*n.node.op);
  if (p.mode == ir::PadMode::kWrap) {  // only from opset 19 on
    std::string x = n.in[0];
    for (int64_t axis = 0; axis < p.begin.rank(); ++axis) {
      const Dim& size = n.shape(0)[axis];
      std::vector<std::string> parts = {x};
      if (!(p.begin[axis] == Dim(0)))
        parts.insert(parts.begin(), sliced(n, x, axis, size - p.begin[axis], size));
      if (!(p.end[axis] == Dim(0))) parts.push_back(sliced(n, x, axis, 0, p.end[axis]));
      if (parts.size() > 1) x = n.step("Concat", parts, {Attribute::of("axis", axis)});
    }
    return x;
  }
  std::vector<Dim> amounts = p.begin.dims;
  amounts.insert(amounts.end(), p.end.dims.begin(), p.end.dims.end());
  constexpr std::string_view kModes[] = {"constant", "reflect", "edge"};
  std::vector<std::string> inputs = {n.in[0], n.emit.shape(amounts),
                                     n.in.size() > 1 ? n.in[1] : ""};
  if (p.mode == ir::PadMode::kConstant && feeds_pool(n)) {
    std::vector<int64_t> axes(p.begin.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
    inputs.push_back(n.emit.ints(axes));
  }
  return n.last("Pad", inputs,
                {Attribute::of_text("mode", std::string(kModes[static_cast<size_t>(p.mode)]))});
}

}  // namespace tranship::onnx

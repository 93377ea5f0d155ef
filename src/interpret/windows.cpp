// What slides windows over the axes behind [batch, channels]: convolutions, pools, resizing; and
// padding.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "interpret/kernels.h"

namespace tranship {
namespace {

/// An entry for each of three axes; a list of fewer is that of the last.
using Three = std::array<int64_t, 3>;

Three three(const std::vector<int64_t>& list, int64_t missing) {
  Three out = {missing, missing, missing};
  std::copy(list.begin(), list.end(), out.end() - static_cast<std::ptrdiff_t>(list.size()));
  return out;
}

Three axes_of(const Array& x) { return three(Sizes(x.shape.begin() + 2, x.shape.end()), 1); }

int64_t at(const Three& sizes, const Three& place) {
  return (place[0] * sizes[1] + place[1]) * sizes[2] + place[2];
}

int64_t volume(const Three& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

template <class F>
void each_place(const Three& sizes, F f) {
  for (int64_t i = 0; i < sizes[0]; ++i) {
    for (int64_t j = 0; j < sizes[1]; ++j) {
      for (int64_t k = 0; k < sizes[2]; ++k) f(Three{i, j, k});
    }
  }
}

struct Window {
  Three kernel, strides, begin, dilations;
  /// Where element `k` of the window at `place` lies in x.
  Three operator()(const Three& place, const Three& k) const {
    Three p = {};
    for (size_t i = 0; i < 3; ++i) p[i] = place[i] * strides[i] - begin[i] + k[i] * dilations[i];
    return p;
  }
};

bool is_inside(const Three& place, const Three& sizes) {
  for (size_t i = 0; i < 3; ++i) {
    if (place[i] < 0 || place[i] >= sizes[i]) return false;
  }
  return true;
}

Sizes with_axes(int64_t batch, int64_t channels, const Sizes& axes) {
  Sizes shape = {batch, channels};
  shape.insert(shape.end(), axes.begin(), axes.end());
  return shape;
}

Array filled_with_bias(const Operands& in, const Sizes& shape) {
  Array y(in[0]->dtype, shape);
  if (in.size() < 3 || in[2] == nullptr) return y;
  const int64_t volume = product(shape, 2, static_cast<int64_t>(shape.size()));
  for (int64_t i = 0; i < y.size(); ++i) y[i] = (*in[2])[i / volume % shape[1]];
  return y;
}

/// Calls f(element of x, element of the weight, element of y) for each product of a convolution:
/// `wide` has the axes that windows are laid on, `narrow` has a place for each window.
template <class F>
void each_product(const Window& window, const Three& wide, const Three& narrow, F f) {
  each_place(narrow, [&](const Three& place) {
    each_place(window.kernel, [&](const Three& k) {
      const Three p = window(place, k);
      if (is_inside(p, wide)) f(at(wide, p), at(window.kernel, k), at(narrow, place));
    });
  });
}

}  // namespace

Array run_conv(const Operands& in, const ir::Conv& op) {
  const Array &x = *in[0], &w = *in[1];
  const Window window = {axes_of(w), three(op.strides, 1), three(op.pads_begin, 0),
                         three(op.dilations, 1)};
  Sizes axes;
  for (size_t i = 0; i < op.strides.size(); ++i) {
    const int64_t room = x.shape[i + 2] + op.pads_begin[i] + op.pads_end[i] -
                         op.dilations[i] * (w.shape[i + 2] - 1) - 1;
    if (room < 0)
      fail(ErrorKind::kInvalidArgument,
           "[interpret] Conv: an axis of {} is shorter than the kernel", x.shape[i + 2]);
    axes.push_back(room / op.strides[i] + 1);
  }
  Array y = filled_with_bias(in, with_axes(x.shape[0], w.shape[0], axes));
  const Three wide = axes_of(x), narrow = axes_of(y);
  const int64_t out_channels = w.shape[0], group_in = w.shape[1],
                group_out = out_channels / op.groups;
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    for (int64_t o = 0; o < out_channels; ++o) {
      for (int64_t c = 0; c < group_in; ++c) {
        const int64_t from = (n * x.shape[1] + o / group_out * group_in + c) * volume(wide);
        const int64_t weight = (o * group_in + c) * volume(window.kernel);
        const int64_t to = (n * out_channels + o) * volume(narrow);
        each_product(window, wide, narrow, [&](int64_t p, int64_t k, int64_t q) {
          y[to + q] += x[from + p] * w[weight + k];
        });
      }
    }
  }
  return y;
}

Array run_conv_transpose(const Operands& in, const ir::ConvTranspose& op) {
  const Array &x = *in[0], &w = *in[1];
  const Window window = {axes_of(w), three(op.strides, 1), three(op.pads_begin, 0),
                         three(op.dilations, 1)};
  Sizes axes;
  for (size_t i = 0; i < op.strides.size(); ++i) {
    axes.push_back((x.shape[i + 2] - 1) * op.strides[i] - op.pads_begin[i] - op.pads_end[i] +
                   op.dilations[i] * (w.shape[i + 2] - 1) + op.output_padding[i] + 1);
    if (axes.back() < 0)
      fail(ErrorKind::kInvalidArgument, "[interpret] ConvTranspose: an axis would have {} elements",
           axes.back());
  }
  Array y = filled_with_bias(in, with_axes(x.shape[0], w.shape[1] * op.groups, axes));
  const Three wide = axes_of(y), narrow = axes_of(x);
  const int64_t in_channels = x.shape[1], group_out = w.shape[1],
                group_in = in_channels / op.groups;
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    for (int64_t c = 0; c < in_channels; ++c) {
      for (int64_t o = 0; o < group_out; ++o) {
        const int64_t to = (n * y.shape[1] + c / group_in * group_out + o) * volume(wide);
        const int64_t weight = (c * group_out + o) * volume(window.kernel);
        const int64_t from = (n * in_channels + c) * volume(narrow);
        each_product(window, wide, narrow, [&](int64_t p, int64_t k, int64_t q) {
          y[to + p] += x[from + q] * w[weight + k];
        });
      }
    }
  }
  return y;
}

namespace {

/// How many elements a window at `place` has that are not past the padding.
double padded_elements(const Window& window, const Three& place, const Three& sizes,
                       const Three& pads_end) {
  int64_t count = 1;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t first = place[i] * window.strides[i] - window.begin[i];
    count *= std::min(first + window.kernel[i], sizes[i] + pads_end[i]) - first;
  }
  return static_cast<double>(count);
}

Sizes pooled_axes(const Array& x, const ir::Pool& op) {
  Sizes axes;
  for (size_t i = 0; i < op.kernel.size(); ++i) {
    const int64_t padded = x.shape[i + 2] + op.pads_begin[i], stride = op.strides[i];
    const int64_t room = padded + op.pads_end[i] - op.dilations[i] * (op.kernel[i] - 1) - 1;
    if (room < 0)
      fail(ErrorKind::kInvalidArgument,
           "[interpret] Pool: an axis of {} is shorter than the kernel", x.shape[i + 2]);
    axes.push_back(op.ceil_mode
                       ? std::min((room + stride - 1) / stride + 1, (padded - 1) / stride + 1)
                       : room / stride + 1);
  }
  return axes;
}

}  // namespace

Array run_pool(const Array& x, const ir::Pool& op) {
  const Window window = {three(op.kernel, 1), three(op.strides, 1), three(op.pads_begin, 0),
                         three(op.dilations, 1)};
  Array y(x.dtype, with_axes(x.shape[0], x.shape[1], pooled_axes(x, op)));
  const Three wide = axes_of(x), narrow = axes_of(y), pads_end = three(op.pads_end, 0);
  const bool is_max = op.fn == ir::PoolKind::kMax;
  for (int64_t channel = 0; channel < x.shape[0] * x.shape[1]; ++channel) {
    each_place(narrow, [&](const Three& place) {
      double result = is_max ? -std::numeric_limits<double>::infinity() : 0, count = 0;
      each_place(window.kernel, [&](const Three& k) {
        const Three p = window(place, k);
        if (!is_inside(p, wide)) return;
        const double v = x[channel * volume(wide) + at(wide, p)];
        result = is_max ? (std::isnan(v) ? v : std::max(result, v)) : result + v;
        ++count;
      });
      if (op.count_include_pad) count = padded_elements(window, place, wide, pads_end);
      y[channel * volume(narrow) + at(narrow, place)] = is_max ? result : result / count;
    });
  }
  return y;
}

namespace {

/// What an element of the result is made of, along one axis.
struct Tap {
  int64_t from;
  double weight;
};
using Taps = std::vector<Tap>;

/// PyTorch computes coordinates in f32, and so do we: where they fall between two elements
/// matters.
struct Axis {
  int64_t size, new_size;
  float scale;  // size / new_size, or what was given, or that of align_corners
  ir::ResizeCoordinates coordinates;

  float coordinate(int64_t i) const {
    const auto place = static_cast<float>(i);
    if (coordinates == ir::ResizeCoordinates::kHalfPixel) return scale * (place + 0.5f) - 0.5f;
    return scale * place;
  }
  int64_t clamped(int64_t i) const { return std::clamp<int64_t>(i, 0, size - 1); }
};

/// Source: PyTorch's UpSample.h, nearest_idx and nearest_exact_idx.
Taps nearest_taps(const Axis& a, int64_t i) {
  const auto place = static_cast<float>(i);
  const bool is_exact = a.coordinates == ir::ResizeCoordinates::kHalfPixel;
  if (!is_exact && a.new_size == a.size) return {{i, 1}};
  if (!is_exact && a.new_size == 2 * a.size) return {{i / 2, 1}};
  const float found = std::floor((is_exact ? place + 0.5f : place) * a.scale);
  return {{a.clamped(static_cast<int64_t>(found)), 1}};
}

/// Source: PyTorch's UpSample.h, compute_source_index_and_lambda.
Taps linear_taps(const Axis& a, int64_t i) {
  if (a.new_size == a.size) return {{i, 1}};
  const float x = std::max(a.coordinate(i), 0.0f);
  const auto below = std::min(static_cast<int64_t>(x), a.size - 1);
  const double part = std::min(x - static_cast<float>(below), 1.0f);
  return {{below, 1 - part}, {a.clamped(below + 1), part}};
}

/// Keys' cubic.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Taps cubic_taps(const Axis& a, int64_t i) {
  const float x = a.coordinate(i);
  const auto below = static_cast<int64_t>(std::floor(x));
  Taps taps;
  for (int64_t k = -1; k <= 2; ++k)
    taps.push_back(
        {a.clamped(below + k), cubic(double{x} - static_cast<double>(below + k), -0.75)});
  return taps;
}

/// Source: PyTorch's UpSampleKernel.cpp, _compute_indices_min_size_weights_aa.
Taps antialias_taps(const Axis& a, int64_t i, bool is_cubic) {
  const double scale = a.scale, widened = std::max(scale, 1.0);
  const double support = (is_cubic ? 2 : 1) * widened,
               center = scale * (static_cast<double>(i) + 0.5);
  const auto first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
  const auto end = std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), a.size);
  Taps taps;
  double sum = 0;
  for (int64_t k = first; k < end; ++k) {
    const double x = (static_cast<double>(k) - center + 0.5) / widened;
    taps.push_back({k, is_cubic ? cubic(x, -0.5) : std::max(1 - std::abs(x), 0.0)});
    sum += taps.back().weight;
  }
  for (Tap& t : taps) t.weight /= sum;
  return taps;
}

Taps taps_of(const Axis& a, int64_t i, const ir::Resize& op) {
  if (op.antialias) return antialias_taps(a, i, op.mode == ir::ResizeMode::kCubic);
  switch (op.mode) {
    case ir::ResizeMode::kNearest:
      return nearest_taps(a, i);
    case ir::ResizeMode::kLinear:
      return linear_taps(a, i);
    case ir::ResizeMode::kCubic:
      return cubic_taps(a, i);
  }
  __builtin_unreachable();
}

Axis axis_to_resize(int64_t size, int64_t new_size, const ir::Resize& op, size_t i) {
  Axis a = {size, new_size, 0, op.coordinates};
  if (op.coordinates == ir::ResizeCoordinates::kAlignCorners) {
    if (new_size > 1) a.scale = static_cast<float>(size - 1) / static_cast<float>(new_size - 1);
  } else if (!op.scales.empty()) {
    a.scale = static_cast<float>(1 / op.scales[i]);
  } else {
    a.scale = static_cast<float>(size) / static_cast<float>(new_size);
  }
  return a;
}

}  // namespace

Array run_resize(Array x, const ir::Resize& op, const Sizes& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const Axis a = axis_to_resize(x.shape[i + 2], sizes[i], op, i);
    if (a.size < 1 || a.new_size < 1)
      fail(ErrorKind::kInvalidArgument, "[interpret] Resize: an axis of {} to {}", a.size,
           a.new_size);
    Sizes shape = x.shape;
    shape[i + 2] = a.new_size;
    Array y(x.dtype, shape);
    const int64_t inner = product(shape, axis + 1, x.rank());
    for (int64_t k = 0; k < a.new_size; ++k) {
      const Taps taps = taps_of(a, k, op);
      for (int64_t outer = 0; outer < product(shape, 0, axis); ++outer) {
        for (const Tap& tap : taps) {
          for (int64_t j = 0; j < inner; ++j)
            y[(outer * a.new_size + k) * inner + j] +=
                tap.weight * x[(outer * a.size + tap.from) * inner + j];
        }
      }
    }
    x = std::move(y);
  }
  return x;
}

namespace {

/// Where element `i` of a padded axis comes from; -1: from nowhere.
int64_t unpadded(int64_t i, int64_t size, ir::PadMode mode) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case ir::PadMode::kConstant:
      return -1;
    case ir::PadMode::kReflect:
      return i < 0 ? -i : 2 * (size - 1) - i;
    case ir::PadMode::kEdge:
      return i < 0 ? 0 : size - 1;
    case ir::PadMode::kWrap:
      return i < 0 ? i + size : i - size;
  }
  __builtin_unreachable();
}

}  // namespace

Array run_pad(const Operands& in, ir::PadMode mode, const Sizes& begin, const Sizes& end) {
  Array x = *in[0];
  const double value = in.size() > 1 && in[1] != nullptr ? (*in[1])[0] : 0;
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    const int64_t size = x.shape[axis];
    Sizes shape = x.shape;
    shape[axis] = begin[axis] + size + end[axis];
    Array y(x.dtype, shape);
    const int64_t inner = product(shape, static_cast<int64_t>(axis) + 1, x.rank());
    for (int64_t i = 0; i < shape[axis]; ++i) {
      const int64_t from = unpadded(i - begin[axis], size, mode);
      if (begin[axis] < 0 || end[axis] < 0 || from >= size ||
          (mode != ir::PadMode::kConstant && from < 0))
        fail(ErrorKind::kInvalidArgument, "[interpret] Pad: {} and {} around an axis of {}",
             begin[axis], end[axis], size);
      for (int64_t outer = 0; outer < product(shape, 0, static_cast<int64_t>(axis)); ++outer) {
        for (int64_t j = 0; j < inner; ++j)
          y[(outer * shape[axis] + i) * inner + j] =
              from < 0 ? value : x[(outer * size + from) * inner + j];
      }
    }
    x = std::move(y);
  }
  return x;
}

}  // namespace tranship

// What reads or writes by index, and orders.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "interpret/kernels.h"

namespace tranship {

int64_t checked_index(double value, int64_t size) {
  const auto index = static_cast<int64_t>(value);
  if (index < -size || index >= size)
    fail(ErrorKind::kInvalidArgument, "[interpret] index {} of an axis of {}", index, size);
  return index < 0 ? index + size : index;
}

Array run_gather_elements(const Operands& in, int64_t axis_attribute) {
  const Array &x = *in[0], &indices = *in[1];
  Array out(x.dtype, indices.shape);
  const ElementPlaces places(x, indices, axis_attribute);
  for (int64_t i = 0; i < out.size(); ++i) out[i] = x[places(i)];
  return out;
}

ElementPlaces::ElementPlaces(const Array& data, const Array& indices, int64_t axis_attribute)
    : indices_(indices) {
  const int64_t axis = axis_of(axis_attribute, data.rank());
  for (size_t i = 0; i < data.shape.size(); ++i) {
    if (static_cast<int64_t>(i) != axis && indices.shape[i] > data.shape[i]) {
      fail(ErrorKind::kInvalidArgument,
           "[interpret] indices of size {} beside the axis, where the data has {}",
           indices.shape[i], data.shape[i]);
    }
  }
  axis_ = static_cast<size_t>(axis);
  size_ = data.shape[axis_];
  strides_.assign(data.shape.size(), 1);
  for (size_t i = data.shape.size(); i-- > 1;) strides_[i - 1] = strides_[i] * data.shape[i];
}

int64_t ElementPlaces::operator()(int64_t i) const {
  int64_t place = 0, rest = i;
  for (size_t axis = strides_.size(); axis-- > 0;) {
    const int64_t at = rest % indices_.shape[axis];
    rest /= indices_.shape[axis];
    place += strides_[axis] * (axis == axis_ ? checked_index(indices_[i], size_) : at);
  }
  return place;
}

namespace {

/// Which block of `data` row `row` of the indices names, below the axes `first` and following.
int64_t named_block(const Array& data, const Array& indices, int64_t row, int64_t first) {
  const int64_t depth = indices.shape.back();
  int64_t block = 0;
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t size = data.shape[static_cast<size_t>(first + i)];
    block = block * size + checked_index(indices[row * depth + i], size);
  }
  return block;
}

double reduced(ir::ScatterReduction reduction, double old, double update) {
  switch (reduction) {
    case ir::ScatterReduction::kNone:
      return update;
    case ir::ScatterReduction::kAdd:
      return old + update;
    case ir::ScatterReduction::kMul:
      return old * update;
    case ir::ScatterReduction::kMin:
      return std::min(old, update);
    case ir::ScatterReduction::kMax:
      return std::max(old, update);
  }
  __builtin_unreachable();
}

}  // namespace

Array run_gather_nd(const Operands& in, int64_t batch_dims) {
  const Array &x = *in[0], &indices = *in[1];
  const int64_t depth = indices.shape.back(), first = batch_dims;
  Sizes shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), x.shape.begin() + first + depth, x.shape.end());
  Array out(x.dtype, shape);
  const int64_t batch = product(x.shape, 0, first), rows = product(indices.shape) / depth;
  const int64_t blocks = product(x.shape, first, first + depth),
                inner = product(x.shape, first + depth, x.rank());
  if (batch == 0) return out;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from = row / (rows / batch) * blocks + named_block(x, indices, row, first);
    for (int64_t i = 0; i < inner; ++i) out[row * inner + i] = x[from * inner + i];
  }
  return out;
}

Array run_scatter_elements(const Operands& in, const ir::ScatterElements& op) {
  Array out = *in[0];
  const ElementPlaces places(*in[0], *in[1], op.axis);
  for (int64_t i = 0; i < in[2]->size(); ++i) {
    double& slot = out[places(i)];
    slot = reduced(op.reduction, slot, (*in[2])[i]);
  }
  return out;
}

Array run_scatter_nd(const Operands& in, ir::ScatterReduction reduction) {
  Array out = *in[0];
  const Array &indices = *in[1], &updates = *in[2];
  const int64_t depth = indices.shape.back(), inner = product(out.shape, depth, out.rank());
  for (int64_t row = 0; row < indices.size() / depth; ++row) {
    const int64_t to = named_block(out, indices, row, 0) * inner;
    for (int64_t i = 0; i < inner; ++i)
      out[to + i] = reduced(reduction, out[to + i], updates[row * inner + i]);
  }
  return out;
}

Array run_non_zero(const Array& x) {
  const int64_t rank = x.rank();
  std::vector<double> places;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    int64_t rest = i;
    places.resize(places.size() + static_cast<size_t>(rank));
    for (int64_t axis = rank; axis-- > 0;) {
      const int64_t size = x.shape[static_cast<size_t>(axis)];
      places[places.size() - static_cast<size_t>(rank - axis)] = static_cast<double>(rest % size);
      rest /= size;
    }
  }
  Array out(DType::kI64, {static_cast<int64_t>(places.size()) / rank, rank});
  out.data = std::move(places);
  return out;
}

std::vector<Array> run_top_k(const Array& x, const ir::TopK& op, int64_t k) {
  const int64_t axis = axis_of(op.axis, x.rank());
  const int64_t size = x.shape[static_cast<size_t>(axis)],
                inner = product(x.shape, axis + 1, x.rank());
  if (k < 0 || k > size)
    fail(ErrorKind::kInvalidArgument, "[interpret] TopK: {} of an axis of {}", k, size);
  Sizes shape = x.shape;
  shape[static_cast<size_t>(axis)] = k;
  Array values(x.dtype, shape), indices(DType::kI64, shape);
  std::vector<int64_t> order(static_cast<size_t>(size));
  for (int64_t line = 0; line < product(x.shape, 0, axis) * inner; ++line) {
    const int64_t outer = line / inner, at = line % inner;
    const auto element = [&](int64_t i) { return x[(outer * size + i) * inner + at]; };
    const auto above = [](double a, double b) {  // NaN is the largest
      return std::isnan(a) ? !std::isnan(b) : a > b;
    };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return op.largest ? above(element(a), element(b)) : above(element(b), element(a));
    });
    for (int64_t i = 0; i < k; ++i) {
      values[(outer * k + i) * inner + at] = element(order[static_cast<size_t>(i)]);
      indices[(outer * k + i) * inner + at] = static_cast<double>(order[static_cast<size_t>(i)]);
    }
  }
  return {std::move(values), std::move(indices)};
}

}  // namespace tranship

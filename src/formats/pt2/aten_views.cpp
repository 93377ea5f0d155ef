// Operators whose result shares the storage of their operand.
#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "formats/pt2/aten_support.h"
#include "formats/pt2/expression.h"
#include "formats/pt2/resize_view.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Value;

// ---- another shape

Reference reshaped(const Reference& self, const Shape& shape) {
  return self.view([shape](Value base) { return reshape(base, shape); },
                   [](Value base, Value view) { return reshape(view, base.shape()); });
}

/// A copy where memory cannot be looked at in the new shape.
Results view_or_copy(Call& call, std::string_view self, const Shape& shape) {
  const Reference x = call.reference(self);
  if (is_viewable(call.find_meta(self), x.value().shape(), shape)) return {reshaped(x, shape)};
  return {Value(reshape(x.value(), shape))};
}

Results view(Call& call) {
  const Reference x = call.reference("self");
  return {reshaped(x, resolved_shape(call, x.value().shape(), call.sizes("size")))};
}

Results reshape_maybe(Call& call) {
  const Shape from = call.tensor("self").shape();
  return view_or_copy(call, "self", resolved_shape(call, from, call.sizes("shape")));
}

Results unsafe_view(Call& call) {
  const Value x = call.tensor("self");
  return {reshape(x, resolved_shape(call, x.shape(), call.sizes("size")))};
}

Results view_as(Call& call) {
  call.ignore({"self"});
  return view_or_copy(call, "self", call.tensor("other").shape());
}

Results contiguous(Call& call) {
  call.ignore({"memory_format"});
  const Reference x = call.reference("self");
  if (is_contiguous(call.find_meta("self"), x.value().shape()))
    return {reshaped(x, x.value().shape())};
  return {x.value()};
}

/// `flattened` axes from `first` on become one.
Shape flattened(const Shape& shape, int64_t first, int64_t last) {
  Shape out;
  Dim product = 1;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (i < first || i > last) {
      out.dims.push_back(shape[i]);
      continue;
    }
    product = product * shape[i];
    if (i == last) out.dims.push_back(product);
  }
  return out;
}

Results flatten(Call& call) {
  const Value x = call.tensor("self");
  const int64_t first = axis_of(call, call.integer("start_dim", 0), x.rank());
  const int64_t last = axis_of(call, call.integer("end_dim", -1), x.rank());
  return view_or_copy(call, "self", x.rank() == 0 ? Shape{1} : flattened(x.shape(), first, last));
}

Results ravel(Call& call) {
  return view_or_copy(call, "self", {call.tensor("self").shape().num_elements()});
}

Results unflatten(Call& call) {
  const Reference x = call.reference("self");
  const Shape shape = x.value().shape();
  const int64_t axis = axis_of(call, call.integer("dim"), shape.rank());
  std::vector<Dim> dims(shape.dims.begin(), shape.dims.begin() + axis);
  for (const Dim& d : call.sizes("sizes")) dims.push_back(d);
  dims.insert(dims.end(), shape.dims.begin() + axis + 1, shape.dims.end());
  return {reshaped(x, resolved_shape(call, shape, dims))};
}

Results unsqueeze_axis(Call& call) {
  const Reference x = call.reference("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.value().rank() + 1);
  return {x.view([axis](Value base) { return unsqueeze(base, {axis}); },
                 [axis](Value, Value view) { return squeeze(view, {axis}); })};
}

Reference squeezed(const Reference& x, const std::vector<int64_t>& axes) {
  if (axes.empty()) return reshaped(x, x.value().shape());
  return x.view([axes](Value base) { return squeeze(base, axes); },
                [axes](Value, Value view) { return unsqueeze(view, axes); });
}

/// Only axes of size 1 go; where the size is not known, the file's rank says what PyTorch saw.
Results squeeze_axes(Call& call) {
  const Reference x = call.reference("self");
  const Shape shape = x.value().shape();
  std::vector<int64_t> asked;
  if (call.node().target.find(".dim") != std::string::npos) {
    asked = axes_of(call, call.integers("dim"), shape.rank());
  } else {
    asked = all_axes(shape.rank());
  }
  std::vector<int64_t> ones, open;
  for (const int64_t axis : asked) {
    if (shape.rank() == 0) continue;
    if (shape[axis] == Dim(1)) ones.push_back(axis);
    if (!shape[axis].is_static()) open.push_back(axis);
  }
  const auto rank = static_cast<int64_t>(call.output_meta(0).sizes.size());
  const int64_t missing = shape.rank() - static_cast<int64_t>(ones.size()) - rank;
  if (missing == static_cast<int64_t>(open.size()))
    ones.insert(ones.end(), open.begin(), open.end());
  std::ranges::sort(ones);
  return {squeezed(x, ones)};
}

Results expand_to(Call& call) {
  const Reference x = call.reference("self");
  const Shape from = x.value().shape();
  Shape to(call.sizes("size"));
  call.ignore({"implicit"});
  const int64_t extra = to.rank() - from.rank();
  if (extra < 0) call.corrupt("{} does not expand to {}", from.text(), to.text());
  for (int64_t i = 0; i < to.rank(); ++i) {
    if (to[i] == Dim(-1) && i >= extra) to[i] = from[i - extra];
  }
  return {x.view([to](Value base) { return expanded(base, to); },
                 [](Value base, Value view) {
                   if (base.shape() == view.shape()) return view;
                   fail(ErrorKind::kUnsupported, "writing through an expanded tensor");
                 })};
}

Results expand_as(Call& call) {
  const Reference x = call.reference("self");
  const Shape to = call.tensor("other").shape();
  return {x.view([to](Value base) { return expanded(base, to); },
                 [](Value base, Value view) {
                   if (base.shape() == view.shape()) return view;
                   fail(ErrorKind::kUnsupported, "writing through an expanded tensor");
                 })};
}

// ---- another order of axes

Reference permuted(const Reference& x, const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const bool same = std::ranges::is_sorted(perm);
  return x.view([=](Value base) { return same ? base : ir::transpose(base, perm); },
                [=](Value, Value view) { return same ? view : ir::transpose(view, inverse); });
}

Results permute(Call& call) {
  const Reference x = call.reference("self");
  const std::vector<int64_t> perm = axes_of(call, call.integers("dims"), x.value().rank());
  if (std::ssize(perm) != x.value().rank()) call.corrupt("dims do not name each axis once");
  return {permuted(x, perm)};
}

Results swapped(Call& call, std::string_view first, std::string_view second) {
  const Reference x = call.reference("self");
  const int64_t rank = x.value().rank();
  const int64_t a = axis_of(call, call.integer(first), rank);
  const int64_t b = axis_of(call, call.integer(second), rank);
  std::vector<int64_t> perm = all_axes(rank);
  if (rank > 0) std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  return {permuted(x, perm)};
}
Results transpose_axes(Call& call) { return swapped(call, "dim0", "dim1"); }
Results swapaxes(Call& call) { return swapped(call, "axis0", "axis1"); }

/// The last two axes of a matrix or of many.
Results matrix_transpose(Call& call) {
  const Reference x = call.reference("self");
  std::vector<int64_t> perm = all_axes(x.value().rank());
  if (perm.size() > 1) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return {permuted(x, perm)};
}

Results reversed_axes(Call& call) {
  const Reference x = call.reference("self");
  std::vector<int64_t> perm = all_axes(x.value().rank());
  std::ranges::reverse(perm);
  return {permuted(x, perm)};
}

Results movedim(Call& call) {
  const Reference x = call.reference("self");
  const int64_t rank = x.value().rank();
  const std::vector<int64_t> from = axes_of(call, call.integers("source"), rank);
  const std::vector<int64_t> to = axes_of(call, call.integers("destination"), rank);
  if (from.size() != to.size()) call.corrupt("{} axes move to {} places", from.size(), to.size());
  std::vector<int64_t> perm(static_cast<size_t>(rank), -1), rest = all_axes(rank);
  for (size_t i = 0; i < from.size(); ++i) {
    perm[static_cast<size_t>(to[i])] = from[i];
    std::erase(rest, from[i]);
  }
  auto next = rest.begin();
  for (int64_t& axis : perm) {
    if (axis < 0 && next != rest.end()) axis = *next++;
  }
  return {permuted(x, perm)};
}

// ---- a part

/// What is written into part of an axis: the rest stays.
Value written_slice(Value base, Value view, const ir::Slice& part) {
  const Dim size = base.shape()[part.axis];
  if (part.begin == Dim(0) && part.end == size && part.step == 1) return view;
  if (part.step == 1) {
    std::vector<Value> parts;
    if (!(part.begin == Dim(0))) parts.push_back(slice(base, part.axis, 0, part.begin));
    parts.push_back(view);
    if (!(part.end == size)) parts.push_back(slice(base, part.axis, part.end, size));
    return concat(parts, part.axis);
  }
  const Value front = move_axis(base, part.axis, 0), updates = move_axis(view, part.axis, 0);
  const Value at = counted(base.graph(), part.begin, part.step, view.shape()[part.axis]);
  const Value out = add_node(base.graph(), ir::ScatterNd(), {front, unsqueeze(at, {1}), updates});
  return move_axis(out, 0, part.axis);
}

Reference sliced(const Reference& x, ir::Slice part) {
  const auto read = [part](Value base) {
    const bool whole =
        part.begin == Dim(0) && part.end == base.shape()[part.axis] && part.step == 1;
    return whole ? base : add_node(base.graph(), part, {base});
  };
  return x.view(read, [part](Value base, Value view) { return written_slice(base, view, part); });
}

ir::Slice slice_of(int64_t axis, Dim begin, Dim end, int64_t step = 1) {
  ir::Slice part;
  part.axis = axis;
  part.begin = std::move(begin);
  part.end = std::move(end);
  part.step = step;
  return part;
}

constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();

/// An end as far as it goes without limits.
Dim unclamped(const Dim& index, const Dim& size) {
  return index.is_static() && index.value() < 0 ? size + index : index;
}

/// Bounds are clamped to the axis, but where the file says that PyTorch knew better.
ir::Slice slice_part(Call& call, int64_t axis, const Dim& size) {
  const Dim start = call.optional_size("start").value_or(0);
  const Dim stop = call.optional_size("end").value_or(kOpenEnd);
  const int64_t step = call.integer("step", 1);
  if (step < 1) call.corrupt("a step of {}", step);
  const bool open = stop.is_static() && stop.value() == kOpenEnd;
  const Bounds& bounds = call.bounds();
  ir::Slice part =
      slice_of(axis, bounds.clamp(start, size), open ? size : bounds.clamp(stop, size), step);
  if (!bounds.is_known_le(part.begin, part.end)) {
    const Dim begin = unclamped(start, size), end = open ? size : unclamped(stop, size);
    const auto said = call.output_sizes()[static_cast<size_t>(axis)];
    if (said && *said == ceil_div(end - begin, step)) return slice_of(axis, begin, end, step);
    part.end = bounds.larger(part.begin, part.end);
    return part;
  }
  const auto said = call.output_sizes()[static_cast<size_t>(axis)];
  if (said && !(*said == ceil_div(part.end - part.begin, step))) {
    const Dim begin = unclamped(start, size), end = open ? size : unclamped(stop, size);
    if (*said == ceil_div(end - begin, step)) return slice_of(axis, begin, end, step);
  }
  return part;
}

Results slice_axis(Call& call) {
  const Reference x = call.reference("self");
  const int64_t axis = axis_of(call, call.integer("dim", 0), x.value().rank());
  return {slice_view(call, x, axis)};
}

Results slice_scatter(Call& call) {
  const Value x = call.tensor("self");
  const Value source = cast(call.tensor("src"), x.dtype());
  const int64_t axis = axis_of(call, call.integer("dim", 0), x.rank());
  const Dim size = x.shape()[axis];
  const Dim start = call.optional_size("start").value_or(0);
  const Dim stop = call.optional_size("end").value_or(kOpenEnd);
  const int64_t step = call.integer("step", 1);
  const bool open = stop.is_static() && stop.value() == kOpenEnd;
  const Dim begin = call.bounds().clamp(start, size);
  const Dim end = open ? size : call.bounds().clamp(stop, size);
  return {written_slice(x, source, slice_of(axis, begin, end, step))};
}

Results narrow(Call& call) {
  const Reference x = call.reference("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.value().rank());
  const Dim start = unclamped(call.size("start"), x.value().shape()[axis]);
  return {sliced(x, slice_of(axis, start, start + call.size("length")))};
}

Reference selected(const Reference& x, int64_t axis, const Dim& index) {
  return squeezed(sliced(x, slice_of(axis, index, index + 1)), {axis});
}

/// From the end if negative.
Dim element_index(Call& call, const Dim& index, const Dim& size) {
  const Interval interval = call.bounds().of(index);
  if (interval.max && *interval.max < 0) return size + index;
  if (interval.min && *interval.min >= 0) return index;
  return call.bounds().clamp(index, size);
}

Results select(Call& call) {
  const Reference x = call.reference("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.value().rank());
  return {selected(x, axis, element_index(call, call.size("index"), x.value().shape()[axis]))};
}

Results select_scatter(Call& call) {
  const Value x = call.tensor("self");
  const Value source = cast(call.tensor("src"), x.dtype());
  const int64_t axis = axis_of(call, call.integer("dim"), x.rank());
  const Dim index = element_index(call, call.size("index"), x.shape()[axis]);
  return {written_slice(x, unsqueeze(source, {axis}), slice_of(axis, index, index + 1))};
}

// ---- many parts

Results unbind(Call& call) {
  const Reference x = call.reference("self");
  const int64_t axis = axis_of(call, call.integer("dim", 0), x.value().rank());
  Results out;
  for (size_t i = 0; i < call.outputs().size(); ++i)
    out.push_back(selected(x, axis, static_cast<int64_t>(i)));
  return out;
}

/// Pieces of `size`, the last of what is left.
Results split_evenly(Call& call, const Reference& x, int64_t axis, const Dim& size) {
  Results out;
  Dim begin = 0;
  for (size_t i = 0; i < call.outputs().size(); ++i) {
    const bool last = i + 1 == call.outputs().size();
    const Dim end = last ? x.value().shape()[axis] : begin + size;
    out.push_back(sliced(x, slice_of(axis, begin, end)));
    begin = end;
  }
  return out;
}

Results split(Call& call) {
  const Reference x = call.reference("self");
  const Dim size = call.size("split_size");
  const int64_t axis = axis_of(call, call.integer("dim", 0), x.value().rank());
  return split_evenly(call, x, axis, size);
}

Results chunk(Call& call) {
  const Reference x = call.reference("self");
  const int64_t chunks = call.integer("chunks");
  const int64_t axis = axis_of(call, call.integer("dim", 0), x.value().rank());
  if (chunks < 1) call.corrupt("{} chunks", chunks);
  return split_evenly(call, x, axis, ceil_div(x.value().shape()[axis], chunks));
}

Results split_by(Call& call, const Reference& x, int64_t axis, const std::vector<Dim>& sizes) {
  if (sizes.size() != call.outputs().size())
    call.corrupt("{} pieces have {} names", sizes.size(), call.outputs().size());
  Results out;
  Dim begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool last = i + 1 == sizes.size();
    const Dim end = last ? x.value().shape()[axis] : begin + sizes[i];
    out.push_back(sliced(x, slice_of(axis, begin, end)));
    begin = end;
  }
  return out;
}

Results split_with_sizes(Call& call) {
  const Reference x = call.reference("self");
  const bool by_list = call.node().target.ends_with("split.sizes");
  const std::vector<Dim> sizes = call.sizes(by_list ? "split_size" : "split_sizes");
  const int64_t axis = axis_of(call, call.integer("dim", 0), x.value().rank());
  return split_by(call, x, axis, sizes);
}

/// The first size % sections pieces are one longer.
Results tensor_split(Call& call) {
  const Reference x = call.reference("self");
  const int64_t sections = call.integer("sections");
  const int64_t axis = axis_of(call, call.integer("dim", 0), x.value().rank());
  const Dim size = x.value().shape()[axis];
  if (!size.is_static()) fail(ErrorKind::kUnsupported, "sections of an axis that is not fixed");
  if (sections < 1 || sections > 65536) call.corrupt("{} sections", sections);
  std::vector<Dim> sizes;
  for (int64_t i = 0; i < sections; ++i)
    sizes.emplace_back(size.value() / sections + (i < size.value() % sections ? 1 : 0));
  return split_by(call, x, axis, sizes);
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.view.default", view},
    {"aten._unsafe_view.default", unsafe_view},
    {"aten.reshape.default", reshape_maybe},
    {"aten.view_as.default", view_as},
    {"aten.reshape_as.default", view_as},
    {"aten.contiguous.default", contiguous},
    {"aten.flatten.using_ints", flatten},
    {"aten.ravel.default", ravel},
    {"aten.unflatten.int", unflatten},
    {"aten.unsqueeze.default", unsqueeze_axis},
    {"aten.squeeze.default", squeeze_axes},
    {"aten.squeeze.dim", squeeze_axes},
    {"aten.squeeze.dims", squeeze_axes},
    {"aten.expand.default", expand_to},
    {"aten.expand_as.default", expand_as},
    {"aten.broadcast_to.default", expand_to},
    {"aten.permute.default", permute},
    {"aten.transpose.int", transpose_axes},
    {"aten.swapdims.default", transpose_axes},
    {"aten.swapaxes.default", swapaxes},
    {"aten.t.default", matrix_transpose},
    {"aten.mT.default", matrix_transpose},
    {"aten.mH.default", matrix_transpose},
    {"aten.adjoint.default", matrix_transpose},
    {"aten.numpy_T.default", reversed_axes},
    {"aten.movedim.int", movedim},
    {"aten.movedim.intlist", movedim},
    {"aten.moveaxis.int", movedim},
    {"aten.moveaxis.intlist", movedim},
    {"aten.slice.Tensor", slice_axis},
    {"aten.slice_scatter.default", slice_scatter},
    {"aten.narrow.default", narrow},
    {"aten.select.int", select},
    {"aten.select_scatter.default", select_scatter},
    {"aten.unbind.int", unbind},
    {"aten.split.Tensor", split},
    {"aten.split.sizes", split_with_sizes},
    {"aten.split_with_sizes.default", split_with_sizes},
    {"aten.unsafe_split.Tensor", split},
    {"aten.unsafe_split_with_sizes.default", split_with_sizes},
    {"aten.chunk.default", chunk},
    {"aten.unsafe_chunk.default", chunk},
    {"aten.tensor_split.sections", tensor_split},
});

}  // namespace

Reference slice_view(Call& call, const Reference& x, int64_t axis) {
  return sliced(x, slice_part(call, axis, x.value().shape()[axis]));
}

std::span<const Row> view_rows() { return kRows; }

}  // namespace tranship::pt2

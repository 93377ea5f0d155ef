// Operators that move elements to new tensors: joining, repeating, turning, padding.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/pt2/aten_support.h"
#include "formats/pt2/resize_view.h"

namespace tranship::pt2 {
namespace {

using ir::concat;
using ir::Dim;
using ir::Shape;
using ir::Value;

/// An old habit: empty tensors of one axis join anything, and change nothing.
bool is_nothing(const Value& x) { return x.rank() == 1 && x.shape()[0] == Dim(0); }

std::vector<Value> in_one_dtype(Call& call, std::string_view name) {
  std::vector<Value> parts = call.tensors(name);
  if (parts.empty()) call.corrupt("nothing is joined");
  std::vector<Operand> operands(parts.begin(), parts.end());
  const DType dtype = promoted(operands);
  for (Value& part : parts) part = cast(part, dtype);
  return parts;
}

Results cat(Call& call) {
  std::vector<Value> parts = in_one_dtype(call, "tensors");
  std::vector<Value> kept;
  for (const Value& part : parts) {
    if (!is_nothing(part)) kept.push_back(part);
  }
  if (kept.empty()) kept = {parts[0]};
  const int64_t axis = axis_of(call, call.integer("dim", 0), kept[0].rank());
  return {kept.size() == 1 ? kept[0] : concat(kept, axis)};
}

Results stack(Call& call) {
  std::vector<Value> parts = in_one_dtype(call, "tensors");
  const int64_t axis = axis_of(call, call.integer("dim", 0), parts[0].rank() + 1);
  for (Value& part : parts) part = unsqueeze(part, {axis});
  return {concat(parts, axis)};
}

Results hstack(Call& call) {
  std::vector<Value> parts = in_one_dtype(call, "tensors");
  for (Value& part : parts) part = with_axis_of_one(part);
  return {concat(parts, parts[0].rank() == 1 ? 0 : 1)};
}

Results vstack(Call& call) {
  std::vector<Value> parts = in_one_dtype(call, "tensors");
  for (Value& part : parts) part = part.rank() < 2 ? unsqueeze(with_axis_of_one(part), {0}) : part;
  return {concat(parts, 0)};
}

/// Each axis as often as said; new axes in front.
Value repeated(Value x, const std::vector<Dim>& counts) {
  const int64_t extra = std::ssize(counts) - x.rank();
  Shape apart, spread, joined;
  for (int64_t i = 0; i < std::ssize(counts); ++i) {
    const Dim size = i < extra ? Dim(1) : x.shape()[i - extra];
    const Dim& count = counts[static_cast<size_t>(i)];
    joined.dims.push_back(size * count);
    if (!(count == Dim(1))) {
      apart.dims.push_back(1);
      spread.dims.push_back(count);
    }
    apart.dims.push_back(size);
    spread.dims.push_back(size);
  }
  return reshape(expanded(reshape(x, apart), spread), joined);
}

Results repeat(Call& call) {
  const Value x = call.tensor("self");
  const std::vector<Dim> counts = call.sizes("repeats");
  if (std::ssize(counts) < x.rank()) call.corrupt("fewer counts than axes");
  return {repeated(x, counts)};
}

Results tile(Call& call) {
  const Value x = call.tensor("self");
  std::vector<Dim> counts = call.sizes("dims");
  while (std::ssize(counts) < x.rank()) counts.insert(counts.begin(), 1);
  return {repeated(x, counts)};
}

/// Each element `repeats` times in a row.
Results repeat_interleave(Call& call) {
  Value x = call.tensor("self");
  const Dim repeats = call.size("repeats");
  const std::optional<int64_t> dim = call.optional_integer("dim");
  call.ignore({"output_size"});
  if (!dim) x = reshape(x, {x.shape().num_elements()});
  const int64_t axis = axis_of(call, dim.value_or(0), x.rank());
  Shape spread = x.shape(), joined = x.shape();
  spread.dims.insert(spread.dims.begin() + axis + 1, repeats);
  joined[axis] = joined[axis] * repeats;
  return {reshape(expanded(unsqueeze(x, {axis + 1}), spread), joined)};
}

/// With a count for each element: element i of the result is the one whose run of copies i is in.
Results repeat_interleave_counts(Call& call) {
  Value x = call.tensor("self");
  const Value counts = cast(call.tensor("repeats"), DType::kI64);
  const std::optional<int64_t> dim = call.optional_integer("dim");
  call.ignore({"output_size"});
  if (!dim) x = reshape(x, {x.shape().num_elements()});
  const int64_t axis = axis_of(call, dim.value_or(0), x.rank());
  const std::optional<Dim> said = call.output_sizes()[static_cast<size_t>(axis)];
  ir::Graph& g = call.graph();
  const Value ends = cumsum(expanded(with_axis_of_one(counts), {x.shape()[axis]}), 0);
  const Value total = reduce(ir::ReduceKind::kMax, ends, {0}, false);
  Dim length = said.value_or(0);
  const std::optional<std::string> symbol = said ? said->as_symbol() : std::nullopt;
  if (!said || (symbol && !call.symbols().bound.contains(*symbol))) {
    ir::Item item;
    item.value = length = call.symbols().birth(said);
    add_node(g, std::move(item), {total});
  }
  const Value place = unsqueeze(iota(g, length), {1});
  const Value before = compare(ir::CompareKind::kLessEqual, unsqueeze(ends, {0}), place);
  const Value source = reduce(ir::ReduceKind::kSum, cast(before, DType::kI64), {1}, false);
  return {gather(x, source, axis)};
}

/// The last `shift` elements come first.
Value rolled(Call& call, Value x, int64_t axis, const Dim& shift) {
  const Dim size = x.shape()[axis];
  Dim split = shift.is_static() && size.is_static()
                  ? size - mod(shift, call.bounds().larger(size, 1))
              : shift.is_static() && shift.value() < 0 ? shift * Dim(-1)
                                                       : size - shift;
  if (!size.is_static() || !shift.is_static()) split = mod(split, call.bounds().larger(size, 1));
  if (split == Dim(0) || split == size) return x;
  return concat({slice(x, axis, split, size), slice(x, axis, 0, split)}, axis);
}

Results roll(Call& call) {
  const Value x = call.tensor("self");
  const std::vector<Dim> shifts = call.sizes("shifts");
  const std::vector<int64_t> axes = axes_of(call, call.integers("dims"), x.rank());
  if (axes.empty() && shifts.size() == 1) {
    const Value flat = reshape(x, {x.shape().num_elements()});
    return {reshape(rolled(call, flat, 0, shifts[0]), x.shape())};
  }
  if (axes.size() != shifts.size())
    call.corrupt("{} shifts of {} axes", shifts.size(), axes.size());
  Value y = x;
  for (size_t i = 0; i < axes.size(); ++i) y = rolled(call, y, axes[i], shifts[i]);
  return {y};
}

Value flipped(Value x, int64_t axis) {
  const Dim size = x.shape()[axis];
  return gather(x, counted(x.graph(), size - 1, -1, size), axis);
}

Results flip(Call& call) {
  Value x = call.tensor("self");
  for (const int64_t axis : axes_of(call, call.integers("dims"), x.rank())) x = flipped(x, axis);
  return {x};
}

Results rot90(Call& call) {
  Value x = call.tensor("self");
  const int64_t turns = ((call.integer("k", 1) % 4) + 4) % 4;
  const std::vector<int64_t> axes = axes_of(call, call.integers("dims", {0, 1}), x.rank());
  if (axes.size() != 2) call.corrupt("a plane has two axes");
  std::vector<int64_t> perm = all_axes(x.rank());
  std::swap(perm[static_cast<size_t>(axes[0])], perm[static_cast<size_t>(axes[1])]);
  if (turns == 2) return {flipped(flipped(x, axes[0]), axes[1])};
  if (turns == 1) return {flipped(transpose(x, perm), axes[0])};
  if (turns == 3) return {transpose(flipped(x, axes[0]), perm)};
  return {x};
}

/// A view that nothing is written through: where it would have to go is not worked out.
Reference read_only(const Reference& x, Reference::Read read) {
  return x.view(std::move(read), [](Value, Value) -> Value {
    fail(ErrorKind::kUnsupported, "writing through a view of windows or diagonals");
  });
}

/// Windows of an axis: their elements become a new last axis.
Results unfold(Call& call) {
  const Reference x = call.reference("self");
  const Shape shape = x.value().shape();
  const int64_t axis = axis_of(call, call.integer("dimension"), shape.rank());
  const int64_t size = call.integer("size"), step = call.integer("step");
  if (size < 0 || step < 1) call.corrupt("windows of {} each {}", size, step);
  const Dim count = floor_div(shape[axis] - size, step) + 1;
  return {read_only(x, [=](Value base) {
    const Value at =
        unsqueeze(counted(base.graph(), 0, step, count), {1}) + iota(base.graph(), size);
    return move_axis(gather(base, at, axis), axis + 1, base.rank());
  })};
}

/// Where the elements of a strided view stand in memory.
Value strided_places(ir::Graph& g, const std::vector<Dim>& sizes, const std::vector<Dim>& strides,
                     const Dim& offset) {
  Value at = number_value(g, offset, DType::kI64);
  for (int64_t i = 0; i < std::ssize(sizes); ++i) {
    std::vector<int64_t> others = all_axes(std::ssize(sizes));
    std::erase(others, i);
    const Value along =
        counted(g, 0, strides[static_cast<size_t>(i)], sizes[static_cast<size_t>(i)]);
    at = at + (others.empty() ? along : unsqueeze(along, others));
  }
  return at;
}

/// Only of memory that is row-major from its first element on.
Results as_strided(Call& call) {
  const Reference x = call.reference("self");
  const std::vector<Dim> sizes = call.sizes("size"), strides = call.sizes("stride");
  const Dim offset = call.optional_size("storage_offset").value_or(0);
  const TensorMeta* meta = call.find_meta("self");
  const auto* begin = meta == nullptr ? nullptr : std::get_if<int64_t>(&meta->storage_offset);
  if (begin == nullptr || *begin != 0 || !is_contiguous(meta, x.value().shape()))
    fail(ErrorKind::kUnsupported, "as_strided of a tensor that is itself a view");
  if (sizes.size() != strides.size())
    call.corrupt("{} sizes and {} strides", sizes.size(), strides.size());
  return {read_only(x, [=](Value base) {
    const Value at = strided_places(base.graph(), sizes, strides, offset);
    return gather(reshape(base, {base.shape().num_elements()}), at, 0);
  })};
}

// ---- padding

/// Pairs (before, after), the last axis first; negative ones cut off.
Value padded(Call& call, Value x, const std::vector<Dim>& amounts, ir::PadMode mode, Value value) {
  if (amounts.size() % 2 != 0 || std::ssize(amounts) > 2 * x.rank())
    call.corrupt("{} amounts of padding for {} axes", amounts.size(), x.rank());
  ir::Pad pad;
  pad.mode = mode;
  pad.begin.dims.assign(static_cast<size_t>(x.rank()), 0);
  pad.end = pad.begin;
  for (int64_t i = 0; i < std::ssize(amounts) / 2; ++i) {
    const int64_t axis = x.rank() - 1 - i;
    Dim before = amounts[static_cast<size_t>(2 * i)],
        after = amounts[static_cast<size_t>(2 * i + 1)];
    const Dim size = x.shape()[axis];
    const bool cuts_before = before.is_static() && before.value() < 0;
    const bool cuts_after = after.is_static() && after.value() < 0;
    if (cuts_before || cuts_after) {
      x = slice(x, axis, cuts_before ? before * Dim(-1) : Dim(0), cuts_after ? size + after : size);
    }
    pad.begin[axis] = cuts_before ? Dim(0) : before;
    pad.end[axis] = cuts_after ? Dim(0) : after;
  }
  const Shape none(std::vector<Dim>(static_cast<size_t>(x.rank()), 0));
  if (pad.begin == none && pad.end == none) return x;
  return add_node(x.graph(), std::move(pad), {x, value});
}

Value pad_value(Call& call, Value x, const Number& number) {
  return number_value(call.graph(), number, x.dtype());
}

Results constant_pad(Call& call) {
  const Value x = call.tensor("self");
  const std::vector<Dim> amounts = call.sizes("pad");
  const Number value = call.number("value", Dim(0));
  return {padded(call, x, amounts, ir::PadMode::kConstant, pad_value(call, x, value))};
}

Results pad(Call& call) {
  const Value x = call.tensor("self");
  const std::vector<Dim> amounts = call.sizes("pad");
  const std::string mode = call.text("mode", "constant");
  const Number value = call.number("value", Dim(0));
  if (mode == "constant")
    return {padded(call, x, amounts, ir::PadMode::kConstant, pad_value(call, x, value))};
  if (mode == "reflect") return {padded(call, x, amounts, ir::PadMode::kReflect, {})};
  if (mode == "replicate") return {padded(call, x, amounts, ir::PadMode::kEdge, {})};
  if (mode == "circular") return {padded(call, x, amounts, ir::PadMode::kWrap, {})};
  call.corrupt("the mode '{}'", mode);
}

template <ir::PadMode kMode>
Results edge_pad(Call& call) {
  const Value x = call.tensor("self");
  return {padded(call, x, call.sizes("padding"), kMode, {})};
}

// ---- channels and pixels

/// [..., C r^2, H, W] -> [..., C, H r, W r].
Results pixel_shuffle(Call& call) {
  const Value x = call.tensor("self");
  const int64_t r = call.integer("upscale_factor");
  if (x.rank() < 3 || r < 1) call.corrupt("pixels of {} by {}", x.shape().text(), r);
  const Shape lead(std::vector<Dim>(x.shape().dims.begin(), x.shape().dims.end() - 3));
  const Dim channels = floor_div(x.shape()[-3], r * r), h = x.shape()[-2], w = x.shape()[-1];
  Shape apart = lead, out = lead;
  for (const Dim& d : {channels, Dim(r), Dim(r), h, w}) apart.dims.push_back(d);
  for (const Dim& d : {channels, h * r, w * r}) out.dims.push_back(d);
  const int64_t n = lead.rank();
  std::vector<int64_t> perm = all_axes(n);
  for (const int64_t axis : {0, 3, 1, 4, 2}) perm.push_back(n + axis);
  return {reshape(transpose(reshape(x, apart), perm), out)};
}

/// [..., C, H r, W r] -> [..., C r^2, H, W].
Results pixel_unshuffle(Call& call) {
  const Value x = call.tensor("self");
  const int64_t r = call.integer("downscale_factor");
  if (x.rank() < 3 || r < 1) call.corrupt("pixels of {} by {}", x.shape().text(), r);
  const Shape lead(std::vector<Dim>(x.shape().dims.begin(), x.shape().dims.end() - 3));
  const Dim channels = x.shape()[-3], h = floor_div(x.shape()[-2], r),
            w = floor_div(x.shape()[-1], r);
  Shape apart = lead, out = lead;
  for (const Dim& d : {channels, h, Dim(r), w, Dim(r)}) apart.dims.push_back(d);
  for (const Dim& d : {channels * (r * r), h, w}) out.dims.push_back(d);
  const int64_t n = lead.rank();
  std::vector<int64_t> perm = all_axes(n);
  for (const int64_t axis : {0, 2, 4, 1, 3}) perm.push_back(n + axis);
  return {reshape(transpose(reshape(x, apart), perm), out)};
}

Results channel_shuffle(Call& call) {
  const Value x = call.tensor("self");
  const Dim groups = call.size("groups");
  Shape apart = x.shape();
  apart[1] = groups;
  apart.dims.insert(apart.dims.begin() + 2, floor_div(x.shape()[1], groups));
  std::vector<int64_t> perm = all_axes(apart.rank());
  std::swap(perm[1], perm[2]);
  return {reshape(transpose(reshape(x, apart), perm), x.shape())};
}

// ---- diagonals and grids

/// Elements (i, i + offset) of two axes become a new last axis.
Results diagonal(Call& call) {
  const Reference x = call.reference("self");
  const Shape shape = x.value().shape();
  const int64_t offset = call.integer("offset", 0);
  const int64_t first = axis_of(call, call.integer("dim1", 0), shape.rank());
  const int64_t second = axis_of(call, call.integer("dim2", 1), shape.rank());
  if (first == second) call.corrupt("a diagonal of one axis");
  const Dim rows = shape[first], columns = shape[second];
  const int64_t down = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
  const Dim length = call.bounds().larger(call.bounds().smaller(rows - down, columns - right), 0);
  return {read_only(x, [=](Value base) {
    std::vector<int64_t> perm = all_axes(base.rank());
    std::erase(perm, first);
    std::erase(perm, second);
    Shape flat;
    for (const int64_t axis : perm) flat.dims.push_back(base.shape()[axis]);
    flat.dims.push_back(rows * columns);
    perm.push_back(first);
    perm.push_back(second);
    const Value at = counted(base.graph(), columns * down + right, columns + 1, length);
    return gather(reshape(transpose(base, perm), flat), at, -1);
  })};
}

/// The last axis becomes the diagonal of two new ones.
Results diag_embed(Call& call) {
  const Value x = call.tensor("self");
  const int64_t offset = call.integer("offset", 0);
  const int64_t first = axis_of(call, call.integer("dim1", -2), x.rank() + 1);
  const int64_t second = axis_of(call, call.integer("dim2", -1), x.rank() + 1);
  if (offset != 0 || first != x.rank() - 1 || second != x.rank())
    fail(ErrorKind::kUnsupported, "diag_embed of other axes than the last two, or with an offset");
  const Value row = iota(call.graph(), x.shape().back());
  const Value mask = compare(ir::CompareKind::kEqual, unsqueeze(row, {1}), row);
  return {where(mask, unsqueeze(x, {-1}), scalar(call.graph(), x.dtype(), 0))};
}

/// Each tensor along an axis of its own.
Results grid(Call& call, bool rows_first) {
  std::vector<Value> parts = call.tensors("tensors");
  Shape shape;
  for (Value& part : parts) {
    part = with_axis_of_one(part);
    shape.dims.push_back(part.shape()[0]);
  }
  std::vector<int64_t> perm = all_axes(std::ssize(parts));
  const bool swaps = !rows_first && parts.size() > 1;
  if (swaps) std::swap(perm[0], perm[1]);
  Results out;
  for (int64_t i = 0; i < std::ssize(parts); ++i) {
    std::vector<int64_t> others = all_axes(std::ssize(parts));
    std::erase(others, i);
    Value part = parts[static_cast<size_t>(i)];
    if (!others.empty()) part = unsqueeze(part, others);
    part = expanded(part, shape);
    out.emplace_back(swaps ? transpose(part, perm) : part);
  }
  return out;
}

Results meshgrid(Call& call) { return grid(call, true); }
Results meshgrid_indexing(Call& call) {
  const std::string indexing = call.text("indexing", "ij");
  return grid(call, indexing == "ij");
}

Results broadcast_tensors(Call& call) {
  const std::vector<Value> parts = call.tensors("tensors");
  Shape shape;
  for (const Value& part : parts) shape = broadcast_shape(shape, part.shape());
  Results out;
  for (const Value& part : parts) out.emplace_back(expanded(part, shape));
  return out;
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.cat.default", cat},
    {"aten.concat.default", cat},
    {"aten.concatenate.default", cat},
    {"aten.stack.default", stack},
    {"aten.hstack.default", hstack},
    {"aten.vstack.default", vstack},
    {"aten.repeat.default", repeat},
    {"aten.tile.default", tile},
    {"aten.repeat_interleave.self_int", repeat_interleave},
    {"aten.repeat_interleave.self_Tensor", repeat_interleave_counts},
    {"aten.roll.default", roll},
    {"aten.flip.default", flip},
    {"aten.rot90.default", rot90},
    {"aten.unfold.default", unfold},
    {"aten.as_strided.default", as_strided},
    {"aten.constant_pad_nd.default", constant_pad},
    {"aten.pad.default", pad},
    {"aten.reflection_pad1d.default", edge_pad<ir::PadMode::kReflect>},
    {"aten.reflection_pad2d.default", edge_pad<ir::PadMode::kReflect>},
    {"aten.reflection_pad3d.default", edge_pad<ir::PadMode::kReflect>},
    {"aten.replication_pad1d.default", edge_pad<ir::PadMode::kEdge>},
    {"aten.replication_pad2d.default", edge_pad<ir::PadMode::kEdge>},
    {"aten.replication_pad3d.default", edge_pad<ir::PadMode::kEdge>},
    {"aten._pad_circular.default", edge_pad<ir::PadMode::kWrap>},
    {"aten.pixel_shuffle.default", pixel_shuffle},
    {"aten.pixel_unshuffle.default", pixel_unshuffle},
    {"aten.channel_shuffle.default", channel_shuffle},
    {"aten.diagonal.default", diagonal},
    {"aten.diag_embed.default", diag_embed},
    {"aten.meshgrid.default", meshgrid},
    {"aten.meshgrid.indexing", meshgrid_indexing},
    {"aten.broadcast_tensors.default", broadcast_tensors},
});

}  // namespace

std::span<const Row> shape_rows() { return kRows; }

}  // namespace tranship::pt2

// Operators that make tensors out of nothing but sizes and numbers.
#include <array>
#include <cmath>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::Dim;
using ir::Shape;
using ir::Value;

void ignore_placement(Call& call) {
  call.ignore({"layout", "device", "pin_memory", "memory_format", "names"});
}

Results filled(Call& call, const Number& value, DType dtype, Shape shape) {
  ignore_placement(call);
  return {expanded(number_value(call.graph(), value, dtype), shape)};
}

Number constant_number(int64_t value) { return Dim(value); }

/// zeros, ones; what is empty may hold anything, so it holds zeros.
template <int64_t kValue>
Results of_size(Call& call) {
  const Shape shape(call.sizes("size"));
  return filled(call, constant_number(kValue), call.dtype("dtype").value_or(DType::kF32), shape);
}

template <int64_t kValue>
Results like(Call& call) {
  const Value x = call.tensor("self");
  const DType dtype = call.dtype("dtype").value_or(x.dtype());
  return filled(call, constant_number(kValue), dtype, x.shape());
}

template <int64_t kValue>
Results new_of_size(Call& call) {
  const DType self = call.tensor("self").dtype();
  const Shape shape(call.sizes("size"));
  return filled(call, constant_number(kValue), call.dtype("dtype").value_or(self), shape);
}

Results empty_strided(Call& call) {
  const Shape shape(call.sizes("size"));
  call.ignore({"stride"});
  return filled(call, constant_number(0), call.dtype("dtype").value_or(DType::kF32), shape);
}

/// What PyTorch makes of a number of Python.
DType dtype_of(const Number& number) {
  switch (kind_of(number)) {
    case NumberKind::kBool:
      return DType::kBool;
    case NumberKind::kInt:
      return DType::kI64;
    case NumberKind::kFloat:
      return DType::kF32;
  }
  __builtin_unreachable();
}

Results full(Call& call) {
  const Shape shape(call.sizes("size"));
  const Number value = call.number("fill_value");
  return filled(call, value, call.dtype("dtype").value_or(dtype_of(value)), shape);
}

Results full_like(Call& call) {
  const Value x = call.tensor("self");
  const Number value = call.number("fill_value");
  return filled(call, value, call.dtype("dtype").value_or(x.dtype()), x.shape());
}

Results new_full(Call& call) {
  const DType self = call.tensor("self").dtype();
  const Shape shape(call.sizes("size"));
  const Number value = call.number("fill_value");
  return filled(call, value, call.dtype("dtype").value_or(self), shape);
}

Results scalar_tensor(Call& call) {
  const Number value = call.number("s");
  return filled(call, value, call.dtype("dtype").value_or(DType::kF32), {});
}

/// The number as a fraction of whole numbers, if it is one.
std::optional<Dim> as_size(const Number& number) {
  if (const auto* dim = std::get_if<Dim>(&number)) return *dim;
  const auto* real = std::get_if<double>(&number);
  if (real == nullptr || *real != std::floor(*real) || std::abs(*real) > 1e15) return std::nullopt;
  return Dim(static_cast<int64_t>(*real));
}

/// ceil((end - begin) / step) numbers from begin on.
Results range(Call& call, const Number& begin, const Number& end, const Number& step) {
  ignore_placement(call);
  DType dtype = DType::kI64;
  for (const Number* n : {&begin, &end, &step}) {
    if (kind_of(*n) == NumberKind::kFloat) dtype = DType::kF32;
  }
  dtype = call.dtype("dtype").value_or(dtype);
  ir::Graph& g = call.graph();
  const std::optional<Dim> b = as_size(begin), e = as_size(end), s = as_size(step);
  if (b && e && s) {
    Dim count = *e - *b;
    if (s->is_static() && s->value() < 0) count = *b - *e;
    const Dim size = s->is_static() && s->value() < 0 ? *s * Dim(-1) : *s;
    count = call.bounds().larger(ceil_div(count, size), 0);
    return {cast(counted(g, *b, *s, count), dtype)};
  }
  const std::optional<Dim> count = call.output_sizes()[0];
  if (!count) fail(ErrorKind::kUnsupported, "a range whose length depends on floats");
  const Value steps = cast(iota(g, *count), DType::kF64);
  return {cast(steps * number_value(g, step, DType::kF64) + number_value(g, begin, DType::kF64),
               dtype)};
}

Results arange(Call& call) { return range(call, Dim(0), call.number("end"), Dim(1)); }
Results arange_start(Call& call) {
  const Number begin = call.number("start");
  return range(call, begin, call.number("end"), Dim(1));
}
Results arange_step(Call& call) {
  const Number begin = call.number("start");
  const Number end = call.number("end");
  return range(call, begin, end, call.number("step", Dim(1)));
}

/// From both ends, so that the last one is exact.
Results linspace(Call& call) {
  const Number start = call.number("start"), stop = call.number("end");
  const Dim steps = call.size("steps");
  const DType dtype = call.dtype("dtype").value_or(DType::kF32);
  ignore_placement(call);
  ir::Graph& g = call.graph();
  const Value begin = number_value(g, start, DType::kF64);
  const Value end = number_value(g, stop, DType::kF64);
  if (steps == Dim(1)) return {cast(unsqueeze(begin, {0}), dtype)};
  const Value i = cast(iota(g, steps), DType::kF64);
  const Value last = cast(number_value(g, steps - 1, DType::kI64), DType::kF64);
  const Value step = (end - begin) / last;
  const Value from_begin = i * step + begin;
  const Value from_end = end - (last - i) * step;
  const Value half = cast(number_value(g, floor_div(steps, 2), DType::kI64), DType::kF64);
  return {cast(where(compare(CompareKind::kLess, i, half), from_begin, from_end), dtype)};
}

Value diagonal_mask(ir::Graph& g, CompareKind fn, Dim rows, Dim columns, Dim offset) {
  const Value diagonal = unsqueeze(counted(g, std::move(offset), 1, std::move(rows)), {1});
  return compare(fn, iota(g, std::move(columns)), diagonal);
}

Results eye(Call& call) {
  const Dim rows = call.size("n");
  const Dim columns = call.optional_size("m").value_or(rows);
  const DType dtype = call.dtype("dtype").value_or(DType::kF32);
  ignore_placement(call);
  return {cast(diagonal_mask(call.graph(), CompareKind::kEqual, rows, columns, 0), dtype)};
}
Results eye_square(Call& call) {
  const Dim rows = call.size("n");
  const DType dtype = call.dtype("dtype").value_or(DType::kF32);
  ignore_placement(call);
  return {cast(diagonal_mask(call.graph(), CompareKind::kEqual, rows, rows, 0), dtype)};
}

/// Below or above the diagonal; the rest becomes 0.
template <CompareKind kFn>
Results triangle(Call& call) {
  const Value x = call.tensor("self");
  const Dim offset = call.optional_size("diagonal").value_or(0);
  const Value mask = diagonal_mask(call.graph(), kFn, x.shape()[-2], x.shape()[-1], offset);
  if (x.dtype() == DType::kBool) return {binary(BinaryKind::kAnd, x, mask)};
  return {where(mask, x, scalar(call.graph(), x.dtype(), 0))};
}

/// The places of the lower or upper triangle of a matrix, row by row: [2, count].
template <bool kLower>
Results triangle_places(Call& call) {
  const int64_t rows = call.integer("row"), columns = call.integer("col");
  const int64_t offset = call.integer("offset", 0);
  const DType dtype = call.dtype("dtype").value_or(DType::kI64);
  ignore_placement(call);
  constexpr int64_t kMost = 1 << 12;
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost)
    fail(ErrorKind::kUnsupported, "places of a triangle of {} by {}", rows, columns);
  std::vector<int64_t> row_places, places;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (kLower ? c - r > offset : c - r < offset) continue;
      row_places.push_back(r);
      places.push_back(c);
    }
  }
  const int64_t count = std::ssize(places);
  places.insert(places.begin(), row_places.begin(), row_places.end());
  return {cast(constant(call.graph(), Tensor::of(places, {2, count})), dtype)};
}

Results fill_diagonal(Call& call) {
  const Value x = call.tensor("self");
  const Number value = call.number("fill_value");
  if (x.rank() != 2 || call.flag("wrap", false))
    fail(ErrorKind::kUnsupported, "a diagonal of other than a matrix, or one that wraps");
  const Value mask =
      diagonal_mask(call.graph(), CompareKind::kEqual, x.shape()[0], x.shape()[1], 0);
  return {where(mask, number_value(call.graph(), value, x.dtype()), x)};
}

Results one_hot(Call& call) {
  const Value x = call.tensor("self");
  int64_t classes = call.integer("num_classes", -1);
  if (classes < 0) {
    const std::optional<Dim> said = call.output_sizes().back();
    if (!said || !said->is_static()) fail(ErrorKind::kUnsupported, "classes counted from the data");
    classes = said->value();
  }
  const Value hits = compare(CompareKind::kEqual, unsqueeze(x, {-1}),
                             cast(iota(call.graph(), classes), x.dtype()));
  return {cast(hits, DType::kI64)};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.zeros.default", of_size<0>},
    {"aten.ones.default", of_size<1>},
    {"aten.empty.memory_format", of_size<0>},
    {"aten.empty_strided.default", empty_strided},
    {"aten.zeros_like.default", like<0>},
    {"aten.ones_like.default", like<1>},
    {"aten.empty_like.default", like<0>},
    {"aten.new_zeros.default", new_of_size<0>},
    {"aten.new_ones.default", new_of_size<1>},
    {"aten.new_empty.default", new_of_size<0>},
    {"aten.full.default", full},
    {"aten.full_like.default", full_like},
    {"aten.new_full.default", new_full},
    {"aten.scalar_tensor.default", scalar_tensor},
    {"aten.arange.default", arange},
    {"aten.arange.start", arange_start},
    {"aten.arange.start_step", arange_step},
    {"aten.linspace.default", linspace},
    {"aten.eye.default", eye_square},
    {"aten.eye.m", eye},
    {"aten.tril.default", triangle<CompareKind::kLessEqual>},
    {"aten.triu.default", triangle<CompareKind::kGreaterEqual>},
    {"aten.one_hot.default", one_hot},
    {"aten.tril_indices.default", triangle_places<true>},
    {"aten.triu_indices.default", triangle_places<false>},
    {"aten.fill_diagonal.default", fill_diagonal},
});

}  // namespace

std::span<const Row> creation_rows() { return kRows; }

}  // namespace tranship::pt2

// Complex numbers, as rotary embeddings use them: a complex tensor is a real one with a last axis
// of two, the real and the imaginary part.
#include <array>

#include "base/error.h"
#include "formats/pt2/aten_support.h"
#include "formats/pt2/resize_view.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;
using ir::UnaryKind;
using ir::Value;

Value joined(Value real, Value imaginary) {
  return ir::concat({unsqueeze(real, {-1}), unsqueeze(imaginary, {-1})}, -1);
}
Value part(Value complex, int64_t which) {
  return squeeze(slice(complex, complex.rank() - 1, which, which + 1), {-1});
}

/// Real and complex numbers are the same memory.
Results reinterpreted(Call& call) {
  return {call.reference("self").view([](Value base) { return base; },
                                      [](Value, Value view) { return view; })};
}

Results polar(Call& call) {
  const Value length = call.tensor("abs"), angle = call.tensor("angle");
  return {joined(length * unary(UnaryKind::kCos, angle), length * unary(UnaryKind::kSin, angle))};
}
Results complex(Call& call) {
  const Value real = call.tensor("real");
  return {joined(real, call.tensor("imag"))};
}

struct Pair {
  Value a, b;
  bool a_complex = false, b_complex = false;
};
Pair operands(Call& call) {
  Pair p;
  const Operand first = call.operand("self"), second = call.operand("other");
  p.a_complex = call.is_complex("self");
  p.b_complex = call.is_complex("other");
  const DType dtype = std::get<Value>(p.a_complex ? first : second).dtype();
  p.a = operand_value(call.graph(), first, dtype);
  p.b = operand_value(call.graph(), second, dtype);
  return p;
}

/// A real factor stands beside both parts.
Value beside_parts(Value real) { return unsqueeze(real, {-1}); }

Results mul(Call& call) {
  const Pair p = operands(call);
  if (!p.a_complex) return {beside_parts(p.a) * p.b};
  if (!p.b_complex) return {p.a * beside_parts(p.b)};
  const Value ar = part(p.a, 0), ai = part(p.a, 1), br = part(p.b, 0), bi = part(p.b, 1);
  return {joined(ar * br - ai * bi, ar * bi + ai * br)};
}

Results add(Call& call) {
  const Pair p = operands(call);
  call.refuse("alpha");
  if (!p.a_complex || !p.b_complex) fail(ErrorKind::kUnsupported, "sums of real and complex");
  return {p.a + p.b};
}

template <int64_t kPart>
Results part_of(Call& call) {
  return {part(call.tensor("self"), kPart)};
}

Results abs(Call& call) {
  const Value x = call.tensor("self");
  const Value squares = reduce(ir::ReduceKind::kSum, x * x, {-1}, false);
  return {unary(UnaryKind::kSqrt, squares)};
}

Results conj(Call& call) {
  const Value x = call.tensor("self");
  return {joined(part(x, 0), unary(UnaryKind::kNeg, part(x, 1)))};
}

Results copy(Call& call) {
  call.ignore({"memory_format", "dtype", "layout", "device", "pin_memory", "non_blocking", "copy"});
  return {call.tensor("self")};
}

Results unsqueeze_axis(Call& call) {
  const Reference x = call.reference("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.value().rank());
  return {x.view([axis](Value base) { return unsqueeze(base, {axis}); },
                 [axis](Value, Value view) { return squeeze(view, {axis}); })};
}

Results slice_axis(Call& call) {
  const Reference x = call.reference("self");
  return {slice_view(call, x, axis_of(call, call.integer("dim", 0), x.value().rank() - 1))};
}

Results transpose_axes(Call& call) {
  const Value x = call.tensor("self");
  const int64_t a = axis_of(call, call.integer("dim0"), x.rank() - 1);
  const int64_t b = axis_of(call, call.integer("dim1"), x.rank() - 1);
  std::vector<int64_t> perm = all_axes(x.rank());
  std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  return {transpose(x, perm)};
}

Results reshaped(Call& call) {
  const Value x = call.tensor("self");
  const bool is_view = call.node().target.find("view") != std::string::npos;
  const Shape from(std::vector<Dim>(x.shape().dims.begin(), x.shape().dims.end() - 1));
  Shape to = resolved_shape(call, from, call.sizes(is_view ? "size" : "shape"));
  to.dims.emplace_back(2);
  return {reshape(x, to)};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.view_as_complex.default", reinterpreted},
    {"aten.view_as_real.default", reinterpreted},
    {"aten.polar.default", polar},
    {"aten.complex.default", complex},
    {"aten.mul.Tensor", mul},
    {"aten.add.Tensor", add},
    {"aten.real.default", part_of<0>},
    {"aten.imag.default", part_of<1>},
    {"aten.abs.default", abs},
    {"aten.conj.default", conj},
    {"aten._conj.default", conj},
    {"aten.alias.default", reinterpreted},
    {"aten.detach.default", reinterpreted},
    {"aten.detach_.default", reinterpreted},
    {"aten.lift_fresh_copy.default", copy},
    {"aten.clone.default", copy},
    {"aten.contiguous.default", copy},
    {"aten.to.device", copy},
    {"aten.to.dtype", copy},
    {"aten.to.dtype_layout", copy},
    {"aten.unsqueeze.default", unsqueeze_axis},
    {"aten.slice.Tensor", slice_axis},
    {"aten.transpose.int", transpose_axes},
    {"aten.view.default", reshaped},
    {"aten.reshape.default", reshaped},
});

}  // namespace

std::span<const Row> complex_rows() { return kRows; }

}  // namespace tranship::pt2

// Arithmetic that ONNX has no operator for, or another one for each dtype.
#include "base/error.h"
#include "formats/onnx/op_lowering.h"

namespace tranship::onnx {

/// Python's for integers, C's for floats: the other two by parts.
std::string lower_mod(const OpLowering& n) {
  const bool is_fmod = ir::as<ir::Binary>(*n.node.op).fn == ir::BinaryKind::kFmod;
  const bool is_float = is_floating(n.dtype(0));
  const std::vector<Attribute> as_in_c = {Attribute::of("fmod", 1)};
  if (is_fmod) return n.last("Mod", n.in, as_in_c);
  if (!is_float) return n.last("Mod", n.in);
  const std::string rest = n.step("Mod", n.in, as_in_c), zero = n.emit.scalar(n.dtype(0), 0);
  const std::string other_sign =
      n.step("Xor", {n.step("Less", {rest, zero}), n.step("Less", {n.in[1], zero})});
  const std::string is_rest = n.step("Not", {n.step("Equal", {rest, zero})});
  return n.last("Where",
                {n.step("And", {other_sign, is_rest}), n.step("Add", {rest, n.in[1]}), rest});
}

/// BitShift takes unsigned numbers. A negative number shifts right as its complement does.
std::string lower_shift(const OpLowering& n) {
  const bool is_left = ir::as<ir::Binary>(*n.node.op).fn == ir::BinaryKind::kShiftLeft;
  const DType dtype = n.dtype(0);
  const auto shifted = [&](const std::string& x) {
    const std::string y =
        n.step("BitShift", {n.cast(x, dtype, DType::kU64), n.cast(n.in[1], dtype, DType::kU64)},
               {Attribute::of_text("direction", is_left ? "LEFT" : "RIGHT")});
    return n.cast(y, DType::kU64, dtype);
  };
  const bool is_unsigned =
      dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32 || dtype == DType::kU64;
  if (is_left || is_unsigned) return shifted(n.in[0]);
  const std::string is_negative = n.step("Less", {n.in[0], n.emit.scalar(dtype, 0)});
  const std::string complement = n.step("BitwiseNot", {shifted(n.step("BitwiseNot", {n.in[0]}))});
  return n.last("Where", {is_negative, complement, shifted(n.in[0])});
}

std::string lower_trunc(const OpLowering& n) {
  const std::string floor = n.step("Floor", {n.step("Abs", {n.in[0]})});
  return n.last("Mul", {n.step("Sign", {n.in[0]}), floor});
}

}  // namespace tranship::onnx

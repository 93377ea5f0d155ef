#include "tranship/dtype.h"

#include <array>

#include "base/error.h"

namespace tranship {
namespace {

struct Row {
  DType dtype;
  size_t bytes;
  std::string_view name;
  std::string_view torch_name;
};

constexpr std::array<Row, 15> kTable = {{
    {DType::kF64, 8, "f64", "float64"},
    {DType::kF32, 4, "f32", "float32"},
    {DType::kF16, 2, "f16", "float16"},
    {DType::kBF16, 2, "bf16", "bfloat16"},
    {DType::kF8E4M3, 1, "f8_e4m3", "float8_e4m3fn"},
    {DType::kF8E5M2, 1, "f8_e5m2", "float8_e5m2"},
    {DType::kI64, 8, "i64", "int64"},
    {DType::kI32, 4, "i32", "int32"},
    {DType::kI16, 2, "i16", "int16"},
    {DType::kI8, 1, "i8", "int8"},
    {DType::kU64, 8, "u64", "uint64"},
    {DType::kU32, 4, "u32", "uint32"},
    {DType::kU16, 2, "u16", "uint16"},
    {DType::kU8, 1, "u8", "uint8"},
    {DType::kBool, 1, "bool", "bool"},
}};

const Row& row(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

}  // namespace

size_t size_bytes(DType dtype) { return row(dtype).bytes; }
std::string_view name(DType dtype) { return row(dtype).name; }
std::string_view torch_name(DType dtype) { return row(dtype).torch_name; }

std::optional<DType> find_dtype(std::string_view name) {
  for (const Row& r : kTable) {
    if (r.name == name || r.torch_name == name) return r.dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) { return dtype <= DType::kF8E5M2; }
bool is_integer(DType dtype) { return dtype >= DType::kI64 && dtype <= DType::kU8; }

}  // namespace tranship

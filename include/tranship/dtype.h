// The element types that tensors have, with safetensors' names in lower case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tranship {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool
};

/// Bytes of one element.
size_t size_bytes(DType dtype);
/// "f32", "bf16", "i64", "bool" ...: the name used in text forms and on the command line.
std::string_view name(DType dtype);
/// "float32", "bfloat16", "int64", "bool" ...: PyTorch's name, as config.json and export.json have
/// it.
std::string_view torch_name(DType dtype);
/// Reads either kind of name; nothing for an unknown one.
std::optional<DType> find_dtype(std::string_view name);
bool is_floating(DType dtype);
/// Signed and unsigned integers; bool is not one.
bool is_integer(DType dtype);

}  // namespace tranship

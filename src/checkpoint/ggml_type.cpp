#include "checkpoint/ggml_type.h"

#include <array>

#include "base/error.h"

namespace tranship {
namespace {

// Sizes as in the public gguf package's GGML_QUANT_SIZES (0.19).
constexpr std::array<GgmlLayout, 34> kLayouts = {{
    {GgmlType::kF32, "F32", 1, 4},
    {GgmlType::kF16, "F16", 1, 2},
    {GgmlType::kQ4_0, "Q4_0", 32, 18},
    {GgmlType::kQ4_1, "Q4_1", 32, 20},
    {GgmlType::kQ5_0, "Q5_0", 32, 22},
    {GgmlType::kQ5_1, "Q5_1", 32, 24},
    {GgmlType::kQ8_0, "Q8_0", 32, 34},
    {GgmlType::kQ8_1, "Q8_1", 32, 40},
    {GgmlType::kQ2_K, "Q2_K", 256, 84},
    {GgmlType::kQ3_K, "Q3_K", 256, 110},
    {GgmlType::kQ4_K, "Q4_K", 256, 144},
    {GgmlType::kQ5_K, "Q5_K", 256, 176},
    {GgmlType::kQ6_K, "Q6_K", 256, 210},
    {GgmlType::kQ8_K, "Q8_K", 256, 292},
    {GgmlType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    {GgmlType::kIQ2_XS, "IQ2_XS", 256, 74},
    {GgmlType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    {GgmlType::kIQ1_S, "IQ1_S", 256, 50},
    {GgmlType::kIQ4_NL, "IQ4_NL", 32, 18},
    {GgmlType::kIQ3_S, "IQ3_S", 256, 110},
    {GgmlType::kIQ2_S, "IQ2_S", 256, 82},
    {GgmlType::kIQ4_XS, "IQ4_XS", 256, 136},
    {GgmlType::kI8, "I8", 1, 1},
    {GgmlType::kI16, "I16", 1, 2},
    {GgmlType::kI32, "I32", 1, 4},
    {GgmlType::kI64, "I64", 1, 8},
    {GgmlType::kF64, "F64", 1, 8},
    {GgmlType::kIQ1_M, "IQ1_M", 256, 56},
    {GgmlType::kBF16, "BF16", 1, 2},
    {GgmlType::kTQ1_0, "TQ1_0", 256, 54},
    {GgmlType::kTQ2_0, "TQ2_0", 256, 66},
    {GgmlType::kMXFP4, "MXFP4", 32, 17},
    {GgmlType::kNVFP4, "NVFP4", 64, 36},
    {GgmlType::kQ1_0, "Q1_0", 128, 18},
}};

}  // namespace

std::optional<GgmlLayout> find_ggml_layout(uint32_t number) {
  for (const GgmlLayout& row : kLayouts) {
    if (static_cast<uint32_t>(row.type) == number) return row;
  }
  return std::nullopt;
}

GgmlLayout layout(GgmlType type) {
  const auto found = find_ggml_layout(static_cast<uint32_t>(type));
  check(found.has_value(), "a ggml type without a layout");
  return *found;
}

std::string_view name(GgmlType type) { return layout(type).name; }

std::optional<DType> find_plain_dtype(GgmlType type) {
  switch (type) {
    case GgmlType::kF64:
      return DType::kF64;
    case GgmlType::kF32:
      return DType::kF32;
    case GgmlType::kF16:
      return DType::kF16;
    case GgmlType::kBF16:
      return DType::kBF16;
    case GgmlType::kI64:
      return DType::kI64;
    case GgmlType::kI32:
      return DType::kI32;
    case GgmlType::kI16:
      return DType::kI16;
    case GgmlType::kI8:
      return DType::kI8;
    default:
      return std::nullopt;
  }
}

}  // namespace tranship

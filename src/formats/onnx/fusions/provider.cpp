#include "formats/onnx/fusions/provider.h"

#include <algorithm>
#include <array>

namespace tranship::onnx {
namespace {

constexpr std::array kProviders = {Provider::kCpu, Provider::kCuda, Provider::kWebGpu,
                                   Provider::kDml};

const DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;

/// Other attention than that of a cache stays as it is: ONNX Runtime fuses it when it loads it.
/// Gate and up stay two products: a Split copies them, on one core (measured: docs/onnx.md).
Capabilities of_cpu() {
  return {.name = "cpu",
          .dtypes = {kF32},
          .grouped_dtypes = {kF32},
          .grouped_prompt_bias = true,
          .grouped_not_causal = true,
          .grouped_hides_rows = true,
          .least_packed = 3,
          .moe_dtypes = {kF32}};
}

/// A bias makes its GroupQueryAttention compute all scores (and needs ONNX Runtime 1.28), which for
/// a prompt costs more than MultiHeadAttention.
Capabilities of_cuda() {
  return {.name = "cuda",
          .dtypes = {kF32, kF16, kBF16},
          .grouped_dtypes = {kF16, kBF16},
          .grouped_has_all_slots = true,
          .multi_head_dtypes = {kF32, kF16},
          .unidirectional = true,
          .moe_dtypes = {kF32, kF16}};
}

Capabilities of_webgpu() {
  return {.name = "webgpu",
          .dtypes = {kF32, kF16},
          .grouped_dtypes = {kF32, kF16},
          .grouped_prompt_bias = true,
          .grouped_has_all_slots = true,
          .multi_head_dtypes = {kF32, kF16}};
}

Capabilities of_dml() {
  return {.name = "dml", .dtypes = {kF32, kF16}, .multi_head_dtypes = {kF32, kF16}};
}

}  // namespace

const Capabilities& capabilities(Provider provider) {
  static const Capabilities cpu = of_cpu(), cuda = of_cuda(), webgpu = of_webgpu(), dml = of_dml();
  switch (provider) {
    case Provider::kCpu:
      return cpu;
    case Provider::kCuda:
      return cuda;
    case Provider::kWebGpu:
      return webgpu;
    case Provider::kDml:
      return dml;
  }
  return cpu;
}

bool is_among(const std::vector<DType>& dtypes, DType dtype) {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

std::optional<Provider> find_provider(std::string_view name) {
  for (const Provider provider : kProviders) {
    if (capabilities(provider).name == name) return provider;
  }
  return std::nullopt;
}

std::vector<std::string> provider_names() {
  std::vector<std::string> names;
  for (const Provider provider : kProviders) names.emplace_back(capabilities(provider).name);
  return names;
}

}  // namespace tranship::onnx

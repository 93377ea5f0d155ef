// The execution providers of ONNX Runtime that an export may be fused for, and what each one's
// kernels of ONNX Runtime's own operators can say. Sources: the kernels that 1.31.1 registers for
// its CPU, run there; for the others its documented kernels (docs/OperatorKernels.md) and what
// Transformers' exporter uses (5.23). Norms with the sum before them, RotaryEmbedding, Gelu,
// BiasGelu, FastGelu and QuickGelu are there on all four.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tranship/dtype.h"

namespace tranship::onnx {

enum class Provider { kCpu, kCuda, kWebGpu, kDml };

struct Capabilities {
  std::string_view name;           // in ort_fusions
  std::vector<DType> dtypes = {};  // that fused activations and norms of heads come in
  /// GroupQueryAttention: in which dtypes; none: it is not used.
  std::vector<DType> grouped_dtypes = {};
  /// Whether a prompt may have a bias at speed, and whether it takes causal = 0.
  bool grouped_prompt_bias = false;
  bool grouped_not_causal = false;
  /// Whether slots, if their number is known, are all given to it, those that are not taken hidden:
  /// so nothing that a step computes is asked for on the host, and a graph can be replayed.
  bool grouped_has_all_slots = false;
  /// Whether its causal kernel itself gives zeros to a query that sees nothing.
  bool grouped_hides_rows = false;
  /// MultiHeadAttention: in which dtypes; and whether it has the attribute `unidirectional`.
  std::vector<DType> multi_head_dtypes = {};
  bool unidirectional = false;
  /// Of how many projections of one value one is worth a Split behind it.
  size_t least_packed = 2;
  /// MoE, with gate and up interleaved (swiglu).
  std::vector<DType> moe_dtypes = {};
};

const Capabilities& capabilities(Provider provider);

/// Whether an operator that comes in some dtypes comes in this one.
bool is_among(const std::vector<DType>& dtypes, DType dtype);

/// By its name in ort_fusions: "cpu", "cuda", "webgpu", "dml".
std::optional<Provider> find_provider(std::string_view name);
/// All of these names.
std::vector<std::string> provider_names();

}  // namespace tranship::onnx

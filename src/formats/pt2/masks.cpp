// What ATen's attention has no words for: windows, keys that are padding, queries behind a cache.
#include <limits>

#include "formats/pt2/lower.h"
#include "ir/build.h"
#include "ir/decompose.h"
#include "passes/rewrite.h"

namespace tranship::pt2 {
namespace {

ir::Value operand(const std::vector<ir::Value>& operands, size_t i) {
  return i < operands.size() ? operands[i] : ir::Value();
}

/// ATen's is_causal has the first query at the first key, and no mask beside it.
bool is_plainly_causal(const ir::Attention& attention, const std::vector<ir::Value>& operands) {
  return attention.causal && !attention.window && !operand(operands, 3) && !operand(operands, 4) &&
         operands[0].shape()[2] == operands[1].shape()[2];
}

/// seen: bool, or absent. What is not seen gets -inf: ATen's attention gives zeros where all is.
ir::Value with_bias(ir::Value seen, ir::Value bias) {
  if (!seen || !bias) return seen ? seen : bias;
  if (bias.dtype() == DType::kBool) return ir::logical_and(seen, bias);
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  return ir::where(seen, bias, ir::scalar(seen.graph(), bias.dtype(), kHidden));
}

}  // namespace

bool spell_out_masks(std::unique_ptr<ir::Graph>& graph) {
  return passes::rewrite(
      graph,
      [](ir::Graph& to, const ir::Node& node,
         const std::vector<ir::Value>& operands) -> std::optional<std::vector<ir::Value>> {
        if (node.kind() != ir::OpKind::kAttention) return std::nullopt;
        const auto& attention = ir::as<ir::Attention>(*node.op);
        const ir::Value key_mask = operand(operands, 3), bias = operand(operands, 4);
        const bool is_plain = !attention.causal && !attention.window && !key_mask;
        if (is_plain || is_plainly_causal(attention, operands)) return std::nullopt;
        const ir::Value seen =
            ir::visible_keys(to, attention, operands[0].shape(), operands[1].shape(), key_mask);
        ir::Attention masked;
        masked.scale = attention.scale;
        return to.add(ir::make(masked),
                      std::vector<ir::Value>{operands[0], operands[1], operands[2], ir::Value(),
                                             with_bias(seen, bias)},
                      node.name);
      });
}

}  // namespace tranship::pt2

// What reads or writes by index, and orders, in ONNX's words.
#include "formats/onnx/op_lowering.h"
#include "onnx-ml.pb.h"

namespace tranship::onnx {
namespace {

using ir::as;

std::vector<Attribute> reduction_attribute(ir::ScatterReduction reduction) {
  if (reduction == ir::ScatterReduction::kNone) return {};
  return {Attribute::of_text("reduction",
                             std::string(names_of(reduction)[static_cast<size_t>(reduction)]))};
}

/// A scatter whose updates are put together: ONNX Runtime does it in f32, not in 16 bits.
std::string lower_scatter(const OpLowering& n, std::string_view op_type, const std::string& indices,
                          const std::vector<Attribute>& attributes,
                          ir::ScatterReduction reduction) {
  const DType dtype = n.dtype(0);
  const bool is_half = dtype == DType::kF16 || dtype == DType::kBF16;
  if (!is_half || reduction == ir::ScatterReduction::kNone)
    return n.last(op_type, {n.in[0], indices, n.in[2]}, attributes);
  const std::string y = n.step(
      op_type, {n.cast(n.in[0], dtype, DType::kF32), indices, n.cast(n.in[2], dtype, DType::kF32)},
      attributes);
  return n.last("Cast", {y}, {Attribute::of("to", onnx_dtype(dtype))});
}

/// What ONNX Runtime orders integers of other widths by.
DType ordered_dtype(DType dtype) {
  return is_floating(dtype) || dtype == DType::kI32 ? dtype : DType::kI64;
}

}  // namespace

std::string lower_scatter_elements(const OpLowering& n) {
  const auto& op = as<ir::ScatterElements>(*n.node.op);
  std::vector<Attribute> attributes = reduction_attribute(op.reduction);
  attributes.push_back(Attribute::of("axis", op.axis));
  return lower_scatter(n, "ScatterElements", n.in[1], attributes, op.reduction);
}

std::string lower_scatter_nd(const OpLowering& n) {
  const std::string indices = n.cast(n.in[1], n.dtype(1), DType::kI64);
  const ir::ScatterReduction reduction = as<ir::ScatterNd>(*n.node.op).reduction;
  return lower_scatter(n, "ScatterND", indices, reduction_attribute(reduction), reduction);
}

std::string lower_non_zero(const OpLowering& n) {
  const std::string places = n.step("NonZero", {n.cast(n.in[0], n.dtype(0), DType::kBool)});
  return n.last("Transpose", {places}, {Attribute::of("perm", std::vector<int64_t>{1, 0})});
}

std::string lower_arg(const OpLowering& n) {
  const bool is_max = n.node.kind() == ir::OpKind::kArgMax;
  const int64_t axis = is_max ? as<ir::ArgMax>(*n.node.op).axis : as<ir::ArgMin>(*n.node.op).axis;
  // ONNX Runtime's CPU has no ArgMax over i64.
  const bool is_i64 = n.dtype(0) == DType::kI64;
  const std::string x = n.cast(n.in[0], n.dtype(0), is_i64 ? DType::kI32 : n.dtype(0));
  return n.last(is_max ? "ArgMax" : "ArgMin", {x},
                {Attribute::of("axis", axis), Attribute::of("keepdims", 0)});
}

std::pair<std::string, std::string> lower_top_k(const OpLowering& n) {
  const auto& op = as<ir::TopK>(*n.node.op);
  const DType dtype = ordered_dtype(n.dtype(0));
  const std::string x = n.cast(n.in[0], n.dtype(0), dtype), k = n.emit.size(op.k);
  ::onnx::NodeProto* node = n.emit.raw_node("TopK", n.node.name);
  node->add_input(x);
  node->add_input(k);
  for (const auto& [name, value] : {std::pair<std::string, int64_t>("axis", op.axis),
                                    std::pair<std::string, int64_t>("largest", op.largest ? 1 : 0),
                                    std::pair<std::string, int64_t>("sorted", op.sorted ? 1 : 0)}) {
    ::onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  const std::string values = n.emit.unique(node->name() + "_values"),
                    indices = n.emit.unique(node->name() + "_indices");
  node->add_output(values);
  node->add_output(indices);
  return {n.cast(values, dtype, n.dtype(0)), indices};
}

}  // namespace tranship::onnx

#include "formats/pt2/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"
#include "ir/infer.h"

namespace tranship::pt2 {

using ir::as;
using ir::Node;
using ir::OpKind;

// ---- values

std::string Lowering::constant(const Tensor& value) {
  std::string key(name(value.dtype()));
  key += ir::Shape::of(value.shape()).text();
  key += as_text(value.bytes());
  const auto [it, is_new] = constant_names_.try_emplace(std::move(key));
  if (is_new) {
    const ir::Type type{value.dtype(), ir::Shape::of(value.shape())};
    it->second = emit_.placeholder(fmt::format("c_constant_{}", constants_.size()), type);
    constants_.emplace_back(it->second, value);
  }
  return it->second;
}

std::string Lowering::tensor(ir::ValueId id) {
  std::string& known = names_[index(id)];
  if (!known.empty()) return known;
  const ir::Op& op = *graph_.producer(id).op;
  if (op.kind == OpKind::kConstant) {
    known = constant(as<ir::Constant>(op).value);
  } else {
    check(op.kind == OpKind::kDimToTensor, "pt2: a value was not lowered");
    std::vector<Operand> operands = {{"s", emit_.size(as<ir::DimToTensor>(op).dim)}};
    for (Operand& o : made_of(DType::kI64)) operands.push_back(std::move(o));
    known = emit_.node("aten.scalar_tensor.default", operands, type(id));
  }
  return known;
}

std::optional<std::string> Lowering::scalar(ir::ValueId id) {
  const ir::Op& op = *graph_.producer(id).op;
  if (op.kind == OpKind::kDimToTensor) return emit_.size(as<ir::DimToTensor>(op).dim);
  if (op.kind != OpKind::kConstant) return std::nullopt;
  const Tensor& value = as<ir::Constant>(op).value;
  return value.shape().empty() ? std::optional(as_scalar(value)) : std::nullopt;
}

Operand Lowering::axis(const Node& n, int64_t axis, std::string name) const {
  return {std::move(name),
          as_int(ir::normal_axis(axis, shape(n.inputs[0]).rank(), ir::name(n.kind())))};
}

std::vector<Operand> Lowering::made_of(DType dtype) const {
  return {{"dtype", as_dtype(dtype), true},
          {"device", as_cpu(), true},
          {"pin_memory", as_bool(false), true}};
}

void Lowering::lower_unsupported(const Node& n, const std::string& what, const std::string& why) {
  unsupported_.emplace(what, why);
  for (const ir::ValueId id : n.outputs) names_[index(id)] = "unsupported";
}

// ---- operators

void Lowering::lower(const Node& n) {  // #lizard forgives: a table, one line an op
  switch (n.kind()) {
    case OpKind::kInput:
    case OpKind::kParam:
    case OpKind::kConstant:
    case OpKind::kDimToTensor:
      return;  // placeholders, or made where they are needed
    case OpKind::kFull:
      return lower_full(n);
    case OpKind::kIota: {
      std::vector<Operand> operands = {{"end", emit_.size(as<ir::Iota>(*n.op).count)}};
      for (Operand& o : made_of(DType::kI64)) operands.push_back(std::move(o));
      return say(n, "aten.arange.default", operands);
    }
    case OpKind::kCast:
      return say(n, "aten._to_copy.default",
                 {self(n), {"dtype", as_dtype(as<ir::Cast>(*n.op).to), true}});
    case OpKind::kUnary:
      return lower_unary(n);
    case OpKind::kBinary:
      return lower_binary(n);
    case OpKind::kCompare:
      return lower_compare(n);
    case OpKind::kWhere:
      return say(n, "aten.where.self",
                 {operand("condition", n, 0), operand("self", n, 1), operand("other", n, 2)});
    case OpKind::kReduce:
      return lower_reduce(n);
    case OpKind::kArgMax:
      return say(n, "aten.argmax.default", {self(n), axis(n, as<ir::ArgMax>(*n.op).axis)});
    case OpKind::kArgMin:
      return say(n, "aten.argmin.default", {self(n), axis(n, as<ir::ArgMin>(*n.op).axis)});
    case OpKind::kTopK:
      return lower_top_k(n);
    case OpKind::kConv:
      return lower_conv(n);
    case OpKind::kConvTranspose:
      return lower_conv_transpose(n);
    case OpKind::kPool:
      return lower_pool(n);
    case OpKind::kResize:
      return lower_resize(n);
    case OpKind::kPad:
      return lower_pad(n);
    case OpKind::kCumSum:
      return say(n, "aten.cumsum.default",
                 {self(n),
                  axis(n, as<ir::CumSum>(*n.op).axis),
                  {"dtype", as_dtype(dtype(n.outputs[0])), true}});
    case OpKind::kSoftmax:
      return say(
          n, "aten._softmax.default",
          {self(n), axis(n, as<ir::Softmax>(*n.op).axis), {"half_to_float", as_bool(false)}});
    case OpKind::kMatMul:
      return say(n, "aten.matmul.default", {self(n), operand("other", n, 1)});
    case OpKind::kReshape:
      return say(n, "aten.reshape.default",
                 {self(n), {"shape", emit_.sizes(as<ir::Reshape>(*n.op).shape.dims)}});
    case OpKind::kTranspose:
      return say(n, "aten.permute.default",
                 {self(n), {"dims", as_ints(as<ir::Transpose>(*n.op).perm)}});
    case OpKind::kExpand:
      return lower_expand(n);
    case OpKind::kUnsqueeze:
      return lower_unsqueeze(n);
    case OpKind::kSqueeze:
      return say(n, "aten.squeeze.dims", {self(n), {"dim", as_ints(as<ir::Squeeze>(*n.op).axes)}});
    case OpKind::kConcat:
    case OpKind::kCacheAppend: {
      std::vector<std::string> parts;
      for (const ir::ValueId id : n.inputs) parts.push_back(tensor(id));
      const int64_t along = n.kind() == OpKind::kConcat ? as<ir::Concat>(*n.op).axis : 2;
      return say(n, "aten.cat.default", {{"tensors", as_tensors(parts)}, axis(n, along)});
    }
    case OpKind::kSlice:
      return lower_slice(n);
    case OpKind::kGather:
      return lower_gather(n);
    case OpKind::kGatherElements: {
      const int64_t along = as<ir::GatherElements>(*n.op).axis;
      return say(n, "aten.gather.default",
                 {self(n), axis(n, along), {"index", as_tensor(from_front(n, 1, along))}});
    }
    case OpKind::kGatherNd:
      return lower_gather_nd(n);
    case OpKind::kScatterElements:
      return lower_scatter_elements(n);
    case OpKind::kScatterNd:
      return lower_scatter_nd(n);
    case OpKind::kNonZero:
    case OpKind::kItem:
      return lower_birth(n);
    case OpKind::kIf:
      return lower_if(n);
    case OpKind::kLoop:
      return lower_loop(n);
    case OpKind::kScan:
      return lower_scan(n);
    case OpKind::kOpaque:
      return lower_unsupported(n, as<ir::Opaque>(*n.op).target,
                               "an operator that nobody has mapped");
    case OpKind::kLinear: {
      std::vector<Operand> operands = {operand("input", n, 0), operand("weight", n, 1)};
      if (has(n, 2)) operands.push_back(operand("bias", n, 2));
      return say(n, "aten.linear.default", operands);
    }
    case OpKind::kEmbedding:
      return lower_embedding(n);
    case OpKind::kRmsNorm:
    case OpKind::kLayerNorm:
      return lower_norm(n);
    case OpKind::kActivation:
      return lower_activation(n);
    case OpKind::kAttention:
      return lower_attention(n);
    case OpKind::kRope:
    case OpKind::kMoe:
    case OpKind::kSelectiveScan:
      break;  // never claimed: decomposed before
  }
  fail(ErrorKind::kInternal, "[pt2] {} was not decomposed: this is a bug in tranship",
       name(n.kind()));
}

void Lowering::lower_full(const Node& n) {
  const std::string size = emit_.sizes(as<ir::Full>(*n.op).shape.dims);
  const std::optional<std::string> value = scalar(n.inputs[0]);
  if (!value) return say(n, "aten.expand.default", {self(n), {"size", size}});
  std::vector<Operand> operands = {{"size", size}, {"fill_value", *value}};
  for (Operand& o : made_of(dtype(n.outputs[0]))) operands.push_back(std::move(o));
  say(n, "aten.full.default", operands);
}

void Lowering::lower_expand(const Node& n) {
  std::vector<ir::Dim> sizes = as<ir::Expand>(*n.op).shape.dims;
  const ir::Shape& from = shape(n.inputs[0]);
  const int64_t added = static_cast<int64_t>(sizes.size()) - from.rank();
  for (int64_t i = 0; i < from.rank(); ++i) {
    ir::Dim& size = sizes[static_cast<size_t>(added + i)];
    if (size == from[i]) size = -1;  // as it is
  }
  say(n, "aten.expand.default", {self(n), {"size", emit_.sizes(sizes)}});
}

void Lowering::lower_unsqueeze(const Node& n) {
  const int64_t rank = shape(n.outputs[0]).rank();
  std::vector<int64_t> axes;
  for (const int64_t axis : as<ir::Unsqueeze>(*n.op).axes)
    axes.push_back(ir::normal_axis(axis, rank, "Unsqueeze"));
  std::sort(axes.begin(), axes.end());
  ir::Type made = type(n.inputs[0]);
  std::string value = tensor(n.inputs[0]);
  for (const int64_t axis : axes) {
    made.shape.dims.insert(made.shape.dims.begin() + axis, 1);
    value = emit_.node("aten.unsqueeze.default",
                       {{"self", as_tensor(value)}, {"dim", as_int(axis)}}, made);
  }
  set(n, value);
}

void Lowering::lower_slice(const Node& n) {
  const auto& op = as<ir::Slice>(*n.op);
  const bool to_end = op.end == shape(n.inputs[0])[op.axis];
  std::vector<Operand> operands = {
      self(n),
      axis(n, op.axis),
      {"start", emit_.size(op.begin)},
      {"end", to_end ? as_int(std::numeric_limits<int64_t>::max()) : emit_.size(op.end)}};
  if (op.step != 1) operands.push_back({"step", as_int(op.step)});
  say(n, "aten.slice.Tensor", operands);
}

void Lowering::lower_norm(const Node& n) {
  const bool is_rms = n.kind() == OpKind::kRmsNorm;
  std::vector<Operand> operands = {operand("input", n, 0),
                                   {"normalized_shape", emit_.sizes({shape(n.inputs[0]).back()})},
                                   operand("weight", n, 1)};
  const double eps = is_rms ? as<ir::RmsNorm>(*n.op).eps : as<ir::LayerNorm>(*n.op).eps;
  if (!is_rms) operands.push_back({"bias", has(n, 2) ? as_tensor(tensor(n.inputs[2])) : as_none()});
  operands.push_back({"eps", as_float(eps)});
  say(n, is_rms ? "aten.rms_norm.default" : "aten.layer_norm.default", operands);
}

void Lowering::lower_attention(const Node& n) {
  const auto& op = as<ir::Attention>(*n.op);
  std::vector<Operand> operands = {operand("query", n, 0), operand("key", n, 1),
                                   operand("value", n, 2)};
  if (has(n, 4)) operands.push_back(operand("attn_mask", n, 4));
  if (op.causal) operands.push_back({"is_causal", as_bool(true), true});
  operands.push_back({"scale", as_float(op.scale), true});
  const bool is_grouped = !(shape(n.inputs[0])[1] == shape(n.inputs[1])[1]);
  if (is_grouped) operands.push_back({"enable_gqa", as_bool(true), true});
  say(n, "aten.scaled_dot_product_attention.default", operands);
}

}  // namespace tranship::pt2

#include "formats/onnx/lower.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "formats/onnx/attention_form.h"
#include "formats/onnx/cache_update.h"
#include "formats/onnx/drop_unused.h"
#include "formats/onnx/fusions/activations.h"
#include "formats/onnx/lowering.h"
#include "ir/infer.h"
#include "onnx-ml.pb.h"

namespace tranship::onnx {
namespace {

using ir::as;
using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

constexpr std::string_view unary_op(ir::UnaryKind fn) {  // #lizard forgives: a table
  switch (fn) {
    case ir::UnaryKind::kNeg:
      return "Neg";
    case ir::UnaryKind::kAbs:
      return "Abs";
    case ir::UnaryKind::kExp:
      return "Exp";
    case ir::UnaryKind::kLog:
      return "Log";
    case ir::UnaryKind::kSqrt:
      return "Sqrt";
    case ir::UnaryKind::kReciprocal:
      return "Reciprocal";
    case ir::UnaryKind::kSin:
      return "Sin";
    case ir::UnaryKind::kCos:
      return "Cos";
    case ir::UnaryKind::kTanh:
      return "Tanh";
    case ir::UnaryKind::kSigmoid:
      return "Sigmoid";
    case ir::UnaryKind::kErf:
      return "Erf";
    case ir::UnaryKind::kFloor:
      return "Floor";
    case ir::UnaryKind::kCeil:
      return "Ceil";
    case ir::UnaryKind::kNot:
      return "Not";
    case ir::UnaryKind::kTan:
      return "Tan";
    case ir::UnaryKind::kAsin:
      return "Asin";
    case ir::UnaryKind::kAcos:
      return "Acos";
    case ir::UnaryKind::kAtan:
      return "Atan";
    case ir::UnaryKind::kSinh:
      return "Sinh";
    case ir::UnaryKind::kCosh:
      return "Cosh";
    case ir::UnaryKind::kAsinh:
      return "Asinh";
    case ir::UnaryKind::kAcosh:
      return "Acosh";
    case ir::UnaryKind::kAtanh:
      return "Atanh";
    case ir::UnaryKind::kSign:
      return "Sign";
    case ir::UnaryKind::kRound:
      return "Round";
    case ir::UnaryKind::kIsNan:
      return "IsNaN";
    case ir::UnaryKind::kIsInf:
      return "IsInf";
    case ir::UnaryKind::kBitNot:
      return "BitwiseNot";
    case ir::UnaryKind::kTrunc:
      return "";  // by parts
  }
  return "";
}

constexpr std::string_view binary_op(ir::BinaryKind fn) {
  switch (fn) {
    case ir::BinaryKind::kAdd:
      return "Add";
    case ir::BinaryKind::kSub:
      return "Sub";
    case ir::BinaryKind::kMul:
      return "Mul";
    case ir::BinaryKind::kDiv:
      return "Div";
    case ir::BinaryKind::kPow:
      return "Pow";
    case ir::BinaryKind::kMin:
      return "Min";
    case ir::BinaryKind::kMax:
      return "Max";
    case ir::BinaryKind::kAnd:
      return "And";
    case ir::BinaryKind::kOr:
      return "Or";
    case ir::BinaryKind::kXor:
      return "Xor";
    case ir::BinaryKind::kBitAnd:
      return "BitwiseAnd";
    case ir::BinaryKind::kBitOr:
      return "BitwiseOr";
    case ir::BinaryKind::kBitXor:
      return "BitwiseXor";
    case ir::BinaryKind::kFloorDiv:
    case ir::BinaryKind::kMod:
    case ir::BinaryKind::kFmod:
    case ir::BinaryKind::kShiftLeft:
    case ir::BinaryKind::kShiftRight:
      return "";  // by parts
  }
  return "";
}

constexpr std::string_view compare_op(ir::CompareKind fn) {
  switch (fn) {
    case ir::CompareKind::kEqual:
    case ir::CompareKind::kNotEqual:
      return "Equal";
    case ir::CompareKind::kLess:
      return "Less";
    case ir::CompareKind::kLessEqual:
      return "LessOrEqual";
    case ir::CompareKind::kGreater:
      return "Greater";
    case ir::CompareKind::kGreaterEqual:
      return "GreaterOrEqual";
  }
  return "";
}

constexpr std::string_view reduce_op(ir::ReduceKind fn) {
  switch (fn) {
    case ir::ReduceKind::kSum:
      return "ReduceSum";
    case ir::ReduceKind::kMean:
      return "ReduceMean";
    case ir::ReduceKind::kMax:
    case ir::ReduceKind::kAny:
      return "ReduceMax";
    case ir::ReduceKind::kMin:
    case ir::ReduceKind::kAll:
      return "ReduceMin";
    case ir::ReduceKind::kProd:
      return "ReduceProd";
  }
  return "";
}

std::vector<Attribute> axis_attribute(int64_t axis) { return {Attribute::of("axis", axis)}; }

}  // namespace

Lowering::Lowering(const Graph& graph, std::vector<std::string> output_names, const Target& target,
                   const std::map<std::string, DType>& stored, Emitter& emit,
                   Unsupported& unsupported)
    : graph_(graph),
      output_names_(std::move(output_names)),
      target_(target),
      stored_(stored),
      emit_(emit),
      unsupported_(unsupported),
      forms_(graph.num_values()) {
  // The first name is the value's own.
  for (size_t i = 0; i < output_names_.size(); ++i)
    wanted_.emplace(graph.outputs()[i].value, output_names_[i]);
  users_.resize(graph.num_values());
  for (const Node& n : graph.nodes()) {
    for (const ValueId id : n.inputs) {
      if (id != ir::kAbsent) users_[static_cast<size_t>(id)].push_back(&n);
    }
    if (n.kind() != OpKind::kAttention) continue;
    if (absorbs_caches(graph, n, attention_form(graph, n, target)))
      absorbed_.insert({n.inputs[1], n.inputs[2]});
  }
}

void Lowering::run(const std::vector<std::string>& inputs) {
  size_t next = 0;
  for (const Node& n : graph_.nodes()) {
    if (n.kind() == OpKind::kInput) {
      form(n.outputs[0]).full = inputs[next++];
    } else if (n.outputs.empty() || !absorbed_.contains(n.outputs[0])) {
      lower(n);
    }
  }
  for (size_t i = 0; i < output_names_.size(); ++i) {
    const std::string made = full(graph_.outputs()[i].value);
    if (made != output_names_[i]) emit_.identity(made, output_names_[i]);
  }
}

const Node* Lowering::only_user(ValueId id) const {
  const std::vector<const Node*>& users = users_[static_cast<size_t>(id)];
  return users.size() == 1 && !wanted_.contains(id) ? users[0] : nullptr;
}

OpLowering Lowering::by_name(const Node& n) {
  std::vector<std::string> inputs;
  for (const ValueId id : n.inputs) inputs.push_back(full(id));
  return {emit_, graph_, n, std::move(inputs), wanted(n.outputs[0])};
}

void Lowering::say(const Node& n, std::string_view op_type, std::vector<std::string> inputs,
                   const std::vector<Attribute>& attributes) {
  set(n, emit_.node(op_type, inputs, attributes, n.name, wanted(n.outputs[0])));
}

void Lowering::say_rows(const Node& n, std::string_view op_type,
                        const std::vector<Attribute>& attributes) {
  if (!goes_flat(n)) {
    std::vector<std::string> inputs;
    for (const ValueId id : n.inputs) inputs.push_back(full(id));
    return say(n, op_type, inputs, attributes);
  }
  std::vector<std::string> inputs;
  for (const ValueId id : n.inputs)
    inputs.push_back(id == ir::kAbsent || shape(id).rank() <= 1 ? full(id) : flat(id));
  form(n.outputs[0]).flat = emit_.node(op_type, inputs, attributes, n.name, flat_name(n));
}

void Lowering::lower(const Node& n) {  // #lizard forgives: a table, one line an op
  const auto in = [&](size_t i) { return i < n.inputs.size() ? full(n.inputs[i]) : std::string(); };
  switch (n.kind()) {
    case OpKind::kInput:
      return;
    case OpKind::kParam:
      return lower_param(n);
    case OpKind::kConstant:
      return set(n, emit_.constant(as<ir::Constant>(*n.op).value));
    case OpKind::kFull:
      return lower_expand(n, in(0), as<ir::Full>(*n.op).shape);
    case OpKind::kIota:
      return lower_iota(n);
    case OpKind::kDimToTensor:
      return set(n, emit_.scalar_size(as<ir::DimToTensor>(*n.op).dim));
    case OpKind::kCast:
      return say_rows(n, "Cast", {Attribute::of("to", onnx_dtype(as<ir::Cast>(*n.op).to))});
    case OpKind::kUnary:
      return lower_unary(n);
    case OpKind::kBinary:
      return lower_binary(n);
    case OpKind::kCompare: {
      const ir::CompareKind fn = as<ir::Compare>(*n.op).fn;
      if (fn != ir::CompareKind::kNotEqual) return say(n, compare_op(fn), {in(0), in(1)});
      return say(n, "Not", {emit_.node("Equal", {in(0), in(1)}, {}, n.name)});
    }
    case OpKind::kWhere:
      return lower_where(n);
    case OpKind::kReduce:
      return lower_reduce(n);
    case OpKind::kArgMax:
    case OpKind::kArgMin:
      return set(n, lower_arg(by_name(n)));
    case OpKind::kTopK: {
      const auto [values, indices] = lower_top_k(by_name(n));
      form(n.outputs[0]).full = values;
      form(n.outputs[1]).full = indices;
      return;
    }
    case OpKind::kCumSum:
      return say(
          n, "CumSum",
          {in(0), emit_.scalar(DType::kI64, static_cast<double>(as<ir::CumSum>(*n.op).axis))});
    case OpKind::kSoftmax:
      return say(n, "Softmax", {in(0)}, axis_attribute(as<ir::Softmax>(*n.op).axis));
    case OpKind::kMatMul:
      return say(n, "MatMul", {in(0), in(1)});
    case OpKind::kConv:
      return set(n, lower_conv(by_name(n)));
    case OpKind::kConvTranspose:
      return set(n, lower_conv_transpose(by_name(n)));
    case OpKind::kPool:
      return set(n, lower_pool(by_name(n)));
    case OpKind::kResize:
      return set(n, lower_resize(by_name(n)));
    case OpKind::kReshape:
      form(n.outputs[0]).reshaped = n.inputs[0];
      return;  // made in the form that is asked for
    case OpKind::kTranspose:
      return lower_transpose(n);
    case OpKind::kExpand:
      return lower_expand(n, in(0), as<ir::Expand>(*n.op).shape);
    case OpKind::kUnsqueeze:
      return say(n, "Unsqueeze", {in(0), emit_.ints(as<ir::Unsqueeze>(*n.op).axes)});
    case OpKind::kSqueeze:
      return say(n, "Squeeze", {in(0), emit_.ints(as<ir::Squeeze>(*n.op).axes)});
    case OpKind::kConcat:
    case OpKind::kCacheAppend: {
      std::vector<std::string> parts;
      for (const ValueId id : n.inputs) parts.push_back(full(id));
      return say(n, "Concat", parts,
                 axis_attribute(n.kind() == OpKind::kConcat ? as<ir::Concat>(*n.op).axis : 2));
    }
    case OpKind::kSlice:
      return lower_slice(n);
    case OpKind::kPad:
      return set(n, lower_pad(by_name(n)));
    case OpKind::kGather:
      return say(n, "Gather", {in(0), in(1)}, axis_attribute(as<ir::Gather>(*n.op).axis));
    case OpKind::kGatherElements:
      return say(n, "GatherElements", {in(0), in(1)},
                 axis_attribute(as<ir::GatherElements>(*n.op).axis));
    case OpKind::kGatherNd: {
      const OpLowering by = by_name(n);
      const std::string indices = by.cast(by.in[1], by.dtype(1), DType::kI64);
      return set(n, by.last("GatherND", {by.in[0], indices},
                            {Attribute::of("batch_dims", as<ir::GatherNd>(*n.op).batch_dims)}));
    }
    case OpKind::kScatterElements: {
      const ValueId counter = target_.has_slots() ? counter_of(graph_, n) : ir::kAbsent;
      if (counter != ir::kAbsent) return lower_slots(n, counter);
      return set(n, lower_scatter_elements(by_name(n)));
    }
    case OpKind::kScatterNd:
      return set(n, lower_scatter_nd(by_name(n)));
    case OpKind::kNonZero:
      set(n, lower_non_zero(by_name(n)));
      return emit_.set_origin(*ir::born_symbol(*n.op), {form(n.outputs[0]).full, 0});
    case OpKind::kItem:
      set(n, in(0));
      return emit_.set_origin(*ir::born_symbol(*n.op), {in(0), SymbolOrigin::kValue});
    case OpKind::kIf:
    case OpKind::kLoop:
    case OpKind::kScan:
      return lower_control(n);
    case OpKind::kOpaque:
      unsupported_.emplace(as<ir::Opaque>(*n.op).target, "an operator that nobody has mapped");
      return set(n, emit_.unique("opaque"));
    case OpKind::kLinear:
      return lower_linear(n);
    case OpKind::kEmbedding:
      return say(n, "Gather", {in(0), in(1)}, axis_attribute(0));
    case OpKind::kLayerNorm:
      return lower_layer_norm(n);
    case OpKind::kActivation:
      return lower_activation(n);
    case OpKind::kRmsNorm:
      return lower_rms_norm(n);
    case OpKind::kRope:
      return target_.fusions ? lower_rope(n) : lower_standard_rope(n);
    case OpKind::kAttention:
      return lower_attention(n);
    case OpKind::kMoe:
      return lower_moe(n);
    case OpKind::kSelectiveScan:
      break;  // never claimed: decomposed before
  }
  fail(ErrorKind::kInternal, "[onnx] {} was not decomposed: this is a bug in tranship",
       name(n.kind()));
}

void Lowering::lower_param(const Node& n) {
  const auto& param = as<ir::Param>(*n.op);
  if (std::find(weights_.begin(), weights_.end(), param.name) == weights_.end())
    weights_.push_back(param.name);
  const auto it = stored_.find(param.name);
  if (it == stored_.end() || it->second == param.dtype) return set(n, param.name);
  set(n,
      emit_.node("Cast", {param.name}, {Attribute::of("to", onnx_dtype(param.dtype))}, param.name));
}

void Lowering::lower_unary(const Node& n) {
  const ir::UnaryKind fn = as<ir::Unary>(*n.op).fn;
  if (fn == ir::UnaryKind::kTrunc) return set(n, lower_trunc(by_name(n)));
  say_rows(n, unary_op(fn));
}

/// Where heads and tokens change places, whoever needs it may take another form.
void Lowering::lower_transpose(const Node& n) {
  const std::vector<int64_t>& perm = as<ir::Transpose>(*n.op).perm;
  if (target_.has_heads() && perm == kHeadsAndTokens) {
    form(n.outputs[0]).pending = &n;
    return;
  }
  say(n, "Transpose", {full(n.inputs[0])}, {Attribute::of("perm", perm)});
}

void Lowering::lower_binary(const Node& n) {
  const ir::BinaryKind fn = as<ir::Binary>(*n.op).fn;
  const ValueId sum = n.outputs[0];
  if (target_.fusions && fn == ir::BinaryKind::kAdd && can_be_flat(sum) &&
      shape(n.inputs[0]) == shape(sum) && shape(n.inputs[1]) == shape(sum)) {
    form(sum).pending = &n;  // a norm may make it
    return;
  }
  const std::string_view op_type = binary_op(fn);
  if (!op_type.empty()) return say_rows(n, op_type);
  if (fn == ir::BinaryKind::kMod || fn == ir::BinaryKind::kFmod)
    return set(n, lower_mod(by_name(n)));
  if (fn != ir::BinaryKind::kFloorDiv) return set(n, lower_shift(by_name(n)));
  const std::string quotient =
      emit_.node("Div", {full(n.inputs[0]), full(n.inputs[1])}, {}, n.name);
  if (is_floating(dtype(n.outputs[0]))) return say(n, "Floor", {quotient});
  // Integer Div rounds to zero: (a - (a mod b)) / b rounds down.
  const std::string rest = emit_.node("Mod", {full(n.inputs[0]), full(n.inputs[1])}, {}, n.name);
  say(n, "Div", {emit_.node("Sub", {full(n.inputs[0]), rest}, {}, n.name), full(n.inputs[1])});
}

void Lowering::lower_reduce(const Node& n) {
  const auto& op = as<ir::Reduce>(*n.op);
  const std::vector<Attribute> attributes = {Attribute::of("keepdims", op.keepdims ? 1 : 0)};
  if (dtype(n.inputs[0]) == DType::kBool) {
    const std::string number = emit_.node("Cast", {full(n.inputs[0])},
                                          {Attribute::of("to", onnx_dtype(DType::kI32))}, n.name);
    const std::string reduced =
        emit_.node(reduce_op(op.fn), {number, emit_.ints(op.axes)}, attributes, n.name);
    return say(n, "Cast", {reduced}, {Attribute::of("to", onnx_dtype(DType::kBool))});
  }
  const int64_t rank = shape(n.inputs[0]).rank();
  if (!form(n.inputs[0]).is_made()) make_pending(n.inputs[0]);
  const Form& f = form(n.inputs[0]);
  const bool of_rows =
      op.keepdims && op.axes.size() == 1 && ir::normal_axis(op.axes[0], rank, "Reduce") == rank - 1;
  if (of_rows && can_be_flat(n.inputs[0]) && f.full.empty() && !f.flat.empty()) {
    form(n.outputs[0]).flat =
        emit_.node(reduce_op(op.fn), {f.flat, emit_.ints({-1})}, attributes, n.name, flat_name(n));
    return;
  }
  say(n, reduce_op(op.fn), {full(n.inputs[0]), emit_.ints(op.axes)}, attributes);
}

void Lowering::lower_slice(const Node& n) {
  if (form(n.outputs[0]).is_made()) return;  // with the others of its operand
  const auto& op = as<ir::Slice>(*n.op);
  const Dim& length = shape(n.inputs[0])[op.axis];
  const std::string end =
      op.end == length ? emit_.ints({std::numeric_limits<int64_t>::max()}) : emit_.size(op.end);
  std::vector<std::string> inputs = {full(n.inputs[0]), emit_.size(op.begin), end,
                                     emit_.ints({op.axis})};
  if (op.step != 1) inputs.push_back(emit_.ints({op.step}));
  say(n, "Slice", inputs);
}

void Lowering::lower_expand(const Node& n, const std::string& value, const Shape& to) {
  std::vector<Dim> entries = to.dims;
  const Shape& from = shape(n.inputs[0]);
  for (int64_t i = -from.rank(); i < 0; ++i) {
    Dim& entry = entries[static_cast<size_t>(to.rank() + i)];
    if (from[i] == entry) entry = 1;  // Expand broadcasts both ways
  }
  say(n, "Expand", {value, emit_.shape(entries)});
}

void Lowering::lower_iota(const Node& n) {
  const Dim& count = as<ir::Iota>(*n.op).count;
  constexpr int64_t kMostWritten = 4096;
  if (count.is_static() && count.value() <= kMostWritten) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count.value(); ++i) values.push_back(i);
    return set(n, emit_.ints(values));
  }
  say(n, "Range",
      {emit_.scalar(DType::kI64, 0), emit_.scalar_size(count), emit_.scalar(DType::kI64, 1)});
}

void Lowering::lower_linear(const Node& n) {
  const bool has_bias = n.inputs.size() > 2 && n.inputs[2] != ir::kAbsent;
  const ValueId y = n.outputs[0];
  if (!has_bias && stays_full(n)) {
    set(n, lower_product(n));
    return split_rows(n);
  }
  std::vector<std::string> inputs = {flat(n.inputs[0]), full(n.inputs[1])};
  std::string name = n.name;
  if (has_bias) {
    const Node* user = only_user(y);
    const bool is_fused = target_.fusions && user != nullptr &&
                          user->kind() == OpKind::kActivation &&
                          fused_activation(graph_, *user, *target_.fusions) == "Gelu";
    if (is_fused) {
      biases_.emplace(y, n.inputs[2]);  // BiasGelu adds it
      name += "/product";
    } else {
      inputs.push_back(full(n.inputs[2]));
    }
  }
  set_flat(y, emit_.node("Gemm", inputs, {Attribute::of("transB", 1)}, name, flat_name(n)));
  if (target_.fusions) split_rows(n);
}

void Lowering::split_rows(const Node& n) {
  const ValueId y = n.outputs[0];
  const std::vector<const Node*>& users = users_[static_cast<size_t>(y)];
  std::vector<int64_t> sizes;
  Dim end = 0;
  for (const Node* user : users) {
    if (user->kind() != OpKind::kSlice) return;
    const auto& slice = as<ir::Slice>(*user->op);
    if (slice.axis != -1 || !(slice.begin == end) || slice.step != 1) return;
    end = slice.end;
    sizes.push_back(shape(user->outputs[0]).back().value());
  }
  if (sizes.size() < 2 || !(end == shape(y).back())) return;
  const bool is_flat = !form(y).flat.empty();
  const std::vector<std::optional<std::string>> any(users.size(), std::string());
  const std::vector<std::string> parts =
      emit_.nodes("Split", {is_flat ? form(y).flat : form(y).full, emit_.ints(sizes)},
                  axis_attribute(-1), n.name, any);
  for (size_t i = 0; i < users.size(); ++i) set_rows(users[i]->outputs[0], parts[i], is_flat);
}

void Lowering::lower_activation(const Node& n) {
  if (target_.fusions) {
    const std::string_view fused = fused_activation(graph_, n, *target_.fusions);
    if (!fused.empty()) return lower_fused_activation(n, fused);
  }
  switch (as<ir::Activation>(*n.op).fn) {
    case ir::ActivationKind::kGelu:
      return say_rows(n, "Gelu");
    case ir::ActivationKind::kGeluTanh:
      return say_rows(n, "Gelu", {Attribute::of_text("approximate", "tanh")});
    case ir::ActivationKind::kRelu:
      return say_rows(n, "Relu");
    case ir::ActivationKind::kSoftplus:
      return say_rows(n, "Softplus");
    case ir::ActivationKind::kElu:
      return say_rows(n, "Elu");
    case ir::ActivationKind::kLeakyRelu:
      return say_rows(n, "PRelu");
    case ir::ActivationKind::kHardSigmoid:
      return say_rows(n, "HardSigmoid",
                      {Attribute::of_float("alpha", 1.0f / 6), Attribute::of_float("beta", 0.5f)});
    case ir::ActivationKind::kSilu:
    case ir::ActivationKind::kQuickGelu:
    case ir::ActivationKind::kMish:
    case ir::ActivationKind::kHardSwish:
    case ir::ActivationKind::kRelu6:
    case ir::ActivationKind::kRelu2:
      break;  // never claimed
  }
  fail(ErrorKind::kInternal, "[onnx] an activation was not decomposed: this is a bug in tranship");
}

bool claims(const ir::Node& node, const Target& target) {
  const int opset_version = target.opset_version;
  switch (node.kind()) {
    case OpKind::kLinear:
    case OpKind::kEmbedding:
    case OpKind::kLayerNorm:
    case OpKind::kCacheAppend:
      return true;
    case OpKind::kActivation: {
      switch (as<ir::Activation>(*node.op).fn) {
        case ir::ActivationKind::kRelu:
        case ir::ActivationKind::kSoftplus:
        case ir::ActivationKind::kElu:
        case ir::ActivationKind::kLeakyRelu:
        case ir::ActivationKind::kHardSigmoid:
          return true;
        case ir::ActivationKind::kGelu:
        case ir::ActivationKind::kGeluTanh:
          return opset_version >= 20;
        default:
          return false;
      }
    }
    case OpKind::kRmsNorm:
      return target.has_heads();
    default:
      return false;
  }
}

std::vector<std::string> lower_graph(const Graph& graph, const Target& target,
                                     const std::map<std::string, DType>& stored,
                                     ::onnx::GraphProto& to, Unsupported& unsupported) {
  to.set_name(graph.name());
  Emitter emit(to, nullptr);
  std::vector<std::string> inputs;
  for (const Node* n : graph.inputs()) {
    const auto& input = as<ir::Input>(*n->op);
    inputs.push_back(input.name);
    emit.reserve(input.name);
    set_type(graph.type(n->outputs[0]), input.name, to.add_input());
    for (int64_t axis = 0; axis < input.shape.rank(); ++axis) {
      if (const auto symbol = input.shape[axis].as_symbol())
        emit.set_origin(*symbol, {input.name, axis});
    }
  }
  std::vector<std::string> output_names;
  for (const ir::Output& o : graph.outputs()) {
    emit.reserve(o.name);
    output_names.push_back(o.name);
  }
  for (const Node& n : graph.nodes()) {
    if (n.kind() == OpKind::kParam) emit.reserve(as<ir::Param>(*n.op).name);
  }
  Lowering lowering(graph, output_names, target, stored, emit, unsupported);
  lowering.run(inputs);
  for (const ir::Output& o : graph.outputs())
    set_type(graph.type(o.value), o.name, to.add_output());
  const std::set<std::string> used = drop_unused(to);
  std::vector<std::string> weights = lowering.weights();
  std::erase_if(weights, [&](const std::string& name) { return !used.contains(name); });
  return weights;
}

}  // namespace tranship::onnx

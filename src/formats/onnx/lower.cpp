#include "formats/onnx/lower.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "formats/onnx/emitter.h"
#include "formats/onnx/op_lowering.h"
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

/// Lowers one graph, or sub-graph.
///
/// Gemm wants matrices, and takes weights as [out, in]. So a value [..., d] may live in two forms:
/// `full`, as its shape says, and `flat`, as the matrix [rows, d] of its last axis. Linear makes
/// flat values, ops that work row by row keep them flat, and a form is made from the other where it
/// is needed, once.
class Lowering {
 public:
  /// output_names: of the graph's outputs, in order.
  Lowering(const Graph& graph, std::vector<std::string> output_names, int opset_version,
           const std::map<std::string, DType>& stored, Emitter& emit, Unsupported& unsupported)
      : graph_(graph),
        output_names_(std::move(output_names)),
        opset_(opset_version),
        stored_(stored),
        emit_(emit),
        unsupported_(unsupported),
        forms_(graph.num_values()) {
    // The first name is the value's own.
    for (size_t i = 0; i < output_names_.size(); ++i)
      wanted_.emplace(graph.outputs()[i].value, output_names_[i]);
  }

  /// inputs: names given to the graph's Inputs; a top-level graph has its own.
  void run(const std::vector<std::string>& inputs) {
    size_t next = 0;
    for (const Node& n : graph_.nodes()) {
      if (n.kind() == OpKind::kInput) {
        form(n.outputs[0]).full = inputs[next++];
      } else {
        lower(n);
      }
    }
    for (size_t i = 0; i < output_names_.size(); ++i) {
      const std::string made = full(graph_.outputs()[i].value);
      if (made != output_names_[i]) emit_.identity(made, output_names_[i]);
    }
  }

  const std::vector<std::string>& weights() const { return weights_; }

 private:
  struct Form {
    std::string full;
    std::string flat;
    ValueId reshaped = ir::kAbsent;  // a reshape that has not been made: of this value
  };

  Form& form(ValueId id) { return forms_[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }
  DType dtype(ValueId id) const { return graph_.type(id).dtype; }

  /// The name that the graph's output gives to a value, or none.
  std::string wanted(ValueId id) const {
    const auto it = wanted_.find(id);
    return it == wanted_.end() ? std::string() : it->second;
  }

  bool can_be_flat(ValueId id) const {
    return shape(id).rank() >= 2 && shape(id).back().is_static();
  }

  std::string full(ValueId id) {
    if (id == ir::kAbsent) return {};
    Form& f = form(id);
    if (f.full.empty() && f.reshaped != ir::kAbsent) {
      f.full = reshape(f.reshaped, shape(id), wanted(id));
    } else if (f.full.empty()) {
      f.full = reshape_from(f.flat, {}, shape(id), wanted(id));
    }
    return f.full;
  }

  std::string flat(ValueId id) {
    Form& f = form(id);
    if (!f.flat.empty()) return f.flat;
    if (shape(id).rank() == 2) return f.flat = full(id);
    const bool is_pending = f.full.empty() && f.reshaped != ir::kAbsent;
    f.flat = emit_.node("Reshape", {is_pending ? any(f.reshaped) : full(id),
                                    emit_.ints({-1, shape(id).back().value()})});
    return f.flat;
  }

  /// Whichever form there is: for what does not look at the shape.
  std::string any(ValueId id) {
    Form& f = form(id);
    return f.full.empty() && !f.flat.empty() ? f.flat : full(id);
  }

  std::string reshape(ValueId from, const Shape& to, const std::string& name) {
    const Form& f = form(from);
    const bool is_flat = f.full.empty() && !f.flat.empty();
    return reshape_from(any(from), is_flat ? Shape() : shape(from), to, name);
  }

  /// from: the shape of `value`, as far as it is known to be the same axis by axis.
  std::string reshape_from(const std::string& value, const Shape& from, const Shape& to,
                           const std::string& name) {
    std::vector<Dim> entries = to.dims;
    size_t open = 0, last_open = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].is_static()) continue;
      if (i < from.dims.size() && from.dims[i] == entries[i]) {
        entries[i] = 0;  // "as it was"
      } else {
        ++open;
        last_open = i;
      }
    }
    if (open > 0) entries[last_open] = -1;  // what is left
    return emit_.node("Reshape", {value, emit_.shape(entries)}, {}, "", name);
  }

  void set(const Node& n, std::string name) { form(n.outputs[0]).full = std::move(name); }

  OpLowering by_name(const Node& n) {
    std::vector<std::string> inputs;
    for (const ValueId id : n.inputs) inputs.push_back(full(id));
    return {emit_, graph_, n, std::move(inputs), wanted(n.outputs[0])};
  }

  void say(const Node& n, std::string_view op_type, std::vector<std::string> inputs,
           const std::vector<Attribute>& attributes = {}) {
    set(n, emit_.node(op_type, inputs, attributes, n.name, wanted(n.outputs[0])));
  }

  /// A row-wise op: flat, if an operand is flat already and all others can be or are spread over
  /// rows; else full.
  void say_rows(const Node& n, std::string_view op_type,
                const std::vector<Attribute>& attributes = {}) {
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

  /// An output's name goes to its full form: a matrix has but one.
  std::string flat_name(const Node& n) const {
    return shape(n.outputs[0]).rank() == 2 ? wanted(n.outputs[0]) : std::string();
  }

  bool goes_flat(const Node& n) {
    const Shape& out = shape(n.outputs[0]);
    if (!can_be_flat(n.outputs[0])) return false;
    bool any_flat = false;
    for (const ValueId id : n.inputs) {
      if (id == ir::kAbsent || shape(id).rank() <= 1) continue;
      if (!can_be_flat(id) || shape(id).rank() != out.rank()) return false;
      for (int64_t axis = 0; axis + 1 < out.rank(); ++axis) {
        if (!(shape(id)[axis] == out[axis])) return false;
      }
      any_flat |= form(id).full.empty() && !form(id).flat.empty();
    }
    return any_flat;
  }

  void lower(const Node& n);
  void lower_unary(const Node& n);
  void lower_binary(const Node& n);
  void lower_reduce(const Node& n);
  void lower_slice(const Node& n);
  void lower_expand(const Node& n, const std::string& value, const Shape& to);
  void lower_linear(const Node& n);
  void lower_param(const Node& n);
  void lower_iota(const Node& n);
  void lower_control(const Node& n);
  void lower_activation(const Node& n);
  void subgraph(const Graph& body, const std::vector<std::string>& inputs, size_t num_formal,
                const std::vector<ir::Type>& formal_types, ::onnx::AttributeProto* attribute,
                std::string_view name);

  const Graph& graph_;
  std::vector<std::string> output_names_;
  int opset_;
  const std::map<std::string, DType>& stored_;
  Emitter& emit_;
  Unsupported& unsupported_;
  std::vector<Form> forms_;
  std::map<ValueId, std::string> wanted_;
  std::vector<std::string> weights_;
};

std::vector<Attribute> axis_attribute(int64_t axis) { return {Attribute::of("axis", axis)}; }

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
      return say(n, "Where", {in(0), in(1), in(2)});
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
      return say(n, "Transpose", {in(0)}, {Attribute::of("perm", as<ir::Transpose>(*n.op).perm)});
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
    case OpKind::kScatterElements:
      return set(n, lower_scatter_elements(by_name(n)));
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
      return say_rows(
          n, "LayerNormalization",
          {Attribute::of("axis", -1),
           Attribute::of_float("epsilon", static_cast<float>(as<ir::LayerNorm>(*n.op).eps))});
    case OpKind::kActivation:
      return lower_activation(n);
    case OpKind::kRmsNorm:
    case OpKind::kRope:
    case OpKind::kAttention:
    case OpKind::kMoe:
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

void Lowering::lower_binary(const Node& n) {
  const ir::BinaryKind fn = as<ir::Binary>(*n.op).fn;
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
  std::vector<std::string> inputs = {flat(n.inputs[0]), full(n.inputs[1])};
  if (n.inputs.size() > 2 && n.inputs[2] != ir::kAbsent) inputs.push_back(full(n.inputs[2]));
  form(n.outputs[0]).flat =
      emit_.node("Gemm", inputs, {Attribute::of("transB", 1)}, n.name, flat_name(n));
  if (shape(n.outputs[0]).rank() == 2) form(n.outputs[0]).full = form(n.outputs[0]).flat;
}

void Lowering::lower_activation(const Node& n) {
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

void set_type(const ir::Type& type, const std::string& name, ::onnx::ValueInfoProto* info) {
  info->set_name(name);
  ::onnx::TypeProto::Tensor* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx_dtype(type.dtype));
  ::onnx::TensorShapeProto* shape = tensor->mutable_shape();
  for (const Dim& d : type.shape.dims) {
    ::onnx::TensorShapeProto::Dimension* dimension = shape->add_dim();
    if (d.is_static()) {
      dimension->set_dim_value(d.value());
    } else {
      dimension->set_dim_param(d.text());
    }
  }
}

/// A sub-graph as an attribute. Its first `num_formal` inputs are its own, the others are values of
/// the graph around it.
void Lowering::subgraph(const Graph& body, const std::vector<std::string>& inputs,
                        size_t num_formal, const std::vector<ir::Type>& formal_types,
                        ::onnx::AttributeProto* attribute, std::string_view name) {
  attribute->set_name(std::string(name));
  attribute->set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto* graph = attribute->mutable_g();
  graph->set_name(body.name());
  Emitter emit(*graph, &emit_);
  for (size_t i = 0; i < num_formal; ++i) set_type(formal_types[i], inputs[i], graph->add_input());
  std::vector<std::string> output_names;  // names are unique in the whole model
  for (const ir::Output& o : body.outputs())
    output_names.push_back(emit_.unique(body.name() + "/" + o.name));
  Lowering inner(body, output_names, opset_, stored_, emit, unsupported_);
  std::vector<std::string> values;
  const std::vector<const Node*> nodes = body.inputs();
  // Loop has an input more than its body in ours: ONNX passes the condition in.
  size_t from = 0;
  for (size_t i = 0; i < nodes.size(); ++i, ++from) {
    if (name == "body" && i == 1 && inputs.size() > nodes.size()) ++from;
    values.push_back(inputs[from]);
  }
  inner.run(values);
  for (size_t i = 0; i < output_names.size(); ++i)
    set_type(body.type(body.outputs()[i].value), output_names[i], graph->add_output());
  weights_.insert(weights_.end(), inner.weights_.begin(), inner.weights_.end());
}

void Lowering::lower_control(const Node& n) {
  std::vector<std::string> inputs;
  for (const ValueId id : n.inputs) inputs.push_back(full(id));
  const auto formal_name = [&](size_t i) {
    return emit_.unique((n.name.empty() ? std::string(name(n.kind())) : n.name) + "/in_" +
                        std::to_string(i));
  };
  std::vector<ir::Type> types;
  for (const ValueId id : n.inputs) types.push_back(graph_.type(id));
  // Sub-graphs first: the sizes that they make stand before the node.
  ::onnx::NodeProto made;
  std::vector<std::string> actual;
  if (n.kind() == OpKind::kIf) {
    actual = {inputs[0]};
    const std::vector<std::string> captured(inputs.begin() + 1, inputs.end());
    subgraph(*n.graphs[0], captured, 0, {}, made.add_attribute(), "then_branch");
    subgraph(*n.graphs[1], captured, 0, {}, made.add_attribute(), "else_branch");
  } else if (n.kind() == OpKind::kLoop) {
    const auto carried = static_cast<size_t>(as<ir::Loop>(*n.op).num_carried);
    actual.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(2 + carried));
    std::vector<std::string> formal = inputs;
    for (size_t i = 0; i < 2 + carried; ++i) formal[i] = formal_name(i);
    subgraph(*n.graphs[0], formal, 2 + carried, types, made.add_attribute(), "body");
  } else {
    const auto& scan = as<ir::Scan>(*n.op);
    const auto formals = static_cast<size_t>(scan.num_carried + scan.num_scanned);
    actual.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(formals));
    std::vector<std::string> formal = inputs;
    for (size_t i = 0; i < formals; ++i) formal[i] = formal_name(i);
    for (size_t i = static_cast<size_t>(scan.num_carried); i < formals; ++i)
      types[i].shape.dims.erase(types[i].shape.dims.begin());
    subgraph(*n.graphs[0], formal, formals, types, made.add_attribute(), "body");
    ::onnx::AttributeProto* count = made.add_attribute();
    count->set_name("num_scan_inputs");
    count->set_type(::onnx::AttributeProto::INT);
    count->set_i(scan.num_scanned);
  }
  ::onnx::NodeProto* node = emit_.raw_node(name(n.kind()), n.name);
  made.set_name(node->name());
  made.set_op_type(node->op_type());
  for (const std::string& input : actual) made.add_input(input);
  for (const ValueId id : n.outputs) {
    form(id).full = wanted(id).empty() ? emit_.unique(node->name() + "_output") : wanted(id);
    made.add_output(form(id).full);
  }
  node->Swap(&made);
}

}  // namespace

bool claims(const ir::Node& node, int opset_version) {
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
    default:
      return false;
  }
}

std::vector<std::string> lower_graph(const Graph& graph, int opset_version,
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
  Lowering lowering(graph, output_names, opset_version, stored, emit, unsupported);
  lowering.run(inputs);
  for (const ir::Output& o : graph.outputs())
    set_type(graph.type(o.value), o.name, to.add_output());
  return lowering.weights();
}

}  // namespace tranship::onnx

// The operations of a graph: small structs of attributes. Tensors stand apart, as a node's inputs.
// The list is closed: a new op is a kind, a struct, a case in visit(), infer() and interpret(); the
// compiler finds the rest (-Werror=switch).
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ir/dim.h"
#include "tranship/tensor.h"

namespace tranship::ir {

enum class OpKind : uint8_t {
  // where values come from
  kInput,
  kParam,
  kConstant,
  kFull,
  kIota,
  kDimToTensor,
  // element by element
  kCast,
  kUnary,
  kBinary,
  kCompare,
  kWhere,
  // over axes
  kReduce,
  kArgMax,
  kArgMin,
  kTopK,
  kCumSum,
  kSoftmax,
  kMatMul,
  // over windows of the axes behind [batch, channels]
  kConv,
  kConvTranspose,
  kPool,
  kResize,
  // moving elements
  kReshape,
  kTranspose,
  kExpand,
  kUnsqueeze,
  kSqueeze,
  kConcat,
  kSlice,
  kPad,
  kGather,
  kGatherElements,
  kGatherNd,
  kScatterElements,
  kScatterNd,
  // a size that is born from data
  kNonZero,
  kItem,
  // control flow
  kIf,
  kLoop,
  kScan,
  // an imported operator that nobody has mapped
  kOpaque,
  // composites: they have a decomposition into the above
  kLinear,
  kEmbedding,
  kRmsNorm,
  kLayerNorm,
  kActivation,
  kRope,
  kAttention,
  kCacheAppend,
  kMoe,
  kSelectiveScan,
};

inline constexpr size_t kNumOpKinds = static_cast<size_t>(OpKind::kSelectiveScan) + 1;

/// "RmsNorm": as the text form has it.
std::string_view name(OpKind kind);
std::optional<OpKind> find_op_kind(std::string_view name);
bool is_composite(OpKind kind);

enum class UnaryKind : uint8_t {
  kNeg,
  kAbs,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kSin,
  kCos,
  kTanh,
  kSigmoid,
  kErf,
  kFloor,
  kCeil,
  kNot,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kSign,
  kRound,  // half to even
  kTrunc,
  kIsNan,  // -> bool
  kIsInf,  // -> bool
  kBitNot
};
/// kDiv of integers rounds to zero. kFloorDiv and kMod are Python's: the rest has the divisor's
/// sign. kFmod is C's: the rest has the dividend's sign. kAnd, kOr and kXor take bool; kBit... and
/// shifts take integers, and a right shift keeps the sign.
enum class BinaryKind : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMin,
  kMax,
  kFloorDiv,
  kMod,
  kAnd,
  kOr,
  kXor,
  kFmod,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight
};
enum class CompareKind : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
enum class ReduceKind : uint8_t { kSum, kMean, kMax, kMin, kAny, kAll, kProd };
/// kGelu is the erf form, kGeluTanh the tanh form, kQuickGelu x * sigmoid(1.702 x), kSoftplus
/// log(1 + exp(x)), kMish x * tanh(softplus(x)), kElu has alpha 1, kHardSigmoid is
/// min(max(x / 6 + 1/2, 0), 1), kHardSwish x times that, kRelu2 the square of relu.
enum class ActivationKind : uint8_t {
  kSilu,
  kGelu,
  kGeluTanh,
  kQuickGelu,
  kRelu,
  kSoftplus,
  kMish,
  kElu,
  kLeakyRelu,
  kHardSigmoid,
  kHardSwish,
  kRelu6,
  kRelu2
};
enum class PoolKind : uint8_t { kMax, kAverage };
/// kReflect leaves the edge out, kEdge repeats it, kWrap goes around.
enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };
enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
/// Where element i of the result lies in x, for s = scale: kHalfPixel (i + 1/2) / s - 1/2,
/// kAsymmetric i / s, kAlignCorners i * (size - 1) / (new size - 1).
enum class ResizeCoordinates : uint8_t { kHalfPixel, kAlignCorners, kAsymmetric };
enum class ScatterReduction : uint8_t { kNone, kAdd, kMul, kMin, kMax };

// The words of each enum in the text form, in order.
inline constexpr std::array<std::string_view, 29> names_of(UnaryKind) {
  return {"neg",   "abs",     "exp",    "log",    "sqrt",   "reciprocal", "sin",   "cos",
          "tanh",  "sigmoid", "erf",    "floor",  "ceil",   "not",        "tan",   "asin",
          "acos",  "atan",    "sinh",   "cosh",   "asinh",  "acosh",      "atanh", "sign",
          "round", "trunc",   "is_nan", "is_inf", "bit_not"};
}
inline constexpr std::array<std::string_view, 18> names_of(BinaryKind) {
  return {"add", "sub", "mul", "div",  "pow",     "min",    "max",     "floor_div",  "mod",
          "and", "or",  "xor", "fmod", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"};
}
inline constexpr std::array<std::string_view, 6> names_of(CompareKind) {
  return {"eq", "ne", "lt", "le", "gt", "ge"};
}
inline constexpr std::array<std::string_view, 7> names_of(ReduceKind) {
  return {"sum", "mean", "max", "min", "any", "all", "prod"};
}
inline constexpr std::array<std::string_view, 13> names_of(ActivationKind) {
  return {"silu", "gelu",       "gelu_tanh",    "quick_gelu", "relu",  "softplus", "mish",
          "elu",  "leaky_relu", "hard_sigmoid", "hard_swish", "relu6", "relu2"};
}
inline constexpr std::array<std::string_view, 2> names_of(PoolKind) { return {"max", "average"}; }
inline constexpr std::array<std::string_view, 4> names_of(PadMode) {
  return {"constant", "reflect", "edge", "wrap"};
}
inline constexpr std::array<std::string_view, 3> names_of(ResizeMode) {
  return {"nearest", "linear", "cubic"};
}
inline constexpr std::array<std::string_view, 3> names_of(ResizeCoordinates) {
  return {"half_pixel", "align_corners", "asymmetric"};
}
inline constexpr std::array<std::string_view, 5> names_of(ScatterReduction) {
  return {"none", "add", "mul", "min", "max"};
}

/// The immutable base. Held by shared_ptr<const Op>: a copied graph shares its ops.
struct Op {
  const OpKind kind;

 protected:
  explicit Op(OpKind k) : kind(k) {}
  ~Op() = default;
};
using OpPtr = std::shared_ptr<const Op>;

template <OpKind K>
struct OpOf : Op {
  static constexpr OpKind kKind = K;
  OpOf() : Op(K) {}
};

template <class Owner, class T>
struct Field {
  std::string_view name;
  T Owner::* member;
};
template <class Owner, class T>
constexpr Field<Owner, T> field(std::string_view name, T Owner::* member) {
  return {name, member};
}

// ---- where values come from

/// A graph's input. () -> as declared.
struct Input : OpOf<OpKind::kInput> {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  static constexpr auto fields() {
    return std::tuple(field("name", &Input::name), field("dtype", &Input::dtype),
                      field("shape", &Input::shape));
  }
};
/// A weight, by its name in the program. () -> as declared (static).
struct Param : OpOf<OpKind::kParam> {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  static constexpr auto fields() {
    return std::tuple(field("name", &Param::name), field("dtype", &Param::dtype),
                      field("shape", &Param::shape));
  }
};
/// A small tensor written into the graph. () -> its type.
struct Constant : OpOf<OpKind::kConstant> {
  Tensor value;
  static constexpr auto fields() { return std::tuple(field("value", &Constant::value)); }
};
/// A scalar spread over a shape. (scalar) -> shape.
struct Full : OpOf<OpKind::kFull> {
  Shape shape;
  static constexpr auto fields() { return std::tuple(field("shape", &Full::shape)); }
};
/// 0, 1, ... count - 1. () -> i64[count].
struct Iota : OpOf<OpKind::kIota> {
  Dim count;
  static constexpr auto fields() { return std::tuple(field("count", &Iota::count)); }
};
/// A size as a number. () -> i64 scalar.
struct DimToTensor : OpOf<OpKind::kDimToTensor> {
  Dim dim;
  static constexpr auto fields() { return std::tuple(field("dim", &DimToTensor::dim)); }
};

// ---- element by element; operands broadcast as in numpy

struct Cast : OpOf<OpKind::kCast> {
  DType to = DType::kF32;
  static constexpr auto fields() { return std::tuple(field("to", &Cast::to)); }
};
struct Unary : OpOf<OpKind::kUnary> {
  UnaryKind fn = UnaryKind::kNeg;
  static constexpr auto fields() { return std::tuple(field("fn", &Unary::fn)); }
};
struct Binary : OpOf<OpKind::kBinary> {
  BinaryKind fn = BinaryKind::kAdd;
  static constexpr auto fields() { return std::tuple(field("fn", &Binary::fn)); }
};
/// -> bool.
struct Compare : OpOf<OpKind::kCompare> {
  CompareKind fn = CompareKind::kEqual;
  static constexpr auto fields() { return std::tuple(field("fn", &Compare::fn)); }
};
/// (condition bool, a, b) -> a where true, else b.
struct Where : OpOf<OpKind::kWhere> {
  static constexpr auto fields() { return std::tuple(); }
};

// ---- over axes; axes may be negative

struct Reduce : OpOf<OpKind::kReduce> {
  ReduceKind fn = ReduceKind::kSum;
  std::vector<int64_t> axes;
  bool keepdims = true;
  static constexpr auto fields() {
    return std::tuple(field("fn", &Reduce::fn), field("axes", &Reduce::axes),
                      field("keepdims", &Reduce::keepdims));
  }
};
/// The first index of the largest. -> i64 without the axis.
struct ArgMax : OpOf<OpKind::kArgMax> {
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple(field("axis", &ArgMax::axis)); }
};
/// The first index of the smallest. -> i64 without the axis.
struct ArgMin : OpOf<OpKind::kArgMin> {
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple(field("axis", &ArgMin::axis)); }
};
/// (x) -> (values, indices i64), the axis k long: the k largest or smallest, in order, the first of
/// equals first; with k the axis' size that is a stable sort. Order is not promised unless
/// `sorted`.
struct TopK : OpOf<OpKind::kTopK> {
  int64_t axis = -1;
  Dim k;
  bool largest = true;
  bool sorted = true;
  static constexpr auto fields() {
    return std::tuple(field("axis", &TopK::axis), field("k", &TopK::k),
                      field("largest", &TopK::largest), field("sorted", &TopK::sorted));
  }
};
struct CumSum : OpOf<OpKind::kCumSum> {
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple(field("axis", &CumSum::axis)); }
};
struct Softmax : OpOf<OpKind::kSoftmax> {
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple(field("axis", &Softmax::axis)); }
};
/// [..., m, k] x [..., k, n] -> [..., m, n]; leading axes broadcast.
struct MatMul : OpOf<OpKind::kMatMul> {
  static constexpr auto fields() { return std::tuple(); }
};

// ---- over windows: x is [batch, channels, axes...] with one to three axes; lists have an entry an
// axis

/// (x [N, C, ...], weight [O, C / groups, kernel...], bias [O] or absent) -> [N, O, ...].
struct Conv : OpOf<OpKind::kConv> {
  std::vector<int64_t> strides, pads_begin, pads_end, dilations;
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple(field("strides", &Conv::strides), field("pads_begin", &Conv::pads_begin),
                      field("pads_end", &Conv::pads_end), field("dilations", &Conv::dilations),
                      field("groups", &Conv::groups));
  }
};
/// (x [N, C, ...], weight [C, O / groups, kernel...], bias [O] or absent) -> [N, O, ...], an axis
/// (size - 1) * stride - pads + dilation * (kernel - 1) + output_padding + 1 long.
struct ConvTranspose : OpOf<OpKind::kConvTranspose> {
  std::vector<int64_t> strides, pads_begin, pads_end, dilations, output_padding;
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple(
        field("strides", &ConvTranspose::strides), field("pads_begin", &ConvTranspose::pads_begin),
        field("pads_end", &ConvTranspose::pads_end), field("dilations", &ConvTranspose::dilations),
        field("output_padding", &ConvTranspose::output_padding),
        field("groups", &ConvTranspose::groups));
  }
};
/// (x [N, C, ...]) -> [N, C, ...]. Padding is -inf for a maximum. An average divides by the
/// window's elements, padding included if count_include_pad. ceil_mode: a last window may reach
/// past the end, if it begins before it. Averages have no dilation. Source: PyTorch's max_pool,
/// avg_pool.
struct Pool : OpOf<OpKind::kPool> {
  PoolKind fn = PoolKind::kMax;
  std::vector<int64_t> kernel, strides, pads_begin, pads_end, dilations;
  bool ceil_mode = false;
  bool count_include_pad = true;
  static constexpr auto fields() {
    return std::tuple(field("fn", &Pool::fn), field("kernel", &Pool::kernel),
                      field("strides", &Pool::strides), field("pads_begin", &Pool::pads_begin),
                      field("pads_end", &Pool::pads_end), field("dilations", &Pool::dilations),
                      field("ceil_mode", &Pool::ceil_mode),
                      field("count_include_pad", &Pool::count_include_pad));
  }
};
/// (x [N, C, ...] float) -> [N, C, sizes...]. A scale is new size / size, or what `scales` says:
/// coordinates then follow these, as with PyTorch's scale_factor. nearest takes the element below a
/// coordinate, but at kHalfPixel the nearest, of two the later ("nearest-exact"). cubic has a =
/// -0.75. antialias widens the filter when it shrinks; cubic then has a = -0.5. What lies outside
/// counts as the edge. Source: PyTorch's interpolate.
struct Resize : OpOf<OpKind::kResize> {
  ResizeMode mode = ResizeMode::kLinear;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  bool antialias = false;
  Shape sizes;
  std::vector<double> scales;  // none, or one an axis
  static constexpr auto fields() {
    return std::tuple(field("mode", &Resize::mode), field("coordinates", &Resize::coordinates),
                      field("antialias", &Resize::antialias), field("sizes", &Resize::sizes),
                      field("scales", &Resize::scales));
  }
};

// ---- moving elements

struct Reshape : OpOf<OpKind::kReshape> {
  Shape shape;
  static constexpr auto fields() { return std::tuple(field("shape", &Reshape::shape)); }
};
/// Axis i of the result is axis perm[i] of the operand.
struct Transpose : OpOf<OpKind::kTranspose> {
  std::vector<int64_t> perm;
  static constexpr auto fields() { return std::tuple(field("perm", &Transpose::perm)); }
};
/// Repeats axes of size 1, and adds axes in front, up to `shape`.
struct Expand : OpOf<OpKind::kExpand> {
  Shape shape;
  static constexpr auto fields() { return std::tuple(field("shape", &Expand::shape)); }
};
/// New axes of size 1; positions are those of the result.
struct Unsqueeze : OpOf<OpKind::kUnsqueeze> {
  std::vector<int64_t> axes;
  static constexpr auto fields() { return std::tuple(field("axes", &Unsqueeze::axes)); }
};
struct Squeeze : OpOf<OpKind::kSqueeze> {
  std::vector<int64_t> axes;
  static constexpr auto fields() { return std::tuple(field("axes", &Squeeze::axes)); }
};
struct Concat : OpOf<OpKind::kConcat> {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple(field("axis", &Concat::axis)); }
};
/// Elements begin, begin + step, ... below end of one axis. 0 <= begin <= end <= size, step > 0.
struct Slice : OpOf<OpKind::kSlice> {
  int64_t axis = 0;
  Dim begin;
  Dim end;
  int64_t step = 1;
  static constexpr auto fields() {
    return std::tuple(field("axis", &Slice::axis), field("begin", &Slice::begin),
                      field("end", &Slice::end), field("step", &Slice::step));
  }
};
/// (x, value scalar of its dtype or absent: 0) -> each axis begin + size + end long. Amounts are
/// not negative; kReflect reaches less than the axis' size, kWrap at most that.
struct Pad : OpOf<OpKind::kPad> {
  PadMode mode = PadMode::kConstant;
  Shape begin;  // an entry for each axis of x
  Shape end;
  static constexpr auto fields() {
    return std::tuple(field("mode", &Pad::mode), field("begin", &Pad::begin),
                      field("end", &Pad::end));
  }
};
/// Indices of Gather... and Scatter... may count from the end.
/// (data, indices) -> data's axis replaced by indices' axes.
struct Gather : OpOf<OpKind::kGather> {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple(field("axis", &Gather::axis)); }
};
/// (data, indices of the same rank) -> indices' shape: along the axis by index, elsewhere in place.
struct GatherElements : OpOf<OpKind::kGatherElements> {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple(field("axis", &GatherElements::axis)); }
};

/// (data [B..., d0, d1, ...], indices [B..., i..., n]) -> [B..., i..., data's axes after n]: the
/// last axis of indices names a place along the n axes after the first batch_dims.
struct GatherNd : OpOf<OpKind::kGatherNd> {
  int64_t batch_dims = 0;
  static constexpr auto fields() { return std::tuple(field("batch_dims", &GatherNd::batch_dims)); }
};
/// (data, indices, updates of the indices' shape) -> data with updates at the places that
/// GatherElements would read. Without a reduction, no place may be named twice.
struct ScatterElements : OpOf<OpKind::kScatterElements> {
  int64_t axis = 0;
  ScatterReduction reduction = ScatterReduction::kNone;
  static constexpr auto fields() {
    return std::tuple(field("axis", &ScatterElements::axis),
                      field("reduction", &ScatterElements::reduction));
  }
};
/// (data, indices [i..., n], updates [i..., data's axes after n]) -> data with updates at the
/// places that GatherNd would read. Without a reduction, no place may be named twice.
struct ScatterNd : OpOf<OpKind::kScatterNd> {
  ScatterReduction reduction = ScatterReduction::kNone;
  static constexpr auto fields() { return std::tuple(field("reduction", &ScatterNd::reduction)); }
};

// ---- a size that is born from data: a new symbol, whose origin is the node

/// (x) -> i64 [count, rank of x]: the places of what is not 0 or false, in order.
struct NonZero : OpOf<OpKind::kNonZero> {
  Dim count;  // a symbol
  static constexpr auto fields() { return std::tuple(field("count", &NonZero::count)); }
};
/// (x i64 scalar) -> x, and a size of that value.
struct Item : OpOf<OpKind::kItem> {
  Dim value;  // a symbol
  static constexpr auto fields() { return std::tuple(field("value", &Item::value)); }
};

// ---- control flow: sub-graphs whose Inputs stand, in order, for the node's inputs named below

/// (condition, captured...), graphs {then, else}: (captured...) -> results.
struct If : OpOf<OpKind::kIf> {
  static constexpr auto fields() { return std::tuple(); }
};
/// (trips i64, going bool, carried..., captured...), graph {body}: (trip i64, carried...,
/// captured...) -> (going, carried...). Runs while going and trip < trips. -> the last carried.
struct Loop : OpOf<OpKind::kLoop> {
  int64_t num_carried = 0;
  static constexpr auto fields() { return std::tuple(field("num_carried", &Loop::num_carried)); }
};
/// (carried..., scanned..., captured...), graph {body}: (carried..., one slice of each scanned
/// along axis 0..., captured...) -> (carried..., one slice of each result...). -> (the last
/// carried..., the results stacked on axis 0...).
struct Scan : OpOf<OpKind::kScan> {
  int64_t num_carried = 0;
  int64_t num_scanned = 0;
  static constexpr auto fields() {
    return std::tuple(field("num_carried", &Scan::num_carried),
                      field("num_scanned", &Scan::num_scanned));
  }
};
/// An imported operator by its own name, with the type it claimed. It never reaches a writer.
struct Opaque : OpOf<OpKind::kOpaque> {
  std::string target;
  DType dtype = DType::kF32;
  Shape shape;
  static constexpr auto fields() {
    return std::tuple(field("target", &Opaque::target), field("dtype", &Opaque::dtype),
                      field("shape", &Opaque::shape));
  }
};

// ---- composites

/// (x [..., in], weight [out, in], bias [out] or absent) -> [..., out]: x weight^T + bias.
struct Linear : OpOf<OpKind::kLinear> {
  static constexpr auto fields() { return std::tuple(); }
};
/// (weight [n, d], ids [...]) -> [..., d].
struct Embedding : OpOf<OpKind::kEmbedding> {
  static constexpr auto fields() { return std::tuple(); }
};
/// (x [..., d], weight [d]) -> x / sqrt(mean(x^2) + eps) * weight, the mean in f32.
struct RmsNorm : OpOf<OpKind::kRmsNorm> {
  double eps = 1e-6;
  static constexpr auto fields() { return std::tuple(field("eps", &RmsNorm::eps)); }
};
/// (x [..., d], weight [d], bias [d] or absent) -> (x - mean) / sqrt(variance + eps) * weight +
/// bias.
struct LayerNorm : OpOf<OpKind::kLayerNorm> {
  double eps = 1e-5;
  static constexpr auto fields() { return std::tuple(field("eps", &LayerNorm::eps)); }
};
/// (x, and for kLeakyRelu the slope of what is negative, broadcasting to x) -> as x.
struct Activation : OpOf<OpKind::kActivation> {
  ActivationKind fn = ActivationKind::kSilu;
  static constexpr auto fields() { return std::tuple(field("fn", &Activation::fn)); }
};
/// (x [B, H, S, D], cos [B, S, R/2], sin [B, S, R/2]) -> as x: the first R of D rotated in halves
/// (element i with i + R/2), the rest passed through.
struct Rope : OpOf<OpKind::kRope> {
  static constexpr auto fields() { return std::tuple(); }
};
/// (q [B, H, S, D], k [B, K, T, D], v [B, K, T, Dv], key mask bool [B, T] or absent, bias [B or 1,
/// H or 1, S, T] or absent) -> [B, H, S, Dv]. H is a multiple of K. Query i stands at position T -
/// S + i: causal means that it sees keys up to there, window that it sees only the last `window` of
/// these. A bias of numbers is added to the scores; one of bool says which keys are seen. A query
/// that sees no key gives zeros.
struct Attention : OpOf<OpKind::kAttention> {
  double scale = 1;
  bool causal = false;
  std::optional<int64_t> window;
  static constexpr auto fields() {
    return std::tuple(field("scale", &Attention::scale), field("causal", &Attention::causal),
                      field("window", &Attention::window));
  }
};
/// (cache [B, K, P, D], new [B, K, S, D]) -> [B, K, P + S, D]: a cache that grows.
struct CacheAppend : OpOf<OpKind::kCacheAppend> {
  static constexpr auto fields() { return std::tuple(); }
};

/// (x [..., H], expert i64 [..., k], weight [..., k], gate_up [E, 2 I, H], down [E, H, I]) -> [...,
/// H]: the sum over k of weight * down[expert] (act(gate) * up), where gate and up are the halves
/// of gate_up[expert] x. A token names an expert at most once.
struct Moe : OpOf<OpKind::kMoe> {
  ActivationKind fn = ActivationKind::kSilu;
  static constexpr auto fields() { return std::tuple(field("fn", &Moe::fn)); }
};
/// (x [B, L, D], step [B, L, D], a f32 [D, N], b [B, L, N], c [B, L, N], state f32 [B, D, N]) -> (y
/// f32 [B, L, D], last state): for each l, state = exp(step a) state + step x b; y = sum over N of
/// state c; in f32. Source: modeling_mamba.py (5.23).
struct SelectiveScan : OpOf<OpKind::kSelectiveScan> {
  static constexpr auto fields() { return std::tuple(); }
};

/// The op as its struct. Errors: internal if it is of another kind.
template <class T>
const T& as(const Op& op);

/// Calls f.operator()<T>() with the struct of a kind: the one place that lists them all.
template <class F>
decltype(auto) visit_kind(OpKind kind, F&& f) {  // #lizard forgives: a table, one line an op
  switch (kind) {
    case OpKind::kInput:
      return f.template operator()<Input>();
    case OpKind::kParam:
      return f.template operator()<Param>();
    case OpKind::kConstant:
      return f.template operator()<Constant>();
    case OpKind::kFull:
      return f.template operator()<Full>();
    case OpKind::kIota:
      return f.template operator()<Iota>();
    case OpKind::kDimToTensor:
      return f.template operator()<DimToTensor>();
    case OpKind::kCast:
      return f.template operator()<Cast>();
    case OpKind::kUnary:
      return f.template operator()<Unary>();
    case OpKind::kBinary:
      return f.template operator()<Binary>();
    case OpKind::kCompare:
      return f.template operator()<Compare>();
    case OpKind::kWhere:
      return f.template operator()<Where>();
    case OpKind::kReduce:
      return f.template operator()<Reduce>();
    case OpKind::kArgMax:
      return f.template operator()<ArgMax>();
    case OpKind::kArgMin:
      return f.template operator()<ArgMin>();
    case OpKind::kTopK:
      return f.template operator()<TopK>();
    case OpKind::kCumSum:
      return f.template operator()<CumSum>();
    case OpKind::kSoftmax:
      return f.template operator()<Softmax>();
    case OpKind::kMatMul:
      return f.template operator()<MatMul>();
    case OpKind::kConv:
      return f.template operator()<Conv>();
    case OpKind::kConvTranspose:
      return f.template operator()<ConvTranspose>();
    case OpKind::kPool:
      return f.template operator()<Pool>();
    case OpKind::kResize:
      return f.template operator()<Resize>();
    case OpKind::kReshape:
      return f.template operator()<Reshape>();
    case OpKind::kTranspose:
      return f.template operator()<Transpose>();
    case OpKind::kExpand:
      return f.template operator()<Expand>();
    case OpKind::kUnsqueeze:
      return f.template operator()<Unsqueeze>();
    case OpKind::kSqueeze:
      return f.template operator()<Squeeze>();
    case OpKind::kConcat:
      return f.template operator()<Concat>();
    case OpKind::kSlice:
      return f.template operator()<Slice>();
    case OpKind::kPad:
      return f.template operator()<Pad>();
    case OpKind::kGather:
      return f.template operator()<Gather>();
    case OpKind::kGatherElements:
      return f.template operator()<GatherElements>();
    case OpKind::kGatherNd:
      return f.template operator()<GatherNd>();
    case OpKind::kScatterElements:
      return f.template operator()<ScatterElements>();
    case OpKind::kScatterNd:
      return f.template operator()<ScatterNd>();
    case OpKind::kNonZero:
      return f.template operator()<NonZero>();
    case OpKind::kItem:
      return f.template operator()<Item>();
    case OpKind::kIf:
      return f.template operator()<If>();
    case OpKind::kLoop:
      return f.template operator()<Loop>();
    case OpKind::kScan:
      return f.template operator()<Scan>();
    case OpKind::kOpaque:
      return f.template operator()<Opaque>();
    case OpKind::kLinear:
      return f.template operator()<Linear>();
    case OpKind::kEmbedding:
      return f.template operator()<Embedding>();
    case OpKind::kRmsNorm:
      return f.template operator()<RmsNorm>();
    case OpKind::kLayerNorm:
      return f.template operator()<LayerNorm>();
    case OpKind::kActivation:
      return f.template operator()<Activation>();
    case OpKind::kRope:
      return f.template operator()<Rope>();
    case OpKind::kAttention:
      return f.template operator()<Attention>();
    case OpKind::kCacheAppend:
      return f.template operator()<CacheAppend>();
    case OpKind::kMoe:
      return f.template operator()<Moe>();
    case OpKind::kSelectiveScan:
      return f.template operator()<SelectiveScan>();
  }
  __builtin_unreachable();
}

/// Calls f with the op as its struct.
template <class F>
decltype(auto) visit(const Op& op, F&& f) {
  return visit_kind(op.kind,
                    [&]<class T>() -> decltype(auto) { return f(static_cast<const T&>(op)); });
}

[[noreturn]] void fail_kind(OpKind expected, OpKind found);

template <class T>
const T& as(const Op& op) {
  if (op.kind != T::kKind) fail_kind(T::kKind, op.kind);
  return static_cast<const T&>(op);
}

/// Same kind, equal attributes.
bool same(const Op& a, const Op& b);
/// The symbols in its attributes.
std::set<std::string> symbols(const Op& op);
/// The symbol that a NonZero or Item gives birth to.
std::optional<std::string> born_symbol(const Op& op);
/// The op with symbols replaced in its dims.
OpPtr substitute(const Op& op, const std::map<std::string, Dim>& symbols);
/// "RmsNorm {eps=1e-06}": kind and attributes; equal texts are equal ops.
std::string text(const Op& op);

}  // namespace tranship::ir

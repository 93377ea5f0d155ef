#include "interpret/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace tranship {
namespace {

using namespace ir;  // NOLINT: the ops' names are this file's subject

Sizes evaluate_shape(const Shape& shape, const Symbols& symbols) {
  Sizes sizes;
  for (const Dim& d : shape.dims) sizes.push_back(d.evaluate(symbols));
  return sizes;
}

double unary_of(UnaryKind fn, double x) {  // #lizard forgives: a table
  switch (fn) {
    case UnaryKind::kNeg:
      return -x;
    case UnaryKind::kAbs:
      return std::abs(x);
    case UnaryKind::kExp:
      return std::exp(x);
    case UnaryKind::kLog:
      return std::log(x);
    case UnaryKind::kSqrt:
      return std::sqrt(x);
    case UnaryKind::kReciprocal:
      return 1 / x;
    case UnaryKind::kSin:
      return std::sin(x);
    case UnaryKind::kCos:
      return std::cos(x);
    case UnaryKind::kTanh:
      return std::tanh(x);
    case UnaryKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case UnaryKind::kErf:
      return std::erf(x);
    case UnaryKind::kFloor:
      return std::floor(x);
    case UnaryKind::kCeil:
      return std::ceil(x);
    case UnaryKind::kNot:
      return x == 0 ? 1 : 0;
    case UnaryKind::kTan:
      return std::tan(x);
    case UnaryKind::kAsin:
      return std::asin(x);
    case UnaryKind::kAcos:
      return std::acos(x);
    case UnaryKind::kAtan:
      return std::atan(x);
    case UnaryKind::kSinh:
      return std::sinh(x);
    case UnaryKind::kCosh:
      return std::cosh(x);
    case UnaryKind::kAsinh:
      return std::asinh(x);
    case UnaryKind::kAcosh:
      return std::acosh(x);
    case UnaryKind::kAtanh:
      return std::atanh(x);
    case UnaryKind::kSign:
      return x > 0 ? 1 : (x < 0 ? -1 : x);
    case UnaryKind::kRound:
      return std::nearbyint(x);
    case UnaryKind::kTrunc:
      return std::trunc(x);
    case UnaryKind::kIsNan:
      return std::isnan(x) ? 1 : 0;
    case UnaryKind::kIsInf:
      return std::isinf(x) ? 1 : 0;
    case UnaryKind::kBitNot:
      return static_cast<double>(~static_cast<int64_t>(x));
  }
  __builtin_unreachable();
}

void check_divisor(BinaryKind fn, double divisor) {
  const bool divides = fn == BinaryKind::kDiv || fn == BinaryKind::kFloorDiv ||
                       fn == BinaryKind::kMod || fn == BinaryKind::kFmod;
  if (divides && divisor == 0)
    fail(ErrorKind::kInvalidArgument, "[interpret] an integer is divided by zero");
}

/// The rest that has the divisor's sign. Source: PyTorch's remainder.
double mod_of(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double bits_of(BinaryKind fn, double x, double y) {
  const auto a = static_cast<int64_t>(x), b = static_cast<int64_t>(y);
  if (fn == BinaryKind::kBitAnd) return static_cast<double>(a & b);
  if (fn == BinaryKind::kBitOr) return static_cast<double>(a | b);
  if (fn == BinaryKind::kBitXor) return static_cast<double>(a ^ b);
  if (b < 0 || b > 63) fail(ErrorKind::kInvalidArgument, "[interpret] a shift by {} bits", b);
  if (fn == BinaryKind::kShiftRight) return static_cast<double>(a >> b);
  return static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(a) << b));
}

double binary_of(BinaryKind fn, double a, double b,
                 bool integer) {  // #lizard forgives: a table
  if (integer) check_divisor(fn, b);
  switch (fn) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return integer ? std::trunc(a / b) : a / b;
    case BinaryKind::kPow:
      return std::pow(a, b);
    case BinaryKind::kMin:
      return std::isnan(a) || a < b ? a : b;
    case BinaryKind::kMax:
      return std::isnan(a) || a > b ? a : b;
    case BinaryKind::kFloorDiv:
      return std::floor(a / b);
    case BinaryKind::kMod:
      return mod_of(a, b);
    case BinaryKind::kFmod:
      return std::fmod(a, b);
    case BinaryKind::kAnd:
      return a != 0 && b != 0 ? 1 : 0;
    case BinaryKind::kOr:
      return a != 0 || b != 0 ? 1 : 0;
    case BinaryKind::kXor:
      return (a != 0) != (b != 0) ? 1 : 0;
    case BinaryKind::kBitAnd:
    case BinaryKind::kBitOr:
    case BinaryKind::kBitXor:
    case BinaryKind::kShiftLeft:
    case BinaryKind::kShiftRight:
      return bits_of(fn, a, b);
  }
  __builtin_unreachable();
}

bool compare_of(CompareKind fn, double a, double b) {
  switch (fn) {
    case CompareKind::kEqual:
      return a == b;
    case CompareKind::kNotEqual:
      return a != b;
    case CompareKind::kLess:
      return a < b;
    case CompareKind::kLessEqual:
      return a <= b;
    case CompareKind::kGreater:
      return a > b;
    case CompareKind::kGreaterEqual:
      return a >= b;
  }
  __builtin_unreachable();
}

template <class F>
Array map2(DType dtype, const Array& a, const Array& b, F f) {
  Array out(dtype, broadcast_shape(a.shape, b.shape));
  const std::vector<int64_t> ia = broadcast_index(out.shape, a.shape),
                             ib = broadcast_index(out.shape, b.shape);
  for (int64_t i = 0; i < out.size(); ++i)
    out[i] = f(a[ia[static_cast<size_t>(i)]], b[ib[static_cast<size_t>(i)]]);
  return out;
}

Array run_where(const Operands& in) {
  Array out(in[1]->dtype,
            broadcast_shape(in[0]->shape, broadcast_shape(in[1]->shape, in[2]->shape)));
  const auto c = broadcast_index(out.shape, in[0]->shape),
             a = broadcast_index(out.shape, in[1]->shape),
             b = broadcast_index(out.shape, in[2]->shape);
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    out[i] = (*in[0])[c[at]] != 0 ? (*in[1])[a[at]] : (*in[2])[b[at]];
  }
  return out;
}

double start_of(ReduceKind fn) {
  switch (fn) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
    case ReduceKind::kAny:
      return 0;
    case ReduceKind::kAll:
    case ReduceKind::kProd:
      return 1;
    case ReduceKind::kMax:
      return -std::numeric_limits<double>::infinity();
    case ReduceKind::kMin:
      return std::numeric_limits<double>::infinity();
  }
  __builtin_unreachable();
}

double reduce_of(ReduceKind fn, double a, double b) {
  switch (fn) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      return a + b;
    case ReduceKind::kAny:
      return a != 0 || b != 0 ? 1 : 0;
    case ReduceKind::kAll:
      return a != 0 && b != 0 ? 1 : 0;
    case ReduceKind::kMax:
      return std::max(a, b);
    case ReduceKind::kMin:
      return std::min(a, b);
    case ReduceKind::kProd:
      return a * b;
  }
  __builtin_unreachable();
}

Array run_reduce(const Array& x, const Reduce& op) {
  Sizes kept = x.shape;
  int64_t count = 1;
  for (const int64_t a : op.axes) {
    int64_t& size = kept[static_cast<size_t>(axis_of(a, x.rank()))];
    count *= size;
    size = 1;
  }
  Array out(x.dtype, kept);
  std::fill(out.data.begin(), out.data.end(), start_of(op.fn));
  const std::vector<int64_t> to = broadcast_index(x.shape, kept);
  for (int64_t i = 0; i < x.size(); ++i) {
    double& slot = out[to[static_cast<size_t>(i)]];
    slot = reduce_of(op.fn, slot, x[i]);
  }
  if (op.fn == ReduceKind::kMean) {
    for (double& v : out.data) v /= static_cast<double>(count);
  }
  if (!op.keepdims) {
    std::vector<bool> gone(x.shape.size(), false);
    for (const int64_t a : op.axes) gone[static_cast<size_t>(axis_of(a, x.rank()))] = true;
    out.shape.clear();
    for (size_t i = 0; i < x.shape.size(); ++i) {
      if (!gone[i]) out.shape.push_back(x.shape[i]);
    }
  }
  return out;
}

/// Calls f(first element, stride) for each line of x along an axis.
template <class F>
void each_line(const Sizes& shape, int64_t axis, F f) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t at = axis_of(axis, rank);
  const int64_t inner = product(shape, at + 1, rank);
  const int64_t outer = product(shape, 0, at);
  const int64_t length = shape[static_cast<size_t>(at)];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) f(o * length * inner + i, inner, length);
  }
}

/// The first index of the largest, or smallest.
Array run_argmax(const Array& x, int64_t axis, bool largest) {
  Sizes shape = x.shape;
  shape.erase(shape.begin() + axis_of(axis, x.rank()));
  Array out(DType::kI64, shape);
  int64_t line = 0;
  each_line(x.shape, axis, [&](int64_t first, int64_t stride, int64_t length) {
    int64_t best = 0;
    for (int64_t i = 1; i < length; ++i) {
      const double a = x[first + i * stride], b = x[first + best * stride];
      if (largest ? a > b : a < b) best = i;
    }
    out[line++] = static_cast<double>(best);
  });
  return out;
}

Array run_cumsum(Array x, int64_t axis) {
  each_line(x.shape, axis, [&](int64_t first, int64_t stride, int64_t length) {
    for (int64_t i = 1; i < length; ++i) x[first + i * stride] += x[first + (i - 1) * stride];
  });
  return x;
}

Array run_softmax(Array x, int64_t axis) {
  each_line(x.shape, axis, [&](int64_t first, int64_t stride, int64_t length) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < length; ++i) largest = std::max(largest, x[first + i * stride]);
    double sum = 0;
    for (int64_t i = 0; i < length; ++i)
      sum += x[first + i * stride] = std::exp(x[first + i * stride] - largest);
    for (int64_t i = 0; i < length; ++i) x[first + i * stride] /= sum;
  });
  return x;
}

Array run_matmul(const Array& a, const Array& b) {
  const Sizes batch_a(a.shape.begin(), a.shape.end() - 2),
      batch_b(b.shape.begin(), b.shape.end() - 2);
  Sizes shape = broadcast_shape(batch_a, batch_b);
  const std::vector<int64_t> ia = broadcast_index(shape, batch_a),
                             ib = broadcast_index(shape, batch_b);
  const int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = b.shape.back();
  shape.push_back(m);
  shape.push_back(n);
  Array out(a.dtype, shape);
  for (size_t s = 0; s < ia.size(); ++s) {
    for (int64_t r = 0; r < m; ++r) {
      double* row =
          &out.data[(s * static_cast<size_t>(m) + static_cast<size_t>(r)) * static_cast<size_t>(n)];
      for (int64_t i = 0; i < k; ++i) {
        const double x = a[(ia[s] * m + r) * k + i];
        for (int64_t c = 0; c < n; ++c) row[c] += x * b[(ib[s] * k + i) * n + c];
      }
    }
  }
  return out;
}

Array run_transpose(const Array& x, const std::vector<int64_t>& perm) {
  const int64_t rank = x.rank();
  Sizes shape, strides, from_strides(x.shape.size(), 1);
  for (int64_t i = rank - 2; i >= 0; --i) {
    from_strides[static_cast<size_t>(i)] =
        from_strides[static_cast<size_t>(i + 1)] * x.shape[static_cast<size_t>(i + 1)];
  }
  for (const int64_t p : perm) {
    shape.push_back(x.shape[static_cast<size_t>(axis_of(p, rank))]);
    strides.push_back(from_strides[static_cast<size_t>(axis_of(p, rank))]);
  }
  Array out(x.dtype, shape);
  Sizes at(shape.size(), 0);
  int64_t from = 0;
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = x[from];
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return out;
}

Array with_shape(Array x, Sizes shape) {
  if (product(shape) != x.size())
    fail(ErrorKind::kInvalidArgument, "[interpret] {} elements in a shape of {}", x.size(),
         product(shape));
  x.shape = std::move(shape);
  return x;
}

Array run_unsqueeze(Array x, const std::vector<int64_t>& axes, bool squeeze) {
  const auto more = static_cast<int64_t>(axes.size());
  const int64_t rank = squeeze ? x.rank() : x.rank() + more;
  std::vector<bool> marked(static_cast<size_t>(rank), false);
  for (const int64_t a : axes) marked[static_cast<size_t>(axis_of(a, rank))] = true;
  Sizes shape;
  size_t from = 0;
  for (size_t i = 0; i < marked.size(); ++i) {
    if (squeeze) {
      if (!marked[i]) shape.push_back(x.shape[i]);
    } else {
      shape.push_back(marked[i] ? 1 : x.shape[from++]);
    }
  }
  return with_shape(std::move(x), shape);
}

Array run_slice(const Array& x, const Slice& op, const Symbols& symbols) {
  const int64_t axis = axis_of(op.axis, x.rank());
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  const int64_t begin = op.begin.evaluate(symbols), end = op.end.evaluate(symbols);
  if (begin < 0 || end < begin || end > size) {
    fail(ErrorKind::kInvalidArgument, "[interpret] slice [{}, {}) of an axis of {}", begin, end,
         size);
  }
  Sizes shape = x.shape;
  const int64_t length = (end - begin + op.step - 1) / op.step;
  shape[static_cast<size_t>(axis)] = length;
  Array out(x.dtype, shape);
  const int64_t inner = product(x.shape, axis + 1, x.rank());
  for (int64_t o = 0; o < product(x.shape, 0, axis); ++o) {
    for (int64_t i = 0; i < length * inner; ++i) {
      out[o * length * inner + i] = x[(o * size + begin + i / inner * op.step) * inner + i % inner];
    }
  }
  return out;
}

Array run_cast(const Array& x, DType to) {
  Array out = x;
  out.dtype = to;
  return out;
}

Array run_full(const Operands& in, Sizes shape) {
  Array out(in[0]->dtype, std::move(shape));
  std::fill(out.data.begin(), out.data.end(), (*in[0])[0]);
  return out;
}

Array run_iota(int64_t count) {
  Array out(DType::kI64, {count});
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(i);
  return out;
}

Array run_expand(const Array& x, Sizes shape) {
  shape = broadcast_shape(x.shape, shape);
  Array out(x.dtype, shape);
  const std::vector<int64_t> index = broadcast_index(shape, x.shape);
  for (int64_t i = 0; i < out.size(); ++i) out[i] = x[index[static_cast<size_t>(i)]];
  return out;
}

}  // namespace

Array run_gather(const Operands& in, int64_t axis_attribute) {
  const Array &x = *in[0], &indices = *in[1];
  const int64_t axis = axis_of(axis_attribute, x.rank());
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  const int64_t inner = product(x.shape, axis + 1, x.rank());
  Sizes shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  Array out(x.dtype, shape);
  int64_t to = 0;
  for (int64_t o = 0; o < product(x.shape, 0, axis); ++o) {
    for (int64_t i = 0; i < indices.size(); ++i) {
      const int64_t from = (o * size + checked_index(indices[i], size)) * inner;
      for (int64_t j = 0; j < inner; ++j) out[to++] = x[from + j];
    }
  }
  return out;
}

Array run_concat(const Operands& in, int64_t axis_attribute) {
  const int64_t axis = axis_of(axis_attribute, in[0]->rank());
  Sizes shape = in[0]->shape;
  shape[static_cast<size_t>(axis)] = 0;
  for (const Array* part : in) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (static_cast<int64_t>(i) != axis && part->shape[i] != shape[i]) {
        fail(ErrorKind::kInvalidArgument, "[interpret] Concat: sizes {} and {} beside the axis",
             part->shape[i], shape[i]);
      }
    }
    shape[static_cast<size_t>(axis)] += part->shape[static_cast<size_t>(axis)];
  }
  Array out(in[0]->dtype, shape);
  int64_t to = 0;
  for (int64_t o = 0; o < product(shape, 0, axis); ++o) {
    for (const Array* part : in) {
      const int64_t block = product(part->shape, axis, part->rank());
      for (int64_t i = 0; i < block; ++i) out[to++] = (*part)[o * block + i];
    }
  }
  return out;
}

namespace {

/// The result of an op that has one.
Array run_kernel(const Op& op, const Operands& in,
                 const Symbols& symbols) {  // #lizard forgives: a table, one line an op
  switch (op.kind) {
    case OpKind::kConstant:
      return Array::of(as<Constant>(op).value);
    case OpKind::kFull:
      return run_full(in, evaluate_shape(as<Full>(op).shape, symbols));
    case OpKind::kIota:
      return run_iota(as<Iota>(op).count.evaluate(symbols));
    case OpKind::kDimToTensor: {
      Array out(DType::kI64, {});
      out[0] = static_cast<double>(as<DimToTensor>(op).dim.evaluate(symbols));
      return out;
    }
    case OpKind::kCast:
      return run_cast(*in[0], as<Cast>(op).to);
    case OpKind::kUnary: {
      const UnaryKind fn = as<Unary>(op).fn;
      Array out = *in[0];
      for (double& v : out.data) v = unary_of(fn, v);
      if (fn == UnaryKind::kIsNan || fn == UnaryKind::kIsInf) out.dtype = DType::kBool;
      return out;
    }
    case OpKind::kBinary: {
      const bool integer = is_integer(in[0]->dtype);
      return map2(in[0]->dtype, *in[0], *in[1],
                  [&](double a, double b) { return binary_of(as<Binary>(op).fn, a, b, integer); });
    }
    case OpKind::kCompare:
      return map2(DType::kBool, *in[0], *in[1], [&](double a, double b) {
        return compare_of(as<Compare>(op).fn, a, b) ? 1.0 : 0.0;
      });
    case OpKind::kWhere:
      return run_where(in);
    case OpKind::kReduce:
      return run_reduce(*in[0], as<Reduce>(op));
    case OpKind::kArgMax:
      return run_argmax(*in[0], as<ArgMax>(op).axis, true);
    case OpKind::kArgMin:
      return run_argmax(*in[0], as<ArgMin>(op).axis, false);
    case OpKind::kCumSum:
      return run_cumsum(*in[0], as<CumSum>(op).axis);
    case OpKind::kSoftmax:
      return run_softmax(*in[0], as<Softmax>(op).axis);
    case OpKind::kMatMul:
      return run_matmul(*in[0], *in[1]);
    case OpKind::kConv:
      return run_conv(in, as<Conv>(op));
    case OpKind::kConvTranspose:
      return run_conv_transpose(in, as<ConvTranspose>(op));
    case OpKind::kPool:
      return run_pool(*in[0], as<Pool>(op));
    case OpKind::kResize:
      return run_resize(*in[0], as<Resize>(op), evaluate_shape(as<Resize>(op).sizes, symbols));
    case OpKind::kReshape:
      return with_shape(*in[0], evaluate_shape(as<Reshape>(op).shape, symbols));
    case OpKind::kTranspose:
      return run_transpose(*in[0], as<Transpose>(op).perm);
    case OpKind::kExpand:
      return run_expand(*in[0], evaluate_shape(as<Expand>(op).shape, symbols));
    case OpKind::kUnsqueeze:
      return run_unsqueeze(*in[0], as<Unsqueeze>(op).axes, false);
    case OpKind::kSqueeze:
      return run_unsqueeze(*in[0], as<Squeeze>(op).axes, true);
    case OpKind::kConcat:
      return run_concat(in, as<Concat>(op).axis);
    case OpKind::kSlice:
      return run_slice(*in[0], as<Slice>(op), symbols);
    case OpKind::kPad:
      return run_pad(in, as<Pad>(op).mode, evaluate_shape(as<Pad>(op).begin, symbols),
                     evaluate_shape(as<Pad>(op).end, symbols));
    case OpKind::kGather:
      return run_gather(in, as<Gather>(op).axis);
    case OpKind::kGatherElements:
      return run_gather_elements(in, as<GatherElements>(op).axis);
    case OpKind::kGatherNd:
      return run_gather_nd(in, as<GatherNd>(op).batch_dims);
    case OpKind::kScatterElements:
      return run_scatter_elements(in, as<ScatterElements>(op));
    case OpKind::kScatterNd:
      return run_scatter_nd(in, as<ScatterNd>(op).reduction);
    case OpKind::kNonZero:
      return run_non_zero(*in[0]);
    case OpKind::kItem:
      return *in[0];
    case OpKind::kLinear:
      return run_linear(in);
    case OpKind::kEmbedding:
      return run_gather(in, 0);
    case OpKind::kRmsNorm:
      return run_rms_norm(in, as<RmsNorm>(op).eps);
    case OpKind::kLayerNorm:
      return run_layer_norm(in, as<LayerNorm>(op).eps);
    case OpKind::kActivation:
      return run_activation(in, as<Activation>(op).fn);
    case OpKind::kRope:
      return run_rope(in);
    case OpKind::kAttention:
      return run_attention(in, as<Attention>(op));
    case OpKind::kCacheAppend:
      return run_concat(in, 2);
    case OpKind::kMoe:
      return run_moe(in, as<Moe>(op).fn);
    case OpKind::kTopK:
    case OpKind::kSelectiveScan:
    case OpKind::kInput:
    case OpKind::kParam:
    case OpKind::kIf:
    case OpKind::kLoop:
    case OpKind::kScan:
    case OpKind::kOpaque:
      break;
  }
  fail(ErrorKind::kInternal, "[interpret] {} has no kernel", name(op.kind));
}

}  // namespace

std::vector<Array> run_kernels(const Op& op, const Operands& in, const Symbols& symbols) {
  std::vector<Array> results;
  if (op.kind == OpKind::kTopK) {
    results = run_top_k(*in[0], as<TopK>(op), as<TopK>(op).k.evaluate(symbols));
  } else if (op.kind == OpKind::kSelectiveScan) {
    results = run_selective_scan(in);
  } else {
    results.push_back(run_kernel(op, in, symbols));
  }
  for (Array& result : results) result.round();
  return results;
}

}  // namespace tranship

#include "ir/infer.h"

#include <algorithm>
#include <set>

#include "ir/inferrer.h"

namespace tranship::ir {

int64_t normal_axis(int64_t axis, int64_t rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    fail(ErrorKind::kInvalidArgument, "[infer] {}: axis {} of a tensor of rank {}", what, axis,
         rank);
  }
  return axis < 0 ? axis + rank : axis;
}

std::vector<Type> Inferrer::results() {  // #lizard forgives: a table, one line an op
  switch (op_.kind) {
    case OpKind::kInput:
      need_count(0, 0);
      return one(as<Input>(op_).dtype, as<Input>(op_).shape);
    case OpKind::kParam:
      need_count(0, 0);
      if (!as<Param>(op_).shape.is_static())
        error("'{}' has a symbolic shape", as<Param>(op_).name);
      return one(as<Param>(op_).dtype, as<Param>(op_).shape);
    case OpKind::kConstant:
      need_count(0, 0);
      return one(as<Constant>(op_).value.dtype(), Shape::of(as<Constant>(op_).value.shape()));
    case OpKind::kFull:
      need_count(1, 1);
      need_rank(0, 0);
      return one(in(0).dtype, as<Full>(op_).shape);
    case OpKind::kIota:
      need_count(0, 0);
      return one(DType::kI64, Shape{as<Iota>(op_).count});
    case OpKind::kDimToTensor:
      need_count(0, 0);
      return one(DType::kI64, {});
    case OpKind::kCast:
      need_count(1, 1);
      return one(as<Cast>(op_).to, shape(0));
    case OpKind::kUnary:
    case OpKind::kBinary:
    case OpKind::kCompare:
    case OpKind::kWhere:
      return elementwise();
    case OpKind::kReduce: {
      need_count(1, 1);
      const auto& r = as<Reduce>(op_);
      const bool logical = r.fn == ReduceKind::kAny || r.fn == ReduceKind::kAll;
      if (logical) need_dtype(0, DType::kBool);
      if (!logical && in(0).dtype == DType::kBool)
        error("operand is bool: cast it, or use any or all");
      return reduce(r.axes, r.keepdims, in(0).dtype);
    }
    case OpKind::kArgMax:
      need_count(1, 1);
      return reduce({as<ArgMax>(op_).axis}, false, DType::kI64);
    case OpKind::kArgMin:
      need_count(1, 1);
      return reduce({as<ArgMin>(op_).axis}, false, DType::kI64);
    case OpKind::kTopK:
      return top_k();
    case OpKind::kCumSum:
      need_count(1, 1);
      normal_axis(as<CumSum>(op_).axis, shape(0).rank(), "CumSum");
      return as_operand();
    case OpKind::kSoftmax:
      need_count(1, 1);
      need_float(0);
      normal_axis(as<Softmax>(op_).axis, shape(0).rank(), "Softmax");
      return as_operand();
    case OpKind::kMatMul:
      return matmul();
    case OpKind::kConv:
      return conv();
    case OpKind::kConvTranspose:
      return conv_transpose();
    case OpKind::kPool:
      return pool();
    case OpKind::kResize:
      return resize();
    case OpKind::kReshape:
      return reshape();
    case OpKind::kTranspose: {
      need_count(1, 1);
      const auto& perm = as<Transpose>(op_).perm;
      if (std::set<int64_t>(perm.begin(), perm.end()).size() != perm.size() ||
          static_cast<int64_t>(perm.size()) != shape(0).rank()) {
        error("perm does not name each axis of {} once", shape(0).text());
      }
      Shape out;
      for (const int64_t axis : perm)
        out.dims.push_back(shape(0)[normal_axis(axis, shape(0).rank(), "Transpose")]);
      return one(in(0).dtype, out);
    }
    case OpKind::kExpand:
      return expand();
    case OpKind::kUnsqueeze:
      return unsqueeze();
    case OpKind::kSqueeze:
      return squeeze();
    case OpKind::kConcat:
      return concat();
    case OpKind::kSlice:
      return slice();
    case OpKind::kPad:
      return pad();
    case OpKind::kGather:
      need_count(2, 2);
      return gather(as<Gather>(op_).axis, 0, 1);
    case OpKind::kGatherElements:
      return gather_elements();
    case OpKind::kGatherNd:
      return gather_nd();
    case OpKind::kScatterElements:
      return scatter_elements();
    case OpKind::kScatterNd:
      return scatter_nd();
    case OpKind::kNonZero:
      return non_zero();
    case OpKind::kItem:
      return item();
    case OpKind::kIf:
      return branch();
    case OpKind::kLoop:
      return loop();
    case OpKind::kScan:
      return scan();
    case OpKind::kOpaque:
      return one(as<Opaque>(op_).dtype, as<Opaque>(op_).shape);
    case OpKind::kLinear:
      return linear();
    case OpKind::kEmbedding:
      need_count(2, 2);
      need_rank(0, 2);
      return gather(0, 0, 1);
    case OpKind::kRmsNorm:
      need_count(2, 2);
      return norm();
    case OpKind::kLayerNorm:
      need_count(2, 3);
      return norm();
    case OpKind::kActivation:
      return activation();
    case OpKind::kRope:
      return rope();
    case OpKind::kAttention:
      return attention();
    case OpKind::kCacheAppend:
      return cache_append();
    case OpKind::kMoe:
      return moe();
    case OpKind::kSelectiveScan:
      return selective_scan();
  }
  __builtin_unreachable();
}

std::vector<Type> Inferrer::elementwise() {
  if (op_.kind == OpKind::kUnary) {
    need_count(1, 1);
    const UnaryKind fn = as<Unary>(op_).fn;
    if (fn == UnaryKind::kNot) need_dtype(0, DType::kBool);
    if (fn == UnaryKind::kBitNot && !is_integer(in(0).dtype))
      error("operand is {}, expected an integer", name(in(0).dtype));
    if (fn != UnaryKind::kIsNan && fn != UnaryKind::kIsInf) return as_operand();
    need_float(0);
    return one(DType::kBool, shape(0));
  }
  if (op_.kind == OpKind::kWhere) {
    need_count(3, 3);
    need_dtype(0, DType::kBool);
    if (in(1).dtype != in(2).dtype)
      error("branches are {} and {}", name(in(1).dtype), name(in(2).dtype));
    return one(in(1).dtype, broadcast(shape(0), broadcast(shape(1), shape(2))));
  }
  need_count(2, 2);
  need_same_dtype();
  if (op_.kind == OpKind::kCompare) return one(DType::kBool, broadcast(shape(0), shape(1)));
  const BinaryKind fn = as<Binary>(op_).fn;
  const bool logical = fn == BinaryKind::kAnd || fn == BinaryKind::kOr || fn == BinaryKind::kXor;
  const bool of_bits = fn >= BinaryKind::kBitAnd;
  if (logical != (in(0).dtype == DType::kBool) || (of_bits && !is_integer(in(0).dtype)))
    error("{} does not take {}", names_of(fn)[static_cast<size_t>(fn)], name(in(0).dtype));
  return one(in(0).dtype, broadcast(shape(0), shape(1)));
}

std::vector<Type> Inferrer::reduce(const std::vector<int64_t>& axes, bool keepdims, DType dtype) {
  std::set<int64_t> gone;
  for (const int64_t a : axes) {
    if (!gone.insert(normal_axis(a, shape(0).rank(), name(op_.kind))).second)
      error("axis {} is named twice", a);
  }
  Shape out;
  for (int64_t i = 0; i < shape(0).rank(); ++i) {
    if (!gone.contains(i)) {
      out.dims.push_back(shape(0)[i]);
    } else if (keepdims) {
      out.dims.push_back(1);
    }
  }
  return one(dtype, out);
}

std::vector<Type> Inferrer::matmul() {
  need_count(2, 2);
  need_same_dtype();
  const Shape &a = shape(0), &b = shape(1);
  if (a.rank() < 2 || b.rank() < 2)
    error("shapes {} and {}, expected rank 2 or more", a.text(), b.text());
  equal(a[-1], b[-2], "inner sizes");
  Shape out = broadcast(Shape(std::vector<Dim>(a.dims.begin(), a.dims.end() - 2)),
                        Shape(std::vector<Dim>(b.dims.begin(), b.dims.end() - 2)));
  out.dims.push_back(a[-2]);
  out.dims.push_back(b[-1]);
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::reshape() {
  need_count(1, 1);
  const Shape& to = as<Reshape>(op_).shape;
  equal(shape(0).num_elements(), to.num_elements(),
        fmt::format("elements of {} and {}", shape(0).text(), to.text()));
  return one(in(0).dtype, to);
}

std::vector<Type> Inferrer::expand() {
  need_count(1, 1);
  const Shape& to = as<Expand>(op_).shape;
  if (to.rank() < shape(0).rank()) error("{} has more axes than {}", shape(0).text(), to.text());
  for (int64_t i = -shape(0).rank(); i < 0; ++i) {
    if (!(shape(0)[i] == Dim(1)))
      equal(shape(0)[i], to[i],
            fmt::format("{} does not expand to {}", shape(0).text(), to.text()));
  }
  return one(in(0).dtype, to);
}

std::vector<Type> Inferrer::unsqueeze() {
  need_count(1, 1);
  const auto& axes = as<Unsqueeze>(op_).axes;
  const int64_t rank = shape(0).rank() + static_cast<int64_t>(axes.size());
  std::set<int64_t> made;
  for (const int64_t a : axes) {
    if (!made.insert(normal_axis(a, rank, "Unsqueeze")).second) error("axis {} is named twice", a);
  }
  Shape out;
  int64_t from = 0;
  for (int64_t i = 0; i < rank; ++i)
    out.dims.push_back(made.contains(i) ? Dim(1) : shape(0)[from++]);
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::squeeze() {
  need_count(1, 1);
  std::set<int64_t> gone;
  for (const int64_t a : as<Squeeze>(op_).axes) {
    const int64_t axis = normal_axis(a, shape(0).rank(), "Squeeze");
    equal(shape(0)[axis], 1, "a squeezed axis");
    gone.insert(axis);
  }
  Shape out;
  for (int64_t i = 0; i < shape(0).rank(); ++i) {
    if (!gone.contains(i)) out.dims.push_back(shape(0)[i]);
  }
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::concat() {
  need_count(1, 1024);
  need_same_dtype();
  const int64_t axis = normal_axis(as<Concat>(op_).axis, shape(0).rank(), "Concat");
  Shape out = shape(0);
  for (size_t i = 1; i < inputs_.size(); ++i) {
    need_rank(i, out.rank());
    for (int64_t d = 0; d < out.rank(); ++d) {
      out[d] =
          d == axis ? out[d] + shape(i)[d] : equal(out[d], shape(i)[d], "sizes beside the axis");
    }
  }
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::slice() {
  need_count(1, 1);
  const auto& s = as<Slice>(op_);
  if (s.step < 1) error("step {} is not positive", s.step);
  const int64_t axis = normal_axis(s.axis, shape(0).rank(), "Slice");
  const Dim size = shape(0)[axis];
  if (s.begin.is_static() && s.begin.value() < 0) error("begin {} is negative", s.begin.text());
  if (s.end.is_static() && size.is_static() && s.end.value() > size.value())
    error("end {} is past the size {}", s.end.text(), size.text());
  const Dim length = s.end - s.begin;
  if (length.is_static() && length.value() < 0)
    error("end {} is before begin {}", s.end.text(), s.begin.text());
  Shape out = shape(0);
  out[axis] = ceil_div(length, s.step);
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::gather(int64_t axis_attribute, size_t data, size_t indices) {
  if (!is_integer(in(indices).dtype)) error("indices are {}", name(in(indices).dtype));
  const int64_t axis = normal_axis(axis_attribute, shape(data).rank(), "Gather");
  Shape out;
  for (int64_t i = 0; i < shape(data).rank(); ++i) {
    if (i == axis) {
      out.dims.insert(out.dims.end(), shape(indices).dims.begin(), shape(indices).dims.end());
    } else {
      out.dims.push_back(shape(data)[i]);
    }
  }
  return one(in(data).dtype, out);
}

std::vector<Type> Inferrer::gather_elements() {
  need_count(2, 2);
  if (!is_integer(in(1).dtype)) error("indices are {}", name(in(1).dtype));
  need_rank(1, shape(0).rank());
  normal_axis(as<GatherElements>(op_).axis, shape(0).rank(), "GatherElements");
  return one(in(0).dtype, shape(1));
}

std::vector<Type> Inferrer::norm() {
  need_float(0);
  if (shape(0).rank() < 1) error("a scalar cannot be normalized");
  for (size_t i = 1; i < inputs_.size(); ++i) {
    if (!has(i)) continue;
    need_rank(i, 1);
    equal(shape(0).back(), shape(i)[0], "the last axis and the weight");
    if (in(i).dtype != in(0).dtype)
      error("weight is {}, x is {}", name(in(i).dtype), name(in(0).dtype));
  }
  return as_operand();
}

std::vector<Type> Inferrer::linear() {
  need_count(2, 3);
  need_same_dtype();
  need_rank(1, 2);
  if (shape(0).rank() < 1) error("x is a scalar");
  equal(shape(0).back(), shape(1)[1], "features in");
  if (has(2)) {
    need_rank(2, 1);
    equal(shape(1)[0], shape(2)[0], "features out and bias");
  }
  Shape out = shape(0);
  out[-1] = shape(1)[0];
  return one(in(0).dtype, out);
}

std::vector<Type> Inferrer::rope() {
  need_count(3, 3);
  need_same_dtype();
  need_rank(0, 4);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    need_rank(i, 3);
    if (!(shape(i)[0] == Dim(1))) equal(shape(0)[0], shape(i)[0], "batch");
    equal(shape(0)[2], shape(i)[1], "positions");
    if (!shape(i)[2].is_static() || !shape(0)[3].is_static() ||
        2 * shape(i)[2].value() > shape(0)[3].value()) {
      error("rotates twice {} of {} elements", shape(i)[2].text(), shape(0)[3].text());
    }
  }
  return as_operand();
}

std::vector<Type> Inferrer::attention() {
  need_count(3, 5);
  const Shape &q = shape(0), &k = shape(1), &v = shape(2);
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
    need_rank(i, 4);
    if (in(i).dtype != in(0).dtype)
      error("q is {}, k or v is {}", name(in(0).dtype), name(in(i).dtype));
  }
  equal(q[0], k[0], "batch of q and k");
  equal(k[0], v[0], "batch of k and v");
  equal(k[1], v[1], "heads of k and v");
  equal(k[2], v[2], "lengths of k and v");
  equal(q[3], k[3], "head size of q and k");
  if (!q[1].is_static() || !k[1].is_static() || q[1].value() % k[1].value() != 0) {
    error("{} query heads are not a multiple of {} key heads", q[1].text(), k[1].text());
  }
  const auto& a = as<Attention>(op_);
  if (a.window && (*a.window < 1 || !a.causal))
    error("a window of {}: it needs to be positive, and causal", *a.window);
  if (has(3)) {
    need_rank(3, 2);
    need_dtype(3, DType::kBool);
    equal(k[0], shape(3)[0], "batch of the mask");
    equal(k[2], shape(3)[1], "length of keys and of the mask");
  }
  if (has(4)) {
    if (in(4).dtype != DType::kBool && in(4).dtype != in(0).dtype)
      error("q is {}, the bias is {}", name(in(0).dtype), name(in(4).dtype));
    broadcast(Shape{q[0], q[1], q[2], k[2]}, shape(4));
  }
  return one(in(0).dtype, Shape{q[0], q[1], q[2], v[3]});
}

std::vector<Type> Inferrer::cache_append() {
  need_count(2, 2);
  need_same_dtype();
  need_rank(0, 4);
  need_rank(1, 4);
  Shape out = shape(0);
  for (const int64_t axis : {0, 1, 3})
    equal(shape(0)[axis], shape(1)[axis], "cache and new entries");
  out[2] = shape(0)[2] + shape(1)[2];
  return one(in(0).dtype, out);
}

void Inferrer::need_graph(size_t index, const std::vector<Type>& expected) const {
  if (index >= graphs_.size()) error("sub-graph {} is missing", index);
  const std::vector<const Node*> inputs = graphs_[index]->inputs();
  if (inputs.size() != expected.size()) {
    error("sub-graph '{}' has {} inputs, expected {}", graphs_[index]->name(), inputs.size(),
          expected.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& found = graphs_[index]->type(inputs[i]->outputs[0]);
    if (!(found == expected[i])) {
      error("input {} of sub-graph '{}' is {}, expected {}", i, graphs_[index]->name(),
            found.text(), expected[i].text());
    }
  }
}

std::vector<Type> Inferrer::graph_results(size_t index) const {
  std::vector<Type> types;
  for (const Output& o : graphs_[index]->outputs()) types.push_back(graphs_[index]->type(o.value));
  return types;
}

std::vector<Type> Inferrer::branch() {
  need_count(1, 1024);
  need_dtype(0, DType::kBool);
  std::vector<Type> captured;
  for (size_t i = 1; i < inputs_.size(); ++i) captured.push_back(in(i));
  need_graph(0, captured);
  need_graph(1, captured);
  if (graph_results(0) != graph_results(1)) error("the two branches give other types");
  return graph_results(0);
}

std::vector<Type> Inferrer::loop() {
  const auto carried = static_cast<size_t>(as<Loop>(op_).num_carried);
  need_count(2 + carried, 1024);
  need_dtype(0, DType::kI64);
  need_dtype(1, DType::kBool);
  std::vector<Type> expected = {Type{DType::kI64, {}}};
  for (size_t i = 2; i < inputs_.size(); ++i) expected.push_back(in(i));
  need_graph(0, expected);
  std::vector<Type> results = graph_results(0);
  if (results.size() != carried + 1 || results[0].dtype != DType::kBool)
    error("the body gives {} results, expected going and {} carried", results.size(), carried);
  results.erase(results.begin());
  for (size_t i = 0; i < carried; ++i) {
    if (!(results[i] == in(2 + i)))
      error("carried value {} is {} and becomes {}", i, in(2 + i).text(), results[i].text());
  }
  return results;
}

std::vector<Type> Inferrer::scan() {
  const auto carried = static_cast<size_t>(as<Scan>(op_).num_carried);
  const auto scanned = static_cast<size_t>(as<Scan>(op_).num_scanned);
  if (scanned < 1) error("nothing is scanned");
  need_count(carried + scanned, 1024);
  std::vector<Type> expected;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Type t = in(i);
    if (i >= carried && i < carried + scanned) {
      if (t.shape.rank() < 1) error("a scalar is scanned");
      equal(t.shape[0], in(carried).shape[0], "lengths of the scanned");
      t.shape.dims.erase(t.shape.dims.begin());
    }
    expected.push_back(std::move(t));
  }
  need_graph(0, expected);
  std::vector<Type> results = graph_results(0);
  if (results.size() < carried)
    error("the body gives {} results, expected at least {}", results.size(), carried);
  for (size_t i = 0; i < carried; ++i) {
    if (!(results[i] == in(i)))
      error("carried value {} is {} and becomes {}", i, in(i).text(), results[i].text());
  }
  for (size_t i = carried; i < results.size(); ++i)
    results[i].shape.dims.insert(results[i].shape.dims.begin(), in(carried).shape[0]);
  return results;
}

Inference infer(const Op& op, std::span<const Type* const> inputs,
                std::span<const std::unique_ptr<Graph>> graphs) {
  return Inferrer(op, inputs, graphs).run();
}

}  // namespace tranship::ir

// How types are inferred: one method an op. Internal to ir/: infer.cpp has the general ops,
// infer_windows.cpp and infer_indexing.cpp theirs.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/infer.h"

namespace tranship::ir {

// One inference: the operands, and the assumptions collected on the way.
class Inferrer {
 public:
  Inferrer(const Op& op, std::span<const Type* const> inputs,
           std::span<const std::unique_ptr<Graph>> graphs)
      : op_(op), inputs_(inputs), graphs_(graphs) {}

  Inference run() {
    result_.results = results();
    return std::move(result_);
  }

 private:
  template <class... Args>
  [[noreturn]] void error(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kInvalidArgument, "[infer] {}: {}", name(op_.kind),
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }

  void need_count(size_t least, size_t most) const {
    if (inputs_.size() < least || inputs_.size() > most) {
      error("expected {} to {} operands, found {}", least, most, inputs_.size());
    }
  }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Type& in(size_t i) const {
    if (!has(i)) error("operand {} is absent", i);
    return *inputs_[i];
  }
  const Shape& shape(size_t i) const { return in(i).shape; }
  void need_rank(size_t i, int64_t rank) const {
    if (shape(i).rank() != rank)
      error("operand {} has shape {}, expected rank {}", i, shape(i).text(), rank);
  }
  void need_dtype(size_t i, DType dtype) const {
    if (in(i).dtype != dtype)
      error("operand {} is {}, expected {}", i, name(in(i).dtype), name(dtype));
  }
  void need_integer(size_t i) const {
    if (!is_integer(in(i).dtype)) error("indices are {}", name(in(i).dtype));
  }
  void need_float(size_t i) const {
    if (!is_floating(in(i).dtype))
      error("operand {} is {}, expected a floating dtype", i, name(in(i).dtype));
  }
  void need_same_dtype() const {
    for (size_t i = 1; i < inputs_.size(); ++i) {
      if (has(i) && in(i).dtype != in(0).dtype) {
        error("operands are {} and {}, expected one dtype: add a cast", name(in(0).dtype),
              name(in(i).dtype));
      }
    }
  }
  /// Two sizes that must be equal; -> the better known one.
  Dim equal(const Dim& a, const Dim& b, std::string_view what) {
    if (a == b) return a;
    if (a.is_static() && b.is_static()) error("{}: {} and {} differ", what, a.text(), b.text());
    result_.assumptions.push_back({a, b});
    return b.is_static() ? b : a;
  }
  Shape broadcast(const Shape& a, const Shape& b) {
    Shape out;
    const int64_t rank = std::max(a.rank(), b.rank());
    for (int64_t i = -rank; i < 0; ++i) {
      const Dim x = -i <= a.rank() ? a[i] : Dim(1);
      const Dim y = -i <= b.rank() ? b[i] : Dim(1);
      if (x == Dim(1)) {
        out.dims.push_back(y);
      } else if (y == Dim(1)) {
        out.dims.push_back(x);
      } else {
        out.dims.push_back(equal(x, y, "sizes do not broadcast"));
      }
    }
    return out;
  }
  std::vector<Type> one(DType dtype, Shape s) const { return {Type{dtype, std::move(s)}}; }
  std::vector<Type> as_operand() const { return {in(0)}; }

  std::vector<Type> results();
  std::vector<Type> elementwise();
  std::vector<Type> reduce(const std::vector<int64_t>& axes, bool keepdims, DType dtype);
  std::vector<Type> matmul();
  /// x [N, C, axes...] -> the number of axes.
  int64_t window_axes();
  void need_entries(const std::vector<int64_t>& list, std::string_view what, int64_t least) const;
  void need_channels(size_t bias, const Dim& channels);
  std::vector<Type> conv();
  std::vector<Type> conv_transpose();
  std::vector<Type> pool();
  std::vector<Type> resize();
  std::vector<Type> reshape();
  std::vector<Type> expand();
  std::vector<Type> unsqueeze();
  std::vector<Type> squeeze();
  std::vector<Type> concat();
  std::vector<Type> slice();
  std::vector<Type> pad();
  std::vector<Type> gather(int64_t axis, size_t data, size_t indices);
  std::vector<Type> gather_elements();
  std::vector<Type> gather_nd();
  std::vector<Type> scatter_elements();
  std::vector<Type> scatter_nd();
  std::vector<Type> non_zero();
  std::vector<Type> item();
  std::vector<Type> top_k();
  std::vector<Type> norm();
  std::vector<Type> activation();
  std::vector<Type> linear();
  std::vector<Type> rope();
  std::vector<Type> attention();
  std::vector<Type> cache_append();
  std::vector<Type> moe();
  std::vector<Type> selective_scan();
  std::vector<Type> branch();
  std::vector<Type> loop();
  std::vector<Type> scan();
  void need_graph(size_t index, const std::vector<Type>& expected) const;
  std::vector<Type> graph_results(size_t index) const;

  const Op& op_;
  std::span<const Type* const> inputs_;
  std::span<const std::unique_ptr<Graph>> graphs_;
  Inference result_;
};

}  // namespace tranship::ir

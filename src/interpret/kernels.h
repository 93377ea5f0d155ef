// One function an op, over arrays. Internal to interpret/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interpret/array.h"
#include "ir/graph.h"

namespace tranship {

using Symbols = std::map<std::string, int64_t>;
/// Null: absent.
using Operands = std::vector<const Array*>;

/// The results of an op that is not Input, Param, Opaque or control flow.
std::vector<Array> run_kernels(const ir::Op& op, const Operands& in, const Symbols& symbols);

// Composites, in composites.cpp.
Array run_linear(const Operands& in);
Array run_rms_norm(const Operands& in, double eps);
Array run_layer_norm(const Operands& in, double eps);
Array run_activation(const Operands& in, ir::ActivationKind fn);
Array run_rope(const Operands& in);
Array run_attention(const Operands& in, const ir::Attention& attention);
Array run_moe(const Operands& in, ir::ActivationKind fn);
std::vector<Array> run_selective_scan(const Operands& in);

// windows.cpp
Array run_conv(const Operands& in, const ir::Conv& op);
Array run_conv_transpose(const Operands& in, const ir::ConvTranspose& op);
Array run_pool(const Array& x, const ir::Pool& op);
Array run_resize(Array x, const ir::Resize& op, const Sizes& sizes);
Array run_pad(const Operands& in, ir::PadMode mode, const Sizes& begin, const Sizes& end);

// indexing.cpp
/// Counted from the front. Errors: invalid_argument outside the axis.
int64_t checked_index(double value, int64_t size);
Array run_gather_elements(const Operands& in, int64_t axis);
Array run_gather_nd(const Operands& in, int64_t batch_dims);
Array run_scatter_elements(const Operands& in, const ir::ScatterElements& op);
Array run_scatter_nd(const Operands& in, ir::ScatterReduction reduction);
Array run_non_zero(const Array& x);
std::vector<Array> run_top_k(const Array& x, const ir::TopK& op, int64_t k);

/// Which element of `data` element i of `indices` names: along the axis its number, elsewhere its
/// own place. Borrows the indices.
class ElementPlaces {
 public:
  /// Errors: invalid_argument if the indices are larger than the data beside the axis.
  ElementPlaces(const Array& data, const Array& indices, int64_t axis);
  int64_t operator()(int64_t i) const;

 private:
  const Array& indices_;
  size_t axis_ = 0;
  int64_t size_ = 0;
  Sizes strides_;
};

// Primitives that composites use.
Array run_gather(const Operands& in, int64_t axis);
Array run_concat(const Operands& in, int64_t axis);

}  // namespace tranship

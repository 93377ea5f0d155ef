// PyTorch's type promotion. Source: PyTorch's "Tensor Attributes" page, torch.result_type.
#pragma once

#include <vector>

#include "formats/pt2/reference.h"

namespace tranship::pt2 {

/// The dtype that has room for both. Errors: unsupported for 8-bit floats and unsigned integers of
/// more than 8 bits, which PyTorch does not promote.
DType promote(DType a, DType b);

/// What an operator on these computes in: tensors with axes before scalar tensors before numbers of
/// Python, unless those are of a higher category (bool, integers, floats).
class Promotion {
 public:
  Promotion& add(const ir::Value& tensor);
  Promotion& add(const Number& number);
  DType result() const;

 private:
  std::optional<DType> with_axes_, without_axes_, number_;
};

}  // namespace tranship::pt2

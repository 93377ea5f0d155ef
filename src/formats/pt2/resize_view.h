// When a tensor can be looked at in another shape, and what that shape is.
#pragma once

#include <vector>

#include "formats/pt2/call.h"

namespace tranship::pt2 {

/// Sizes of view and reshape, where one may be -1: what is left of `from`.
ir::Shape resolved_shape(Call& call, const ir::Shape& from, const std::vector<ir::Dim>& sizes);

/// Whether memory laid out as the file says of a tensor can be read in another shape without a
/// copy. False if that is not said. Source: PyTorch's computeStride.
bool is_viewable(const TensorMeta* meta, const ir::Shape& from, const ir::Shape& to);
/// Row-major without gaps.
bool is_contiguous(const TensorMeta* meta, const ir::Shape& shape);

}  // namespace tranship::pt2

// Indexing by tensors, as PyTorch and numpy do it: x[i, :, j], x[mask].
#pragma once

#include <optional>
#include <vector>

#include "formats/pt2/call.h"

namespace tranship::pt2 {

/// What is read or written.
struct AdvancedIndex {
  std::vector<int64_t> perm;       // brings the axes that are indexed to the front of the tensor
  std::vector<ir::Value> indices;  // of these axes, i64, of one shape
  ir::Shape shape;                 // that shape
  /// Where its axes stand in the result: where the axes were, if these follow each other, else
  /// first.
  int64_t place = 0;
};

/// `indices`: an absent one takes the whole axis; masks stand for the places where they are true.
/// `sizes`: what the file says of the result: the names of sizes that are born from data.
/// Errors: corrupt for more indices than axes.
AdvancedIndex advanced_index(Call& call, ir::Value x, const std::vector<ir::Value>& indices,
                             const std::vector<std::optional<ir::Dim>>& sizes);
ir::Value read(ir::Value x, const AdvancedIndex& index);
/// `values` broadcast to what read() gives.
ir::Value written(ir::Value x, const AdvancedIndex& index, ir::Value values,
                  ir::ScatterReduction reduction);

/// The places of what is true: i64 [count, rank].
ir::Value places_of(Call& call, ir::Value mask, const std::optional<ir::Dim>& count);

}  // namespace tranship::pt2

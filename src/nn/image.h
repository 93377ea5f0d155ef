// What models of images share: an image cut into patches. B batch, P patches.
#pragma once

#include <optional>

#include "nn/model.h"

namespace tranship::nn {

/// `image_size`, `patch_size` (one number, or height and width) and `num_channels`.
struct PatchGrid {
  int64_t num_channels = 0;
  int64_t image_height = 0, image_width = 0;
  int64_t patch_height = 0, patch_width = 0;
  int64_t rows = 0, columns = 0;  // of the image that positions are learned for
  /// rows and columns, where the classes can resize learned positions: if these are equal, and
  /// patch_size is one number.
  std::optional<int64_t> side = {};
};

/// Absent sizes are those given. Errors: those of Config; invalid_argument for what is no size.
PatchGrid read_patch_grid(const Config& config, int64_t image_size, int64_t patch_size);

/// pixel_values [B, C, height, width]: of any size if positions can be resized, else of the one.
MainInput pixel_values(const PatchGrid& grid);

/// pixels [B, C, height, width] -> a vector for each patch, [B, hidden, rows, columns].
/// Weights: weight [hidden, C, patch height, patch width], bias [hidden].
Tensor patches(Scope m, Tensor pixels, int64_t hidden, const PatchGrid& grid);

/// Learned positions, those of the grid (behind one for a class token) for one of rows x columns.
/// table [1, 1 + P, hidden] -> [1, 1 + rows * columns, hidden].
/// Source: modeling_vit.py interpolate_pos_encoding (5.23).
Tensor resized_positions(Tensor table, const PatchGrid& grid, const Dim& rows, const Dim& columns);

}  // namespace tranship::nn

#include "nn/image.h"

#include "base/error.h"
#include "nn/conv.h"
#include "nn/decoder.h"

namespace tranship::nn {
namespace {

/// One or two numbers. Errors: as read_patch_grid().
std::vector<int64_t> read_sizes(const Config& config, std::string_view key, int64_t absent) {
  std::vector<int64_t> sizes = config.integers(key);
  if (sizes.empty()) sizes = {absent};
  for (const int64_t size : sizes) check_size(config, key, size);
  if (sizes.size() <= 2) return sizes;
  fail(ErrorKind::kInvalidArgument, "[config] {}: {} has {} numbers, expected height and width",
       config.where(), key, sizes.size());
}

}  // namespace

PatchGrid read_patch_grid(const Config& config, int64_t image_size, int64_t patch_size) {
  const std::vector<int64_t> image = read_sizes(config, "image_size", image_size),
                             patch = read_sizes(config, "patch_size", patch_size);
  PatchGrid grid = {.num_channels = config.integer("num_channels", 3),
                    .image_height = image.front(),
                    .image_width = image.back(),
                    .patch_height = patch.front(),
                    .patch_width = patch.back()};
  check_size(config, "num_channels", grid.num_channels);
  grid.rows = grid.image_height / grid.patch_height;
  grid.columns = grid.image_width / grid.patch_width;
  if (grid.rows < 1 || grid.columns < 1) {
    fail(ErrorKind::kInvalidArgument, "[config] {}: image_size is smaller than patch_size",
         config.where());
  }
  if (grid.rows == grid.columns && patch.size() == 1) grid.side = grid.rows;
  return grid;
}

MainInput pixel_values(const PatchGrid& grid) {
  const Dim height = grid.side ? Dim::symbol("height") : Dim(grid.image_height);
  const Dim width = grid.side ? Dim::symbol("width") : Dim(grid.image_width);
  return {"pixel_values", {Dim::symbol("batch"), grid.num_channels, height, width}};
}

Tensor patches(Scope m, Tensor pixels, int64_t hidden, const PatchGrid& grid) {
  const std::vector<int64_t> size = {grid.patch_height, grid.patch_width};
  for (size_t i = 0; i < size.size(); ++i) {
    if (const auto symbol = pixels.shape()[static_cast<int64_t>(i) + 2].as_symbol())
      m.graph().set_range(*symbol, {.min = size[i], .max = {}});
  }
  return conv(m, pixels, hidden, {.kernel = size, .stride = size});
}

Tensor resized_positions(Tensor table, const PatchGrid& grid, const Dim& rows, const Dim& columns) {
  if (!grid.side) return table;
  const Dim hidden = table.shape().back(), side = *grid.side;
  Tensor x = ir::reshape(ir::slice(table, 1, 1, side * side + 1), {1, side, side, hidden});
  ir::Resize op;
  op.mode = ir::ResizeMode::kCubic;
  op.sizes = {rows, columns};
  x = table.graph().add_one(ir::make(std::move(op)), {ir::transpose(x, {0, 3, 1, 2})});
  x = ir::reshape(ir::transpose(x, {0, 2, 3, 1}), {1, rows * columns, hidden});
  return ir::concat({ir::slice(table, 1, 0, 1), x}, 1);
}

}  // namespace tranship::nn

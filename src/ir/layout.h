// Where the boxes and frames of a picture stand: rows from the top down, residual links in lanes at
// the left, masks and tables in lanes at the right.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ir/frame.h"

namespace tranship::ir {

inline constexpr size_t kBorder = static_cast<size_t>(-1);  // the frame's own edge

/// A link as one frame sees it: between two of its parts, or a part and its border.
struct Wire {
  size_t source = 0;  // the box that the value comes from
  size_t from = kBorder, to = kBorder;
  std::string label;
  bool residual = false;      // may go in a lane at the left
  bool side = false;          // of a mask or a table
  bool right = false;         // its lane, if it needs one, is at the right
  size_t lane = kBorder;      // which lane, from the inside; kBorder: none
  std::vector<size_t> stops;  // items that stand for it in the rows that it passes
};

struct Laid;

/// A part where it stands. Coordinates count from the frame's axis and top.
struct LaidItem {
  const Part* part = nullptr;  // null: room for a wire that passes
  double x = 0, y = 0;         // of the item's axis and top
  double left = 0, right = 0, height = 0;
  size_t row = 0;
  bool side = false;
  std::unique_ptr<Laid> inner = nullptr;
};

struct Laid {
  const Frame* frame = nullptr;
  std::vector<LaidItem> items;  // the parts in order, then room for wires
  std::vector<Wire> wires;
  std::vector<double> row_tops, row_bottoms;
  std::map<size_t, double> entries, exits;  // by source: where it passes the border
  double left = 0, right = 0, height = 0;
  double lane_x(const Wire& wire) const;
  double inner_left = 0, inner_right = 0;  // without the lanes
};

struct TextSize {
  double width = 0, height = 0;
};

std::vector<std::string> detail_lines(const FoldedBox& box);
TextSize size_of(const FoldedBox& box, const std::string& title);

Laid lay_out(const Folded& folded, const Frame& whole);

}  // namespace tranship::ir

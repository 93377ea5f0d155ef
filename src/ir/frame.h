// The boxes of a folded graph in the modules that they stand in: what a picture frames.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ir/fold.h"

namespace tranship::ir {

struct Frame;

/// A box, or a frame within a frame.
struct Part {
  size_t box = 0;
  std::unique_ptr<Frame> frame = nullptr;  // null: the box
};

struct Frame {
  std::string path;                    // "model.layers.0.mlp"; empty for the whole
  const FoldedLayer* layer = nullptr;  // of the Folded it was made from; null if it is none
  std::vector<Part> parts;             // in the order of their first boxes
};

/// Modules around a single box and modules around layers have no frame.
Frame frames_of(const Folded& folded);

/// What stands at the top of a box: its name, from the frame that it stands in.
std::string title_in(const Frame& frame, const FoldedBox& box);
/// "mlp", "model.layers.0 ... 29".
std::string label_of(const Frame& frame, const Frame& outer);
/// The text for XML and for HTML-like labels; what no XML may hold becomes "?".
std::string escape_xml(const std::string& text);

}  // namespace tranship::ir

// A graph made small enough to be looked at: one box for each module or step, equal layers once.
// What draw.h turns into a picture.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace tranship::ir {

/// A value that goes from one box to another.
struct FoldedLink {
  size_t from = 0;
  std::string shape;      // as the target takes it
  bool changed = false;   // reshaped or transposed on its way
  bool residual = false;  // the older operand of a sum or product
};

struct FoldedBox {
  enum class Kind { kInput, kOutput, kModule, kOperation, kCache, kPreparation };
  Kind kind = Kind::kModule;
  std::string module = "";  // the path of what it stands in, "model.layers.0.self_attn"; or empty
  std::string title = "";   // "q_proj"
  std::string op = "";      // "Linear"
  std::vector<std::string> lines = {};  // parameters, caches
  std::string shape = "";               // of the result
  std::string attributes = "";          // the ops in full, for comparing layers
  std::string taken = "";               // the shape that all take it in, if it is another
  std::vector<FoldedLink> sources = {};
  bool is_join() const { return kind == Kind::kOperation && sources.size() > 1; }
};

/// A layer that stands for all that are equal to it.
struct FoldedLayer {
  std::string path;   // "model.layers.0"
  std::string label;  // "model.layers.0 ... 29"
  int64_t count = 1;
};

struct Folded {
  std::string title;
  std::string summary;           // "134.5 M parameters, 30 layers"
  std::vector<FoldedBox> boxes;  // a box stands after its sources
  std::vector<FoldedLayer> layers;
};

/// Unnamed steps are gathered: what only moves elements becomes part of a link, chains of
/// element-wise steps one box, what is made of inputs alone (masks, rotary tables) one box.
/// Layers ("layers.3") are equal if they have the same boxes, shapes and links.
Folded fold(const Component& component);

}  // namespace tranship::ir

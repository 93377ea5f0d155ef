#include "ir/frame.h"

#include <algorithm>

namespace tranship::ir {
namespace {

size_t first_box(const Part& part) {
  return part.frame == nullptr ? part.box : first_box(part.frame->parts.front());
}

void insert(const Folded& folded, size_t box, Frame& whole) {
  Frame* frame = &whole;
  const std::string& module = folded.boxes[box].module;
  for (size_t end = 0; end < module.size();) {
    end = std::min(module.find('.', end + 1), module.size());
    const std::string path = module.substr(0, end);
    auto part = std::ranges::find_if(
        frame->parts, [&](const Part& p) { return p.frame != nullptr && p.frame->path == path; });
    if (part == frame->parts.end()) {
      auto made = std::make_unique<Frame>();
      made->path = path;
      const auto layer = std::ranges::find(folded.layers, path, &FoldedLayer::path);
      if (layer != folded.layers.end()) made->layer = &*layer;
      frame->parts.push_back({0, std::move(made)});
      part = frame->parts.end() - 1;
    }
    frame = part->frame.get();
  }
  frame->parts.push_back({box, nullptr});
}

bool holds_layer(const Frame& frame) {
  return std::ranges::any_of(frame.parts, [](const Part& part) {
    return part.frame != nullptr && (part.frame->layer != nullptr || holds_layer(*part.frame));
  });
}

void simplify(Frame& frame) {
  std::vector<Part> parts;
  for (Part& part : frame.parts) {
    if (part.frame == nullptr) {
      parts.push_back(std::move(part));
      continue;
    }
    simplify(*part.frame);
    const bool is_frame =
        part.frame->layer != nullptr || (part.frame->parts.size() > 1 && !holds_layer(*part.frame));
    if (is_frame) {
      parts.push_back(std::move(part));
    } else {
      for (Part& inner : part.frame->parts) parts.push_back(std::move(inner));
    }
  }
  std::ranges::stable_sort(parts, {}, first_box);
  frame.parts = std::move(parts);
}

}  // namespace

Frame frames_of(const Folded& folded) {
  Frame whole;
  for (size_t i = 0; i < folded.boxes.size(); ++i) insert(folded, i, whole);
  simplify(whole);
  return whole;
}

std::string title_in(const Frame& frame, const FoldedBox& box) {
  if (box.kind != FoldedBox::Kind::kModule || box.module.size() <= frame.path.size())
    return box.title;
  const size_t begin = frame.path.empty() ? 0 : frame.path.size() + 1;
  return box.module.substr(begin) + "." + box.title;
}

std::string label_of(const Frame& frame, const Frame& outer) {
  if (frame.layer != nullptr) return frame.layer->label;
  return frame.path.substr(outer.path.empty() ? 0 : outer.path.size() + 1);
}

std::string escape_xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c < ' ' || c > '~' ? '?' : c;
    }
  }
  return out;
}

}  // namespace tranship::ir

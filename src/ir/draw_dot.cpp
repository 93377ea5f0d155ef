#include "base/error.h"
#include "ir/draw.h"
#include "ir/frame.h"

namespace tranship::ir {
namespace {

/// Within quotes; backslashes would start an escape, and "\n" is one on purpose.
std::string quoted(const std::vector<std::string>& lines) {
  std::string out = "\"";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\\n";
    for (const char c : lines[i]) {
      if (c == '"' || c == '\\') out += '\\';
      out += c < ' ' || c > '~' ? '?' : c;
    }
  }
  return out + "\"";
}

std::string_view look_of(FoldedBox::Kind kind) {
  switch (kind) {
    case FoldedBox::Kind::kInput:
    case FoldedBox::Kind::kOutput:
      return ", style=\"rounded,filled\", fillcolor=\"#e9eef4\"";
    case FoldedBox::Kind::kModule:
      return ", style=filled, fillcolor=\"#e6f0fa\"";
    case FoldedBox::Kind::kOperation:
      return ", style=rounded";
    case FoldedBox::Kind::kCache:
      return ", style=filled, fillcolor=\"#fdf2d8\"";
    case FoldedBox::Kind::kPreparation:
      return ", style=dashed";
  }
  fail(ErrorKind::kInternal, "[draw] a kind of box without a look");
}

void write_box(const Folded& folded, size_t i, const Frame& frame, const std::string& indent,
               std::string& out) {
  const FoldedBox& box = folded.boxes[i];
  std::vector<std::string> lines = {title_in(frame, box)};
  if (box.op != lines.front()) lines.push_back(box.op);
  lines.insert(lines.end(), box.lines.begin(), box.lines.end());
  if (!box.shape.empty()) lines.push_back("-> " + box.shape);
  if (!box.taken.empty()) lines.push_back("as " + box.taken);
  out += fmt::format("{}b{} [label={}{}]\n", indent, i, quoted(lines), look_of(box.kind));
}

void write_frame(const Folded& folded, const Frame& frame, size_t depth, size_t& clusters,
                 std::string& out) {
  const std::string indent(2 * depth, ' ');
  for (const Part& part : frame.parts) {
    if (part.frame == nullptr) {
      write_box(folded, part.box, frame, indent, out);
      continue;
    }
    std::string label = label_of(*part.frame, frame);
    const FoldedLayer* layer = part.frame->layer;
    if (layer != nullptr && layer->count > 1) label += fmt::format(" (x{})", layer->count);
    out += fmt::format("{}subgraph cluster_{} {{\n{}  label={}\n", indent, clusters++, indent,
                       quoted({label}));
    write_frame(folded, *part.frame, depth + 1, clusters, out);
    out += indent + "}\n";
  }
}

}  // namespace

std::string draw_dot(const Folded& folded) {
  std::string out = fmt::format("digraph {} {{\n", quoted({folded.title}));
  out += fmt::format("  label={}\n  labelloc=t\n", quoted({folded.title, folded.summary}));
  out += "  node [shape=box, fontname=Helvetica, fontsize=11]\n";
  out += "  edge [fontname=Helvetica, fontsize=9]\n";
  size_t clusters = 0;
  write_frame(folded, frames_of(folded), 1, clusters, out);
  for (size_t i = 0; i < folded.boxes.size(); ++i) {
    for (const FoldedLink& link : folded.boxes[i].sources)
      out += fmt::format("  b{} -> b{} [label={}]\n", link.from, i, quoted({link.shape}));
  }
  return out + "}\n";
}

}  // namespace tranship::ir

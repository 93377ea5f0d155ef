#include <cmath>
#include <set>
#include <tuple>

#include "base/error.h"
#include "ir/draw.h"
#include "ir/layout.h"

namespace tranship::ir {
namespace {

constexpr double kMargin = 28, kTitle = 66, kSheet = 5;

struct Look {
  std::string_view fill, stroke;
  double radius;
  std::string_view extra = "";
};

Look look_of(FoldedBox::Kind kind) {
  switch (kind) {
    case FoldedBox::Kind::kInput:
    case FoldedBox::Kind::kOutput:
      return {"#e9eef4", "#64748b", 15};
    case FoldedBox::Kind::kModule:
      return {"#e6f0fa", "#4a7fb5", 5};
    case FoldedBox::Kind::kOperation:
      return {"#ffffff", "#94a3b8", 15};
    case FoldedBox::Kind::kCache:
      return {"#fdf2d8", "#c08a1e", 5};
    case FoldedBox::Kind::kPreparation:
      return {"#ffffff", "#94a3b8", 5, " stroke-dasharray=\"4 3\""};
  }
  fail(ErrorKind::kInternal, "[draw] a kind of box without a look");
}

/// A number with at most one digit after the point: the same on every machine.
std::string number(double value) {
  const auto tenths = static_cast<int64_t>(std::lround(value * 10));
  const std::string sign = tenths < 0 ? "-" : "";
  const int64_t size = tenths < 0 ? -tenths : tenths;
  const std::string tail = size % 10 == 0 ? "" : "." + std::to_string(size % 10);
  return sign + std::to_string(size / 10) + tail;
}

struct Point {
  double x = 0, y = 0;
};

class Painter {
 public:
  explicit Painter(const Folded& folded) : folded_(folded) {}

  std::string all() {
    const Frame whole = frames_of(folded_);
    const Laid laid = lay_out(folded_, whole);
    const double title_width = 9.5 * double(std::max(folded_.title.size(), folded_.summary.size()));
    const double width = std::max(laid.left + laid.right, title_width) + 2 * kMargin;
    const double height = laid.height + kTitle + 2 * kMargin;
    paint(laid, {kMargin + laid.left, kMargin + kTitle}, nullptr);
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\">\n"
        "<title>{2}</title>\n"
        "<style>text{{font-family:'Segoe UI',Helvetica,Arial,sans-serif;font-size:11px;"
        "fill:#475569}}.t{{font-size:13px;font-weight:600;fill:#1e293b}}"
        ".m{{font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:10.5px}}"
        ".s{{fill:#1e293b}}.k{{fill:#8a5a00}}.h{{font-size:20px;font-weight:600;fill:#0f172a}}.w{{"
        "fill:none;"
        "stroke:#475569;stroke-width:1.4}}.r{{stroke:#2f6fb0;stroke-width:2}}"
        ".p{{stroke:#94a3b8;stroke-width:1.1;stroke-dasharray:4 3}}"
        ".l{{stroke:#ffffff;stroke-width:3;paint-order:stroke}}</style>\n"
        "<defs>{3}{4}{5}</defs>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        number(width), number(height), escape_xml(folded_.title), marker("a", "#475569"),
        marker("ar", "#2f6fb0"), marker("ap", "#94a3b8"));
    out += text({kMargin, kMargin + 14}, "h", "", escape_xml(folded_.title));
    out += text({kMargin, kMargin + 34}, "", "", escape_xml(folded_.summary));
    return out + frames_ + wires_ + boxes_ + labels_ + "</svg>\n";
  }

 private:
  static std::string marker(std::string_view id, std::string_view color) {
    return fmt::format(
        "<marker id=\"{}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "
        "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
        "<path d=\"M0 0.5L8 4L0 7.5z\" fill=\"{}\"/></marker>",
        id, color);
  }

  /// `content` is escaped already.
  static std::string text(Point at, std::string_view style, std::string_view anchor,
                          std::string_view content) {
    return fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", number(at.x), number(at.y),
                       style.empty() ? "" : fmt::format(" class=\"{}\"", style),
                       anchor.empty() ? "" : fmt::format(" text-anchor=\"{}\"", anchor), content);
  }

  static std::string rect(Point at, double width, double height, const Look& look,
                          double stroke_width) {
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\" "
        "stroke-width=\"{}\"{}/>\n",
        number(at.x), number(at.y), number(width), number(height), number(look.radius), look.fill,
        look.stroke, number(stroke_width), look.extra);
  }

  /// `at`: the axis and the top of the frame.
  void paint(const Laid& laid, Point at, const Frame* outer) {
    if (outer != nullptr) paint_frame(laid, at, *outer);
    for (const LaidItem& item : laid.items) {
      const Point place = {at.x + item.x, at.y + item.y};
      if (item.inner != nullptr) {
        paint(*item.inner, place, laid.frame);
      } else if (item.part != nullptr) {
        paint_box(item, place, *laid.frame);
      }
    }
    for (const Wire& wire : laid.wires) paint_wire(laid, wire, at);
  }

  void paint_frame(const Laid& laid, Point at, const Frame& outer) {
    const FoldedLayer* layer = laid.frame->layer;
    const Point corner = {at.x - laid.left, at.y};
    const double width = laid.left + laid.right;
    const std::string label = label_of(*laid.frame, outer);
    if (layer == nullptr) {
      frames_ += rect(corner, width, laid.height, {"#ffffff", "#cbd5e1", 8}, 1);
      labels_ += text({corner.x + 12, corner.y + 19}, "l", "", escape_xml(label));
      return;
    }
    for (int sheet = layer->count > 1 ? 2 : 0; sheet >= 0; --sheet) {
      const double shift = kSheet * sheet;
      frames_ += rect({corner.x + shift, corner.y + shift}, width, laid.height,
                      {"#f6f8fb", "#7b8ba1", 10}, 1.2);
    }
    labels_ += text({corner.x + 14, corner.y + 22}, "t", "", escape_xml(label));
    if (layer->count < 2) return;
    const std::string times = fmt::format("&#215; {}", layer->count);
    const Point badge = {corner.x + 14 + 7.5 * double(label.size()) + 12, corner.y + 7};
    const double badge_width = 26 + 8.0 * double(std::to_string(layer->count).size());
    labels_ += rect(badge, badge_width, 21, {"#334155", "#334155", 10.5}, 1);
    labels_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" style=\"fill:#ffffff;font-weight:600;"
        "font-size:12px\">{}</text>\n",
        number(badge.x + badge_width / 2), number(badge.y + 15), times);
  }

  void paint_box(const LaidItem& item, Point at, const Frame& frame) {
    const FoldedBox& box = folded_.boxes[item.part->box];
    boxes_ +=
        rect({at.x - item.left, at.y}, item.left + item.right, item.height, look_of(box.kind), 1.2);
    const std::string title = title_in(frame, box);
    std::string heading = fmt::format("<tspan class=\"t\">{}</tspan>", escape_xml(title));
    if (box.op != title) heading += fmt::format("<tspan dx=\"6\">{}</tspan>", escape_xml(box.op));
    boxes_ += text({at.x, at.y + 19}, "", "middle", heading);
    double y = at.y + 36;
    for (const std::string& line : box.lines) {
      const bool is_cache = line.starts_with("kept as ") || line.starts_with("past ");
      boxes_ += text({at.x, y}, is_cache ? "m k" : "m", "middle", escape_xml(line));
      y += 15;
    }
    if (!box.shape.empty()) {
      const bool is_source = box.kind == FoldedBox::Kind::kInput;
      boxes_ +=
          text({at.x, y}, "m s", "middle", (is_source ? "" : "&#8594; ") + escape_xml(box.shape));
      y += 15;
    }
    if (!box.taken.empty())
      boxes_ += text({at.x, y}, "m s", "middle", escape_xml("as " + box.taken));
  }

  void paint_wire(const Laid& laid, const Wire& wire, Point at) {
    const bool in_lane = wire.lane != kBorder;
    const std::string_view style = wire.side ? "w p" : in_lane && !wire.right ? "w r" : "w";
    std::string_view arrow = wire.side ? "ap" : in_lane && !wire.right ? "ar" : "a";
    if (wire.to == kBorder || laid.items[wire.to].inner != nullptr) arrow = "";
    const std::string path = in_lane ? lane_path(laid, wire, at) : row_path(laid, wire, at);
    wires_ += fmt::format("<path class=\"{}\" d=\"{}\"{}/>\n", style, path,
                          arrow.empty() ? "" : fmt::format(" marker-end=\"url(#{})\"", arrow));
    if (!wire.label.empty() && !in_lane) paint_label(laid, wire, at);
  }

  /// Beside the wire's begin, where it does not bend to; in a frame's header beside its end.
  void paint_label(const Laid& laid, const Wire& wire, Point at) {
    const Point from = start(laid, wire, at), to = entry(laid, wire, at);
    const bool from_border = wire.from == kBorder;
    const double next = wire.stops.empty() ? to.x : at.x + laid.items[wire.stops.front()].x;
    const bool is_left = next > from.x + 1;
    const double y =
        from_border ? to.y - 20 : at.y + laid.row_bottoms[laid.items[wire.from].row] + 15;
    if (!labelled_.insert({from.x, y, wire.label}).second) return;
    labels_ +=
        text({from.x + (is_left ? -6 : 6), y}, "m l", is_left ? "end" : "", escape_xml(wire.label));
  }

  static Point start(const Laid& laid, const Wire& wire, Point at) {
    if (wire.from == kBorder) return {at.x + laid.entries.at(wire.source), at.y};
    const LaidItem& item = laid.items[wire.from];
    const double port = item.inner == nullptr ? 0 : item.inner->exits.at(wire.source);
    return {at.x + item.x + port, at.y + item.y + item.height};
  }

  static Point entry(const Laid& laid, const Wire& wire, Point at) {
    if (wire.to == kBorder) return {at.x + laid.exits.at(wire.source), at.y + laid.height};
    const LaidItem& item = laid.items[wire.to];
    const double port = item.inner == nullptr ? 0 : item.inner->entries.at(wire.source);
    return {at.x + item.x + port, at.y + item.y};
  }

  static std::string curve(Point from, Point to) {
    if (std::abs(from.x - to.x) < 0.5) return fmt::format("L{} {}", number(to.x), number(to.y));
    const double bend = (to.y - from.y) / 2;
    return fmt::format("C{} {} {} {} {} {}", number(from.x), number(from.y + bend), number(to.x),
                       number(to.y - bend), number(to.x), number(to.y));
  }

  static std::string move(Point to) { return fmt::format("M{} {}", number(to.x), number(to.y)); }

  /// From row to row, by the room that is kept for it.
  static std::string row_path(const Laid& laid, const Wire& wire, Point at) {
    Point here = start(laid, wire, at);
    std::string out = move(here);
    if (wire.from != kBorder) {
      here.y = at.y + laid.row_bottoms[laid.items[wire.from].row];
      out += fmt::format("L{} {}", number(here.x), number(here.y));
    }
    for (const size_t stop : wire.stops) {
      const LaidItem& room = laid.items[stop];
      const Point top = {at.x + room.x, at.y + room.y};
      out += curve(here, top);
      here = {top.x, top.y + room.height};
      out += curve(top, here);
    }
    return out + curve(here, entry(laid, wire, at));
  }

  /// Whether nothing stands between the item and the lanes of a side.
  static bool is_outermost(const Laid& laid, const Wire& wire) {
    const LaidItem& item = laid.items[wire.to];
    for (const LaidItem& other : laid.items) {
      if (other.row == item.row && (wire.right ? other.x > item.x : other.x < item.x)) return false;
    }
    return item.inner == nullptr;
  }

  /// Out to the lane, down, and in again, with round corners.
  static std::string lane_path(const Laid& laid, const Wire& wire, Point at) {
    const double lane = at.x + laid.lane_x(wire), shift = 4 * double(wire.lane);
    const Point from = start(laid, wire, at), to = entry(laid, wire, at);
    std::vector<Point> points = {from};
    if (std::abs(from.x - lane) > 0.5) {
      const double below = wire.from == kBorder
                               ? from.y + 36
                               : at.y + laid.row_bottoms[laid.items[wire.from].row] + 13;
      points.push_back({from.x, below + shift});
      points.push_back({lane, below + shift});
    }
    const LaidItem& item = laid.items[wire.to];
    if (is_outermost(laid, wire)) {
      const double middle = to.y + item.height / 2;
      points.push_back({lane, middle});
      points.push_back({at.x + item.x + (wire.right ? item.right : -item.left), middle});
    } else if (std::abs(to.x - lane) > 0.5) {
      const double above = at.y + laid.row_tops[item.row] - 14 - shift;
      const double beside = item.inner == nullptr && wire.side ? to.x + 14 : to.x;
      points.push_back({lane, above});
      points.push_back({beside, above});
      points.push_back({beside, to.y});
    } else {
      points.push_back(to);
    }
    return rounded(points);
  }

  static std::string rounded(const std::vector<Point>& points) {
    std::string out = move(points.front());
    for (size_t i = 1; i + 1 < points.size(); ++i) {
      const Point before = toward(points[i], points[i - 1]),
                  after = toward(points[i], points[i + 1]);
      out +=
          fmt::format("L{} {}Q{} {} {} {}", number(before.x), number(before.y), number(points[i].x),
                      number(points[i].y), number(after.x), number(after.y));
    }
    return out + fmt::format("L{} {}", number(points.back().x), number(points.back().y));
  }

  /// A few pixels from a corner on the way to a point.
  static Point toward(Point corner, Point to) {
    const double distance = std::hypot(to.x - corner.x, to.y - corner.y);
    const double part = distance < 1 ? 0 : std::min(8.0, distance / 2) / distance;
    return {corner.x + (to.x - corner.x) * part, corner.y + (to.y - corner.y) * part};
  }

  const Folded& folded_;
  std::string frames_, wires_, boxes_, labels_;
  std::set<std::tuple<double, double, std::string>> labelled_;  // a label once at each place
};

}  // namespace

std::string draw_svg(const Folded& folded) { return Painter(folded).all(); }

}  // namespace tranship::ir

#include "ir/layout.h"

#include <algorithm>
#include <set>

namespace tranship::ir {
namespace {

constexpr double kGap = 46, kBetween = 22, kLane = 16, kPadding = 22, kHeader = 30;
constexpr double kFarRight = 1e6;

class Layouter {
 public:
  explicit Layouter(const Folded& folded) : folded_(folded), users_(folded.boxes.size()) {
    for (size_t i = 0; i < folded.boxes.size(); ++i) {
      for (const FoldedLink& link : folded.boxes[i].sources) users_[link.from].push_back(i);
    }
  }

  Laid lay(const Frame& frame, const Frame* outer) {
    Laid laid;
    laid.frame = &frame;
    std::map<size_t, size_t> part_of;
    for (size_t i = 0; i < frame.parts.size(); ++i) {
      laid.items.push_back(item(frame, frame.parts[i]));
      for (const size_t box : boxes_of(frame.parts[i])) part_of[box] = i;
    }
    make_wires(part_of, laid);
    rank(outer == nullptr, laid);
    make_stops(laid);
    place(laid, outer != nullptr);
    find_ports(laid);
    if (outer != nullptr) {
      const double header = 30 + 7.6 * double(label_of(frame, *outer).size() + 6);
      laid.left = std::max(laid.left, header);
    }
    return laid;
  }

 private:
  using Kind = FoldedBox::Kind;

  static std::vector<size_t> boxes_of(const Part& part) {
    if (part.frame == nullptr) return {part.box};
    std::vector<size_t> out;
    for (const Part& inner : part.frame->parts) {
      const std::vector<size_t> boxes = boxes_of(inner);
      out.insert(out.end(), boxes.begin(), boxes.end());
    }
    return out;
  }

  LaidItem item(const Frame& frame, const Part& part) {
    LaidItem out;
    out.part = &part;
    if (part.frame != nullptr) {
      out.inner = std::make_unique<Laid>(lay(*part.frame, &frame));
      out.left = out.inner->left;
      out.right = out.inner->right;
      out.height = out.inner->height;
      return out;
    }
    const FoldedBox& box = folded_.boxes[part.box];
    const TextSize size = size_of(box, title_in(frame, box));
    out.left = out.right = size.width / 2;
    out.height = size.height;
    out.side =
        box.kind == Kind::kPreparation || (box.kind == Kind::kInput && !users_[part.box].empty() &&
                                           std::ranges::all_of(users_[part.box], [&](size_t user) {
                                             return folded_.boxes[user].kind == Kind::kPreparation;
                                           }));
    return out;
  }

  void make_wires(const std::map<size_t, size_t>& part_of, Laid& laid) const {
    const auto place = [&](size_t box) {
      const auto it = part_of.find(box);
      return it == part_of.end() ? kBorder : it->second;
    };
    for (const auto& [box, to] : part_of) {
      for (const FoldedLink& link : folded_.boxes[box].sources) {
        if (place(link.from) == to) continue;
        const bool is_side = folded_.boxes[link.from].kind == Kind::kPreparation;
        const bool ends_here = laid.items[to].inner == nullptr;
        add_wire(laid, {.source = link.from,
                        .from = place(link.from),
                        .to = to,
                        .label = link.changed && ends_here ? link.shape : "",
                        .residual = link.residual,
                        .side = is_side,
                        .right = is_side || folded_.boxes[box].kind == Kind::kOutput,
                        .stops = {}});
      }
      for (const size_t user : users_[box]) {
        if (place(user) == kBorder)
          add_wire(laid, {.source = box, .from = to, .label = "", .stops = {}});
      }
    }
  }

  static void add_wire(Laid& laid, Wire wire) {
    for (Wire& known : laid.wires) {
      if (known.source != wire.source || known.from != wire.from || known.to != wire.to) continue;
      known.residual = known.residual && wire.residual;
      known.right = known.right && wire.right;
      return;
    }
    laid.wires.push_back(std::move(wire));
  }

  /// The last row that is above all that use an item; `otherwise` if there is none.
  static size_t row_above_users(const Laid& laid, size_t item, size_t otherwise) {
    size_t row = kBorder;
    for (const Wire& wire : laid.wires) {
      if (wire.from == item && wire.to != kBorder) row = std::min(row, laid.items[wire.to].row);
    }
    return row == kBorder || row == 0 ? otherwise : row - 1;
  }

  static size_t last_row(const Laid& laid) {
    size_t last = 0;
    for (const LaidItem& item : laid.items) last = std::max(last, item.row);
    return last;
  }

  void rank(bool is_whole, Laid& laid) const {
    std::vector<bool> is_fed(laid.items.size(), false);
    for (size_t i = 0; i < laid.items.size(); ++i) {
      for (const Wire& wire : laid.wires) {
        if (wire.to != i) continue;
        is_fed[i] = true;
        if (wire.from < i)
          laid.items[i].row = std::max(laid.items[i].row, laid.items[wire.from].row + 1);
      }
    }
    const size_t last = last_row(laid);
    for (size_t i = 0; i < laid.items.size(); ++i) {
      LaidItem& item = laid.items[i];
      const Kind kind = item.inner ? Kind::kModule : folded_.boxes[item.part->box].kind;
      const bool ends = is_whole && kind == Kind::kCache && i > 0 && i + 1 == laid.items.size();
      if (kind == Kind::kOutput || ends) item.row = last;
      const bool starts = kind == Kind::kInput || kind == Kind::kCache;
      if (!is_fed[i] && !starts) item.row = row_above_users(laid, i, item.row);
    }
    laid.row_tops.resize(last + 1);
    laid.row_bottoms.resize(last + 1);
  }

  /// Wires that pass rows get a lane or room within the rows.
  static void make_stops(Laid& laid) {
    std::map<std::pair<bool, size_t>, size_t> lanes;  // by side and source
    size_t num_lanes[2] = {0, 0};
    for (Wire& wire : laid.wires) {
      const bool from_border = wire.from == kBorder;
      const size_t first = from_border ? 0 : laid.items[wire.from].row + 1;
      const size_t end = wire.to == kBorder ? laid.row_tops.size() : laid.items[wire.to].row;
      const bool passes = end > first;
      const bool has_lane =
          wire.side ? passes || from_border : passes && (wire.residual || wire.right);
      if (wire.to != kBorder && has_lane) {
        const auto [at, added] =
            lanes.try_emplace({wire.right, wire.source}, num_lanes[wire.right]);
        if (added) ++num_lanes[wire.right];
        wire.lane = at->second;
        continue;
      }
      for (size_t row = first; row < end; ++row) {
        LaidItem room;
        room.row = row;
        const bool has_size = !from_border && laid.items[wire.from].inner == nullptr;
        room.left = room.right = has_size ? laid.items[wire.from].left : 20;
        wire.stops.push_back(laid.items.size());
        laid.items.push_back(std::move(room));
      }
    }
  }

  /// Where on the average the wires into an item come from, or 0.
  static double pull(const Laid& laid, size_t item) {
    double sum = 0;
    int64_t count = 0;
    for (const Wire& wire : laid.wires) {
      if (wire.lane != kBorder && wire.right && !wire.side && wire.to == item) return kFarRight;
      if (wire.lane != kBorder || wire.side) continue;
      size_t before = wire.from;
      for (const size_t stop : wire.stops) {
        if (stop == item && before != kBorder) sum += laid.items[before].x, ++count;
        before = stop;
      }
      if (wire.to == item && before != kBorder) sum += laid.items[before].x, ++count;
    }
    return count == 0 ? 0 : sum / double(count);
  }

  /// The first box that takes a value, itself or what is prepared of it.
  size_t first_use(size_t box) const {
    size_t first = folded_.boxes.size();
    for (const size_t user : users_[box]) {
      const bool prepares = folded_.boxes[user].kind == Kind::kPreparation;
      first = std::min(first, prepares ? first_use(user) : user);
    }
    return first;
  }

  void place_row(Laid& laid, size_t row) const {
    std::vector<std::pair<double, size_t>> main;
    std::vector<std::pair<size_t, size_t>> side;  // by first use
    std::vector<size_t> caches;
    for (size_t i = 0; i < laid.items.size(); ++i) {
      const LaidItem& item = laid.items[i];
      if (item.row != row) continue;
      const bool is_port = item.part != nullptr && item.inner == nullptr &&
                           folded_.boxes[item.part->box].kind == Kind::kCache &&
                           folded_.boxes[item.part->box].shape.empty();
      if (is_port) {
        caches.push_back(i);
      } else if (item.side) {
        side.emplace_back(first_use(item.part->box), i);
      } else {
        main.emplace_back(pull(laid, i), i);
      }
    }
    std::ranges::stable_sort(main, {}, [](const auto& entry) { return entry.first; });
    std::ranges::sort(side);
    double width = main.empty() ? 0 : kBetween * double(main.size() - 1);
    for (const auto& [x, i] : main) width += laid.items[i].left + laid.items[i].right;
    double at = main.size() == 1 ? -laid.items[main[0].second].left : -width / 2;
    const double begin = at;
    const auto put = [&](size_t i) {
      laid.items[i].x = at + laid.items[i].left;
      at += laid.items[i].left + laid.items[i].right + kBetween;
    };
    for (const auto& [x, i] : main) put(i);
    for (const auto& [use, i] : side) put(i);
    at = begin;
    for (const size_t i : caches) {
      at -= laid.items[i].left + laid.items[i].right + 2 * kBetween;
      laid.items[i].x = at + laid.items[i].left;
    }
  }

  void place(Laid& laid, bool has_border) const {
    double y = has_border ? kHeader + 22 : 0;
    size_t num_lanes[2] = {0, 0};
    for (const Wire& wire : laid.wires) {
      size_t& lanes = num_lanes[wire.right];
      if (wire.lane != kBorder) lanes = std::max(lanes, wire.lane + 1);
    }
    for (size_t row = 0; row < laid.row_tops.size(); ++row) {
      place_row(laid, row);
      double height = 0;
      for (const LaidItem& item : laid.items) {
        if (item.row == row) height = std::max(height, item.height);
      }
      laid.row_tops[row] = y;
      laid.row_bottoms[row] = y + height;
      for (LaidItem& item : laid.items) {
        if (item.row != row) continue;
        if (item.part == nullptr) item.height = height;
        item.y = y;
        laid.inner_left = std::max(laid.inner_left, item.left - item.x);
        laid.inner_right = std::max(laid.inner_right, item.right + item.x);
      }
      y += height + kGap;
    }
    laid.height = y - kGap + (has_border ? 24 : 0);
    laid.left = laid.inner_left + kPadding + kLane * double(num_lanes[0]);
    laid.right = laid.inner_right + kPadding + kLane * double(num_lanes[1]);
  }

  static void find_ports(Laid& laid) {
    std::map<size_t, std::vector<double>> into, out_of;
    for (const Wire& wire : laid.wires) {
      if (wire.from == kBorder && wire.lane == kBorder)
        into[wire.source].push_back(first_x(laid, wire));
      if (wire.to == kBorder)
        out_of[wire.source].push_back(
            laid.items[wire.stops.empty() ? wire.from : wire.stops.back()].x);
    }
    const auto assign = [](const auto& found, std::map<size_t, double>& ports) {
      for (const auto& [source, xs] : found) {
        double sum = 0;
        for (const double x : xs) sum += x;
        ports[source] = found.size() == 1 ? 0 : sum / double(xs.size());
      }
    };
    assign(into, laid.entries);
    assign(out_of, laid.exits);
    for (const Wire& wire : laid.wires) {
      if (wire.from == kBorder && wire.lane != kBorder)
        laid.entries.try_emplace(wire.source, laid.lane_x(wire));
    }
  }

  static double first_x(const Laid& laid, const Wire& wire) {
    return laid.items[wire.stops.empty() ? wire.to : wire.stops.front()].x;
  }

  const Folded& folded_;
  std::vector<std::vector<size_t>> users_;
};

}  // namespace

double Laid::lane_x(const Wire& wire) const {
  const double offset = 14 + kLane * double(wire.lane);
  return wire.right ? inner_right + offset : -inner_left - offset;
}

std::vector<std::string> detail_lines(const FoldedBox& box) {
  std::vector<std::string> lines = box.lines;
  if (!box.shape.empty()) lines.push_back(box.shape);
  if (!box.taken.empty()) lines.push_back("as " + box.taken);
  return lines;
}

TextSize size_of(const FoldedBox& box, const std::string& title) {
  double width = 8.2 * double(title.size());
  if (box.op != box.title) width += 6.8 * double(box.op.size()) + 12;
  const std::vector<std::string> lines = detail_lines(box);
  for (const std::string& line : lines) width = std::max(width, 6.7 * double(line.size() + 2));
  return {std::max(width + 24, 84.0), 26 + 15 * double(lines.size()) + (lines.empty() ? 4 : 6)};
}

Laid lay_out(const Folded& folded, const Frame& whole) {
  return Layouter(folded).lay(whole, nullptr);
}

}  // namespace tranship::ir

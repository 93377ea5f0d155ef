#include "ir/fold.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"

namespace tranship::ir {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == word.npos;
}

/// "model.layers.3.mlp" -> "model.layers.3"; empty if no part is a number.
std::string_view layer_of(std::string_view path) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    if (is_number(path.substr(begin, end - begin))) return path.substr(0, end);
    begin = end + 1;
  }
  return {};
}

std::string_view parent(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// The deepest module that both stand in or are.
std::string_view common_module(std::string_view a, std::string_view b) {
  while (!a.empty() && b != a && !(b.starts_with(a) && b[a.size()] == '.')) a = parent(a);
  return a;
}

/// Values that are there before anything is fed.
bool is_given(OpKind kind) {
  return kind == OpKind::kParam || kind == OpKind::kConstant || kind == OpKind::kFull ||
         kind == OpKind::kDimToTensor;
}

bool only_moves(OpKind kind) {
  return kind == OpKind::kReshape || kind == OpKind::kTranspose || kind == OpKind::kExpand ||
         kind == OpKind::kUnsqueeze || kind == OpKind::kSqueeze || kind == OpKind::kCast;
}

bool is_elementwise(OpKind kind) {
  return kind == OpKind::kUnary || kind == OpKind::kBinary || kind == OpKind::kCompare ||
         kind == OpKind::kWhere || kind == OpKind::kActivation;
}

/// "add" for Binary {fn=add}, "Rope" for Rope.
std::string short_name(const Op& op) {
  switch (op.kind) {
    case OpKind::kUnary:
      return std::string(names_of(UnaryKind())[static_cast<size_t>(as<Unary>(op).fn)]);
    case OpKind::kBinary:
      return std::string(names_of(BinaryKind())[static_cast<size_t>(as<Binary>(op).fn)]);
    case OpKind::kCompare:
      return std::string(names_of(CompareKind())[static_cast<size_t>(as<Compare>(op).fn)]);
    case OpKind::kActivation:
      return std::string(names_of(ActivationKind())[static_cast<size_t>(as<Activation>(op).fn)]);
    case OpKind::kOpaque:
      return as<Opaque>(op).target;
    default:
      return std::string(name(op.kind));
  }
}

/// Names that differ in one number, as one: "past.layers.0 ... 29.keys".
struct PortGroup {
  std::string before, after, shape, first, last;
  int64_t count = 0;
  std::string text() const {
    const std::string number = count == 1 ? first : first + " ... " + last;
    return before + number + after;
  }
};

class Folder {
 public:
  explicit Folder(const Component& component) : component_(component), g_(*component.graph) {
    for (const State& state : component.states) {
      state_inputs_.emplace(state.input, last_part(state.name));
      state_outputs_.emplace(state.output, last_part(state.name));
    }
  }

  Folded all() {
    find_origins();
    find_modules();
    gather();
    make_boxes();
    add_outputs();
    fold_layers();
    result_.title = component_.name;
    return std::move(result_);
  }

 private:
  const Node& node(size_t i) const { return g_.nodes()[i]; }
  bool is_state(const Node& n) const {
    return n.kind() == OpKind::kInput && state_inputs_.contains(as<Input>(*n.op).name);
  }

  /// Notes where a node's operands come from. Returns where its results do.
  size_t find_sources(size_t i) {
    const Node& n = node(i);
    for (const ValueId id : n.inputs) {
      if (id == kAbsent || origin_[size_t(id)] == kNone) continue;
      sources_[i].push_back({origin_[size_t(id)], id});
    }
    if (is_given(n.kind())) return kNone;
    if (!n.name.empty()) return i;
    const bool starts = n.kind() == OpKind::kInput || n.kind() == OpKind::kIota;
    if (sources_[i].empty() && !starts && n.graphs.empty()) return kNone;
    return only_moves(n.kind()) ? sources_[i][0].node : i;
  }

  /// For each value the node that made what is in it, leaving out what only moves elements.
  void find_origins() {
    origin_.assign(g_.num_values(), kNone);
    const size_t count = g_.nodes().size();
    sources_.resize(count);
    users_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t origin = find_sources(i);
      for (const ValueId id : node(i).outputs) origin_[size_t(id)] = origin;
      if (origin != i) continue;
      for (const Source& s : sources_[i]) users_[s.node].insert(i);
    }
    for (const Output& o : g_.outputs()) {
      const size_t origin = origin_[size_t(o.value)];
      if (origin != kNone && !state_outputs_.contains(o.name)) users_[origin].insert(kNone);
    }
  }

  bool is_drawn(size_t i) const { return origin_[size_t(node(i).outputs[0])] == i; }

  /// Unnamed nodes stand in the module that their neighbours in program order share; one that joins
  /// a layer's value with an older one belongs to the layer.
  void find_modules() {
    const size_t count = g_.nodes().size();
    module_.resize(count);
    std::vector<std::string_view> next(count);
    for (size_t i = 0; i < count; ++i) {
      if (!names_module(i)) continue;
      for (std::string_view p = parent(node(i).name); !p.empty(); p = parent(p)) {
        if (!containers_.insert(p).second) break;
      }
    }
    std::string_view seen;
    for (size_t i = count; i-- > 0;) {
      next[i] = seen;
      if (names_module(i)) seen = node(i).name;
    }
    seen = {};
    std::string_view previous;
    for (size_t i = 0; i < count; ++i) {
      const Node& n = node(i);
      if (names_module(i)) {
        previous = n.name;
        const bool has_parts = containers_.contains(n.name);
        module_[i] = has_parts ? n.name : parent(n.name);
        continue;
      }
      module_[i] = common_module(previous, next[i]);
      const std::string_view layer = layer_of(previous);
      const bool joins = sources_[i].size() > 1;
      if (joins && layer.size() > module_[i].size()) module_[i] = layer;
    }
  }

  bool names_module(size_t i) const {
    return !node(i).name.empty() && node(i).kind() != OpKind::kParam;
  }

  bool is_preparation(size_t i) const {
    const Node& n = node(i);
    if (!n.name.empty() || is_composite(n.kind()) || n.kind() == OpKind::kInput) return false;
    return std::ranges::all_of(sources_[i], [&](const Source& s) {
      return preparation_[s.node] ||
             (node(s.node).kind() == OpKind::kInput && !is_state(node(s.node)));
    });
  }

  /// Which nodes share a box: group_[i] is the last node of i's box.
  void gather() {
    const size_t count = g_.nodes().size();
    group_.resize(count);
    preparation_.assign(count, false);
    for (size_t i = 0; i < count; ++i) {
      group_[i] = i;
      preparation_[i] = is_drawn(i) && is_preparation(i);
      if (!preparation_[i]) continue;
      for (const Source& s : sources_[i]) {
        if (preparation_[s.node]) merge(s.node, i);
      }
    }
    for (size_t i = count; i-- > 0;) {
      if (preparation_[i] || !is_drawn(i) || !can_chain(i) || users_[i].size() != 1) continue;
      const size_t user = *users_[i].begin();
      if (user == kNone || !can_chain(user) || preparation_[user]) continue;
      group_[i] = group_[user];
      module_[i] = module_[user];
    }
  }

  bool can_chain(size_t i) const { return node(i).name.empty() && is_elementwise(node(i).kind()); }

  void merge(size_t a, size_t b) {
    const size_t from = std::min(group_[a], group_[b]), to = std::max(group_[a], group_[b]);
    if (from == to) return;
    for (size_t i = 0; i <= b; ++i) {
      if (group_[i] == from) group_[i] = to;
    }
  }

  /// Inputs first, then what is made of them alone, then the rest in the order of the program.
  void make_boxes() {
    const size_t count = g_.nodes().size();
    box_of_.assign(count, kNone);
    std::vector<std::vector<size_t>> members(count);
    for (size_t i = 0; i < count; ++i) {
      if (is_drawn(i)) members[group_[i]].push_back(i);
    }
    add_inputs();
    for (const bool preparations : {true, false}) {
      for (size_t i = 0; i < count; ++i) {
        const bool mine = preparation_[i] == preparations && node(i).kind() != OpKind::kInput;
        if (mine && !members[i].empty()) add_box(i, members[i]);
      }
    }
  }

  void add_inputs() {
    std::vector<PortGroup> states;
    for (size_t i = 0; i < g_.nodes().size(); ++i) {
      const Node& n = node(i);
      if (n.kind() != OpKind::kInput) continue;
      const Input& input = as<Input>(*n.op);
      if (is_state(n)) {
        add_port(states, input.name, input.shape.text());
        continue;
      }
      box_of_[i] = result_.boxes.size();
      result_.boxes.push_back({.kind = FoldedBox::Kind::kInput,
                               .title = input.name,
                               .op = "input " + std::string(tranship::name(input.dtype)),
                               .shape = input.shape.text()});
    }
    add_state_ports(states, "caches taken");
  }

  static void add_port(std::vector<PortGroup>& groups, std::string_view port, std::string shape) {
    const std::string_view layer = layer_of(port);
    const std::string number(layer.empty() ? layer : last_part(layer));
    PortGroup made = {.before = std::string(port.substr(0, layer.size() - number.size())),
                      .after = std::string(port.substr(layer.size())),
                      .shape = std::move(shape),
                      .first = number,
                      .last = number,
                      .count = 1};
    for (PortGroup& group : groups) {
      if (group.before != made.before || group.after != made.after || group.shape != made.shape)
        continue;
      group.last = number;
      ++group.count;
      return;
    }
    groups.push_back(std::move(made));
  }

  void add_state_ports(const std::vector<PortGroup>& groups, std::string title) {
    if (groups.empty()) return;
    FoldedBox box = {.kind = FoldedBox::Kind::kCache, .title = std::move(title)};
    int64_t count = 0;
    for (const PortGroup& group : groups) {
      box.lines.push_back(group.text() + " " + group.shape);
      count += group.count;
    }
    box.op = fmt::format("{} tensors", count);
    result_.boxes.push_back(std::move(box));
  }

  void add_box(size_t last, const std::vector<size_t>& members) {
    FoldedBox box;
    const Node& n = node(last);
    std::string ops;
    for (const size_t i : members) {
      const std::string op = short_name(*node(i).op);
      box.attributes += text(*node(i).op) + ";";
      if (ops != op && !ops.ends_with(" " + op)) ops += (ops.empty() ? "" : ", ") + op;
    }
    box.module = module_[last];
    box.op = ops;
    box.shape = g_.type(n.outputs[0]).shape.text();
    box.kind = n.name.empty() ? FoldedBox::Kind::kOperation : FoldedBox::Kind::kModule;
    box.title = n.name.empty() || module_[last] == n.name ? ops : std::string(last_part(n.name));
    if (preparation_[last]) {
      box.kind = FoldedBox::Kind::kPreparation;
      box.module.clear();
      box.title = preparation_title(members, ops);
    }
    for (const size_t i : members) add_operands(i, box);
    if (n.kind() == OpKind::kAttention && as<Attention>(*n.op).window)
      box.lines.push_back(fmt::format("window {}", *as<Attention>(*n.op).window));
    mark_residual(box);
    for (const size_t i : members) box_of_[i] = result_.boxes.size();
    result_.boxes.push_back(std::move(box));
  }

  std::string preparation_title(const std::vector<size_t>& members, const std::string& ops) const {
    std::set<OpKind> kinds;
    for (const size_t i : members) {
      for (const size_t user : users_[i]) {
        if (user != kNone && group_[user] != group_[i]) kinds.insert(node(user).kind());
      }
    }
    if (kinds == std::set{OpKind::kRope}) return "rotary table";
    if (kinds == std::set{OpKind::kAttention}) return "mask";
    return ops;
  }

  void add_operands(size_t i, FoldedBox& box) {
    for (const ValueId id : node(i).inputs) {
      if (id == kAbsent || g_.producer(id).kind() != OpKind::kParam) continue;
      const Param& param = as<Param>(*g_.producer(id).op);
      box.lines.push_back(std::string(last_part(param.name)) + " " + param.shape.text());
      if (!node(i).name.empty() && parent(param.name) != node(i).name)
        box.lines.push_back("of " + std::string(parent(param.name)));
    }
    for (const Source& source : sources_[i]) {
      const Node& from = node(source.node);
      if (is_state(from)) {
        const std::string_view state = state_inputs_.at(as<Input>(*from.op).name);
        box.kind = FoldedBox::Kind::kCache;
        box.title = std::string(state) + " cache";
        box.lines.push_back("past " + g_.type(source.value).shape.text());
        continue;
      }
      add_link(box, source.node, source.value);
    }
  }

  void add_link(FoldedBox& box, size_t from, ValueId value) {
    const size_t source = box_of_[from];
    if (source == kNone) return;  // within the box
    const std::string shape = g_.type(value).shape.text();
    for (const FoldedLink& link : box.sources) {
      if (link.from == source) return;
    }
    const bool changed = g_.type(node(from).outputs[0]).shape != g_.type(value).shape;
    box.sources.push_back({source, shape, changed});
  }

  static void mark_residual(FoldedBox& box) {
    const bool adds = box.op.ends_with("add") || box.op.ends_with("mul");
    if (!box.is_join() || !adds) return;
    const auto newest = std::ranges::max_element(box.sources, {}, &FoldedLink::from);
    for (FoldedLink& link : box.sources) link.residual = link.from != newest->from;
  }

  void add_outputs() {
    std::vector<PortGroup> states;
    for (const Output& output : g_.outputs()) {
      const std::string shape = g_.type(output.value).shape.text();
      const size_t origin = origin_[size_t(output.value)];
      const size_t from = origin == kNone ? kNone : box_of_[origin];
      if (const auto state = state_outputs_.find(output.name); state != state_outputs_.end()) {
        add_port(states, output.name, shape);
        if (from == kNone) continue;
        FoldedBox& box = result_.boxes[from];
        if (box.kind == FoldedBox::Kind::kCache) continue;
        box.lines.push_back("kept as " + std::string(state->second) + " " + shape);
        continue;
      }
      FoldedBox box = {.kind = FoldedBox::Kind::kOutput,
                       .title = output.name,
                       .op = "output " + std::string(tranship::name(g_.type(output.value).dtype)),
                       .shape = shape};
      if (from != kNone) add_link(box, origin, output.value);
      result_.boxes.push_back(std::move(box));
    }
    add_state_ports(states, "caches given");
  }

  void fold_layers();
  bool equal_layers(const std::vector<size_t>& a, const std::vector<size_t>& b,
                    const std::vector<size_t>& before_b) const;
  std::vector<size_t> classes_of(const std::vector<std::vector<size_t>>& layers) const;
  void keep(const std::vector<bool>& is_kept, const std::vector<size_t>& stands_for);
  void find_taken();
  std::string summary(size_t num_layers) const;

  struct Source {
    size_t node;
    ValueId value;
  };
  const Component& component_;
  const Graph& g_;
  std::map<std::string, std::string_view> state_inputs_, state_outputs_;
  std::vector<size_t> origin_;                // by value
  std::vector<std::vector<Source>> sources_;  // by node, from here on
  std::vector<std::set<size_t>> users_;       // kNone: an output of the graph
  std::vector<std::string_view> module_;
  std::set<std::string_view> containers_;
  std::vector<size_t> group_, box_of_;
  std::vector<bool> preparation_;
  Folded result_;
};

/// Parameters without the comma-separated thousands are hard to compare: 134,515,008.
std::string with_commas(int64_t number) {
  std::string out = std::to_string(number);
  for (size_t i = out.size(); i > 3; i -= 3) out.insert(i - 3, ",");
  return out;
}

std::string Folder::summary(size_t num_layers) const {
  std::map<std::string_view, int64_t> sizes;
  for (const Node& n : g_.nodes()) {
    if (n.kind() != OpKind::kParam) continue;
    const Param& param = as<Param>(*n.op);
    const Dim size = param.shape.num_elements();
    if (size.is_static()) sizes[param.name] = size.value();
  }
  int64_t total = 0;
  for (const auto& [param, size] : sizes) total += size;
  std::string out = with_commas(total) + " parameters";
  if (num_layers > 0) out += fmt::format(", {} layers", num_layers);
  return out;
}

/// The place of a box in a layer, or kNone.
size_t index_in(const std::vector<size_t>& layer, size_t box) {
  const auto it = std::ranges::lower_bound(layer, box);
  return it != layer.end() && *it == box ? size_t(it - layer.begin()) : kNone;
}

/// All but where the sources are and where the boxes stand.
bool are_alike(const FoldedBox& x, const FoldedBox& y) {
  return x.title == y.title && x.attributes == y.attributes && x.lines == y.lines &&
         x.shape == y.shape &&
         std::ranges::equal(x.sources, y.sources, {}, &FoldedLink::shape, &FoldedLink::shape);
}

/// Of b, what comes from outside must come from where a's does, or from the layer before b.
bool Folder::equal_layers(const std::vector<size_t>& a, const std::vector<size_t>& b,
                          const std::vector<size_t>& before_b) const {
  if (a.size() != b.size()) return false;
  const size_t a_path = layer_of(result_.boxes[a[0]].module).size();
  const size_t b_path = layer_of(result_.boxes[b[0]].module).size();
  for (size_t i = 0; i < a.size(); ++i) {
    const FoldedBox &x = result_.boxes[a[i]], &y = result_.boxes[b[i]];
    if (x.module.substr(a_path) != y.module.substr(b_path) || !are_alike(x, y)) return false;
    for (size_t s = 0; s < x.sources.size(); ++s) {
      const size_t from_x = x.sources[s].from, from_y = y.sources[s].from;
      const size_t place = index_in(b, from_y);
      const bool same_source =
          place != kNone || from_x == from_y || index_in(before_b, from_y) != kNone;
      if (index_in(a, from_x) != place || !same_source) return false;
    }
  }
  return true;
}

std::vector<size_t> Folder::classes_of(const std::vector<std::vector<size_t>>& layers) const {
  std::vector<size_t> classes(layers.size()), representatives;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::vector<size_t> before = i == 0 ? std::vector<size_t>() : layers[i - 1];
    const auto known = std::ranges::find_if(
        representatives, [&](size_t r) { return equal_layers(layers[r], layers[i], before); });
    classes[i] = known == representatives.end() ? i : *known;
    if (known == representatives.end()) representatives.push_back(i);
  }
  return classes;
}

/// How many layers from `first` on repeat with a period: a multiple of it, or 0.
size_t repeated(const std::vector<size_t>& classes, size_t first, size_t period) {
  size_t end = first + period;
  while (end < classes.size() && classes[end] == classes[end - period]) ++end;
  const size_t count = (end - first) / period * period;
  return count > period ? count : 0;
}

void Folder::fold_layers() {
  constexpr size_t kMaxPeriod = 8;
  std::vector<std::vector<size_t>> layers;
  std::vector<std::string> paths;
  for (size_t i = 0; i < result_.boxes.size(); ++i) {
    const std::string_view path = layer_of(result_.boxes[i].module);
    if (path.empty()) continue;
    auto at = std::ranges::find(paths.rbegin(), paths.rend(), path);
    if (at == paths.rend()) {
      paths.emplace_back(path);
      layers.emplace_back();
      at = paths.rbegin();
    }
    layers[size_t(paths.rend() - at) - 1].push_back(i);
  }
  result_.summary = summary(layers.size());
  const std::vector<size_t> classes = classes_of(layers);
  std::vector<bool> is_kept(result_.boxes.size(), true);
  std::vector<size_t> stands_for(result_.boxes.size());
  for (size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = i;
  for (size_t first = 0; first < layers.size();) {
    size_t period = 1, count = 1;
    for (size_t p = kMaxPeriod; p > 0; --p) {
      if (const size_t c = repeated(classes, first, p); c > 0 && c >= count) period = p, count = c;
    }
    for (size_t i = first; i < first + period; ++i) {
      std::string label = paths[i];
      const auto times = static_cast<int64_t>(count / period);
      if (times > 1 && period > 1) label += fmt::format(", {}", last_part(paths[i + period]));
      if (times > 1) label += fmt::format(" ... {}", last_part(paths[i + count - period]));
      result_.layers.push_back({paths[i], label, times});
    }
    for (size_t i = first + period; i < first + count; ++i) {
      for (size_t k = 0; k < layers[i].size(); ++k) {
        is_kept[layers[i][k]] = false;
        stands_for[layers[i][k]] = layers[first + (i - first) % period][k];
      }
    }
    first += count;
  }
  keep(is_kept, stands_for);
}

void Folder::keep(const std::vector<bool>& is_kept, const std::vector<size_t>& stands_for) {
  std::vector<size_t> place(is_kept.size());
  std::vector<FoldedBox> kept;
  for (size_t i = 0; i < is_kept.size(); ++i) {
    if (!is_kept[i]) continue;
    place[i] = kept.size();
    kept.push_back(std::move(result_.boxes[i]));
  }
  for (FoldedBox& box : kept) {
    for (FoldedLink& link : box.sources) link.from = place[stands_for[link.from]];
  }
  result_.boxes = std::move(kept);
  find_taken();
}

/// Where all users of a box take its result reshaped in one way, the box says so, not the links.
void Folder::find_taken() {
  std::vector<std::set<std::string>> shapes(result_.boxes.size());
  for (const FoldedBox& box : result_.boxes) {
    for (const FoldedLink& link : box.sources) shapes[link.from].insert(link.shape);
  }
  for (FoldedBox& box : result_.boxes) {
    for (FoldedLink& link : box.sources) {
      if (shapes[link.from].size() != 1 || !link.changed) continue;
      result_.boxes[link.from].taken = link.shape;
      link.changed = false;
    }
  }
}

}  // namespace

Folded fold(const Component& component) { return Folder(component).all(); }

}  // namespace tranship::ir

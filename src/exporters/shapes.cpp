#include "exporters/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "exporters/ranges.h"
#include "passes/passes.h"

namespace tranship::exporters {
namespace {

using ir::Dim;
using ir::Range;

constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();  // of one axis

std::vector<std::string> to_list(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

Range range_of(const std::string& axis, const DynamicDim& dim) {
  if (dim.min < 0 || (dim.max && *dim.max < std::max<int64_t>(dim.min, 1))) {
    fail(ErrorKind::kInvalidArgument,
         "[export] the range of '{}' is {}: expected 0 <= min <= max, and max over 0", axis,
         text_of({dim.min, dim.max}));
  }
  return {dim.min, dim.max};
}

int64_t within(const Range& range, int64_t size) {
  return std::clamp(size, range.min, std::max(range.min, range.max.value_or(size)));
}

/// An axis with a least size consists of such pieces, as an image of patches. There are some in an
/// example: PyTorch takes a count that is 1 there for 1 always.
int64_t some_pieces(const Range& range) { return range.min > 1 ? 4 * range.min : range.min; }

/// Puts together what is said about the axes of one program.
class Planner {
 public:
  Planner(const ir::Program& program, const NamedTensors& sample_inputs,
          const ExportOptions& config, const std::map<std::string, int64_t>& usual_sizes)
      : sample_inputs_(sample_inputs), config_(config), usual_sizes_(usual_sizes) {
    for (const ir::Component& component : program.components) add_component(component);
  }

  ShapePlan plan() {
    check_names();
    open_named_axes();
    if (config_.dynamic_shapes.empty() && config_.dynamic)
      open_.insert(symbols_.begin(), symbols_.end());
    open_.insert(growing_.begin(), growing_.end());
    for (const auto& [symbol, size] : config_.static_shapes) fix(symbol, size);
    bind_samples();
    fix_rest();
    check_product();
    check_samples();
    make_examples();
    return std::move(plan_);
  }

 private:
  void add_component(const ir::Component& component) {
    for (const ir::Node* node : component.graph->inputs()) {
      const auto& input = ir::as<ir::Input>(*node->op);
      inputs_[input.name].push_back(&input);
      for (const Dim& dim : input.shape.dims) symbols_.merge(dim.symbols());
      for (const ir::State& state : component.states) {
        if (state.input == input.name && state.kind == ir::State::Kind::kAppend)
          growing_.merge(input.shape[state.growth_axis].symbols());
      }
    }
    for (const auto& [symbol, range] : component.graph->symbols()) ranges_[symbol] = range;
  }

  void check_names() const {
    std::set<std::string> unknown;
    for (const auto& [symbol, size] : config_.static_shapes) unknown.insert(symbol);
    for (const auto& [symbol, dim] : config_.dims) unknown.insert(symbol);
    for (const std::string& symbol : symbols_) unknown.erase(symbol);
    if (unknown.empty()) return;
    fail(ErrorKind::kInvalidArgument, "[export] no axis is called {}; this model's axes are {}",
         listed(to_list(unknown)), listed(to_list(symbols_)));
  }

  void open(const std::string& symbol, const Range& range) {
    open_.insert(symbol);
    const auto [it, is_new] = plan_.ranges.emplace(symbol, range);
    if (!is_new && it->second != range) {
      fail(ErrorKind::kInvalidArgument, "[export] the axis '{}' has two ranges: {}, and {}", symbol,
           text_of(it->second), text_of(range));
    }
  }

  int64_t least_of(const std::string& symbol) const {
    const auto it = ranges_.find(symbol);
    return it == ranges_.end() ? 1 : it->second.min;
  }

  void open_named_axes() {
    for (const auto& [symbol, dim] : config_.dims) {
      if (dim.min < least_of(symbol)) {
        fail(ErrorKind::kInvalidArgument,
             "[export] the range of '{}' begins at {}, expected {} or more", symbol, dim.min,
             least_of(symbol));
      }
      open(symbol, range_of(symbol, dim));
    }
    for (const auto& [input, axes] : config_.dynamic_shapes) {
      for (const auto& [axis, dim] : axes) open_axis(input, axis, dim);
    }
  }

  const std::vector<const ir::Input*>& find_inputs(const std::string& name) const {
    for (const std::string& full : {name, "input." + name}) {
      if (const auto it = inputs_.find(full); it != inputs_.end()) return it->second;
    }
    std::set<std::string> known;
    for (const auto& [input, ops] : inputs_) known.insert(input);
    fail(ErrorKind::kInvalidArgument,
         "[export] dynamic_shapes: the graphs have no input '{}', only {}", name,
         listed(to_list(known)));
  }

  /// One axis of dynamic_shapes. A size that follows from others ("past + 1") is open when they
  /// are.
  void open_axis(const std::string& input, int64_t axis, const DynamicDim& dim) {
    bool varies = false;
    for (const ir::Input* op : find_inputs(input)) {
      if (axis < 0 || axis >= op->shape.rank()) {
        fail(ErrorKind::kInvalidArgument,
             "[export] dynamic_shapes: '{}' has no axis {}: its shape is {}", input, axis,
             op->shape.text());
      }
      varies |= !op->shape[axis].is_static();
      const std::optional<std::string> symbol = op->shape[axis].as_symbol();
      if (!symbol) continue;
      unite(input, *symbol, dim.name);
      open(*symbol, range_of(dim.name, dim));
    }
    if (!varies) {
      fail(ErrorKind::kInvalidArgument,
           "[export] dynamic_shapes: axis {} of '{}' has one size only: its shape is {}", axis,
           input, find_inputs(input).front()->shape.text());
    }
  }

  /// One name is one size, and one size has one name.
  void unite(const std::string& input, const std::string& symbol, const std::string& name) {
    const auto [named, is_new_symbol] = names_.emplace(symbol, name);
    if (!is_new_symbol && named->second != name) {
      fail(ErrorKind::kInvalidArgument,
           "[export] dynamic_shapes of '{}': '{}' and '{}' are one size in this model ({})", input,
           named->second, name, symbol);
    }
    const auto [other, is_new_name] = symbol_of_.emplace(name, symbol);
    if (!is_new_name && other->second != symbol) {
      fail(ErrorKind::kUnsupported,
           "[export] dynamic_shapes: '{}' would make '{}' and '{}' one size, which no graph here "
           "can "
           "promise: give them two names",
           name, other->second, symbol);
    }
  }

  void fix(const std::string& symbol, int64_t size) {
    const int64_t least = least_of(symbol);
    if (size < least || size > kMostElements) {
      fail(ErrorKind::kInvalidArgument, "[export] the size of '{}' is {}, expected {} to {}",
           symbol, size, least, kMostElements);
    }
    if (plan_.ranges.contains(symbol)) {
      fail(ErrorKind::kInvalidArgument, "[export] '{}' has a size ({}) and a range: choose one",
           symbol, size);
    }
    open_.erase(symbol);
    plan_.sizes[symbol] = size;
  }

  const ir::Input* find_sampled(const std::string& name, const Tensor& sample) const {
    const auto it = inputs_.find(name);
    if (it == inputs_.end()) return nullptr;  // the graphs do not take it: graph_inputs says so
    const ir::Input& op = *it->second.front();
    if (op.dtype != sample.dtype() ||
        op.shape.rank() != static_cast<int64_t>(sample.shape().size())) {
      fail(ErrorKind::kInvalidArgument,
           "[export] sample input '{}' is {} of rank {}, expected {}{}", name,
           tranship::name(sample.dtype()), sample.shape().size(), tranship::name(op.dtype),
           op.shape.text());
    }
    return &op;
  }

  void bind_samples() {
    for (const auto& [name, sample] : sample_inputs_) {
      const ir::Input* op = find_sampled(name, sample);
      for (size_t i = 0; op != nullptr && i < sample.shape().size(); ++i) {
        const std::optional<std::string> symbol = op->shape.dims[i].as_symbol();
        if (!symbol) continue;
        const auto [it, is_new] = sampled_.emplace(*symbol, sample.shape()[i]);
        if (!is_new && it->second != sample.shape()[i]) {
          fail(ErrorKind::kInvalidArgument,
               "[export] sample inputs disagree on '{}': {}, and {} in '{}'", *symbol, it->second,
               sample.shape()[i], name);
        }
      }
    }
  }

  /// What is neither open nor named has the size of the samples, or the usual one.
  void fix_rest() {
    std::set<std::string> unknown;
    for (const std::string& symbol : symbols_) {
      if (open_.contains(symbol) || plan_.sizes.contains(symbol)) continue;
      if (const auto it = sampled_.find(symbol); it != sampled_.end()) {
        fix(symbol, it->second);
      } else if (const auto usual = usual_sizes_.find(symbol); usual != usual_sizes_.end()) {
        fix(symbol, usual->second);
      } else {
        unknown.insert(symbol);
      }
    }
    if (unknown.empty()) return;
    fail(ErrorKind::kInvalidArgument,
         "[export] the size of {} is not known. Either say it (static_shapes; --static {}=N), or "
         "give sample inputs, or let it "
         "stay open (dynamic = true; --dynamic)",
         listed(to_list(unknown)), fmt::join(unknown, "=N,"));
  }

  /// Each size may make sense, and not all of them together.
  void check_product() const {
    constexpr double kMost = 0x1p36;
    double product = 1;
    std::vector<std::string> all;
    for (const auto& [symbol, size] : plan_.sizes) {
      product *= static_cast<double>(size);
      all.push_back(fmt::format("{} = {}", symbol, size));
    }
    if (product <= kMost) return;
    fail(
        ErrorKind::kInvalidArgument,
        "[export] {}: together {:.2g} places, and a tensor holds some numbers for each: no machine "
        "has the memory for that",
        listed(all), product);
  }

  void check_samples() const {
    for (const auto& [symbol, size] : sampled_) {
      if (const auto it = plan_.sizes.find(symbol); it != plan_.sizes.end() && it->second != size) {
        fail(ErrorKind::kInvalidArgument,
             "[export] '{}' is {} in the sample inputs and {} in static_shapes", symbol, size,
             it->second);
      }
      if (const auto it = plan_.ranges.find(symbol); it != plan_.ranges.end()) {
        if (size >= it->second.min && size <= it->second.max.value_or(size)) continue;
        fail(ErrorKind::kInvalidArgument,
             "[export] '{}' is {} in the sample inputs, outside of its range, {}", symbol, size,
             text_of(it->second));
      }
    }
  }

  void make_examples() {
    constexpr int64_t kBatch = 2, kLength = 8;
    plan_.examples = plan_.sizes;
    plan_.examples.insert(sampled_.begin(), sampled_.end());
    for (const auto& [symbol, size] : usual_sizes_) {
      if (symbols_.contains(symbol)) plan_.examples.emplace(symbol, size);
    }
    for (const std::string& symbol : symbols_) {
      int64_t size = symbol == "batch" ? kBatch : kLength;
      if (const auto it = ranges_.find(symbol); it != ranges_.end())
        size = within(it->second, std::max(size, some_pieces(it->second)));
      if (const auto it = plan_.ranges.find(symbol); it != plan_.ranges.end())
        size = within(it->second, size);
      plan_.examples.emplace(symbol, size);
    }
  }

  const NamedTensors& sample_inputs_;
  const ExportOptions& config_;
  const std::map<std::string, int64_t>& usual_sizes_;
  std::map<std::string, std::vector<const ir::Input*>> inputs_;  // by name: one a component
  std::map<std::string, Range> ranges_;                          // as the graphs have them
  std::set<std::string> symbols_, growing_, open_;
  std::map<std::string, std::string> names_, symbol_of_;  // of dynamic_shapes
  std::map<std::string, int64_t> sampled_;
  ShapePlan plan_;
};

}  // namespace

ShapePlan plan_shapes(const ir::Program& program, const NamedTensors& sample_inputs,
                      const ExportOptions& config,
                      const std::map<std::string, int64_t>& usual_sizes) {
  return Planner(program, sample_inputs, config, usual_sizes).plan();
}

void apply_shapes(const ShapePlan& plan, ir::Program& program) {
  for (ir::Component& component : program.components) {
    std::set<std::string> symbols;
    for (const ir::Node* node : component.graph->inputs()) {
      for (const Dim& dim : ir::as<ir::Input>(*node->op).shape.dims) symbols.merge(dim.symbols());
    }
    std::map<std::string, int64_t> sizes;
    for (const auto& [symbol, size] : plan.sizes) {
      if (symbols.contains(symbol)) sizes.emplace(symbol, size);
    }
    passes::specialize(component.graph, sizes);
    for (const auto& [symbol, range] : plan.ranges) {
      if (symbols.contains(symbol)) component.graph->set_range(symbol, range);
    }
  }
}

}  // namespace tranship::exporters

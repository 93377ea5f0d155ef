#include "exporters/compare_inputs.h"

#include <algorithm>

#include "base/json.h"
#include "exporters/compare_sides.h"
#include "exporters/feed.h"
#include "exporters/ports.h"

namespace tranship::exporters {
namespace {

/// SplitMix64: the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t end) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(std::max<int64_t>(end, 1)));
  }
  /// In [-1, 1).
  double number() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }

 private:
  uint64_t state_;
};

using Sizes = std::map<std::string, int64_t>;

constexpr int64_t kEmptySlots = 2;  // of a static cache, behind the tokens
constexpr int64_t kImageSide = 64;  // of images of any height and width

Sizes sizes_of_axes(const Sizes& fixed, const InputSizes& wanted) {
  Sizes sizes = fixed;
  if (wanted.batch) sizes["batch"] = *wanted.batch;
  sizes.emplace("batch", 2);
  sizes.emplace("past", wanted.past);
  sizes.emplace("cache_length", wanted.past + wanted.sequence + kEmptySlots);
  for (const char* side : {"height", "width"}) sizes.emplace(side, kImageSide);
  return sizes;
}

/// The size of "2", "batch", "past + 1"; of a name that somebody else gave, that of a sequence.
int64_t size_of_axis(const std::string& axis, const Sizes& sizes, int64_t sequence) {
  if (const std::optional<int64_t> fixed = fixed_size(axis)) return *fixed;
  const std::optional<ir::Dim> dim = declared(axis);
  if (!dim) return sequence;
  Sizes all = sizes;
  for (const std::string& symbol : dim->symbols()) all.emplace(symbol, sequence);
  return dim->evaluate(all);
}

/// How many kinds of an integer input there are; nothing for those that nobody knows.
std::optional<int64_t> num_kinds(const std::string& input, const std::string& config) {
  if (input.ends_with("input_ids")) return config_number(config, "vocab_size", 2);
  if (input == "token_type_ids") return config_number(config, "type_vocab_size", 1);
  return std::nullopt;
}

/// Hides the second token of the last sequence, if there is a third.
void mask_one(const std::set<std::string>& defaults, NamedTensors& inputs) {
  const auto mask = inputs.find("attention_mask");
  if (mask == inputs.end() || defaults.contains(mask->first)) return;
  Tensor& tensor = mask->second;
  const int64_t length = tensor.shape().back(),
                rows = tensor.num_elements() / std::max<int64_t>(length, 1);
  // One row a sequence; of a mask of slots, one a query.
  const int64_t hidden = tensor.shape().size() == 2 ? 1 : tensor.shape()[2];
  for (int64_t row = rows - hidden; length > 2 && row >= 0 && row < rows; ++row)
    tensor.set(row * length + 1, 0);
}

}  // namespace

int64_t config_number(const std::string& config, const std::string& key, int64_t absent) {
  if (config.empty()) return absent;
  const Json json = parse_json("verify", "config.json", config);
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : absent;
}

NamedTensors make_inputs(const InputPlan& plan, const InputSizes& sizes) {
  Random random(sizes.seed);
  const Sizes axes = sizes_of_axes(plan.fixed_sizes, sizes);
  NamedTensors given;
  for (const Port& port : plan.program.inputs()) {
    const std::optional<int64_t> kinds = num_kinds(port.name, plan.config);
    if (port.name.ends_with(kCounter)) {
      Tensor counter(port.dtype, {});
      counter.set(0, static_cast<double>(sizes.past));
      given.emplace(port.name, std::move(counter));
      continue;
    }
    if (plan.defaults.contains(port.name) || (optional_inputs().contains(port.name) && !kinds))
      continue;
    std::vector<int64_t> shape;
    for (const std::string& axis : port.shape)
      shape.push_back(size_of_axis(axis, axes, sizes.sequence));
    Tensor tensor(port.dtype, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.set(i, is_floating(port.dtype) ? random.number()
                    : kinds                 ? static_cast<double>(random.below(*kinds))
                                            : 1.0);  // what is a mask, an index, a divisor
    }
    given.emplace(port.name, std::move(tensor));
  }
  NamedTensors all = feed(plan.component, plan.program.inputs(), given).tensors;
  mask_one(plan.defaults, all);
  return all;
}

}  // namespace tranship::exporters

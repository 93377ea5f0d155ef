// What an artifact computes, beside a reference on the same inputs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "exporters/feed.h"
#include "exporters/verify.h"
#include "interpret/interpret.h"
#include "tasks/task.h"

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

int64_t size_of_axis(const std::string& axis, const Inputs& inputs) {
  if (!axis.empty() && axis.find_first_not_of("0123456789") == axis.npos) return std::stoll(axis);
  if (axis == "batch") return inputs.batch;
  if (axis == "past") return inputs.past;
  if (axis == "height" || axis == "width") return inputs.image_side;
  return inputs.sequence;
}

bool ends_with_ids(const std::string& name) { return name.ends_with("input_ids"); }

/// eps of the dtype that the artifact computes in.
double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

OutputVerdict difference(const std::string& component, const std::string& name, const Tensor& found,
                         const Tensor& reference, double unit) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  OutputVerdict verdict{component, name};
  for (int64_t i = 0; i < reference.num_elements(); ++i)
    verdict.largest_reference = std::max(verdict.largest_reference, std::abs(reference.at(i)));
  verdict.tolerance = unit * verdict.largest_reference;
  if (found.shape() != reference.shape()) verdict.largest_difference = kInfinity;
  for (int64_t i = 0; i < reference.num_elements() && found.shape() == reference.shape(); ++i) {
    const double apart = std::abs(found.at(i) - reference.at(i));
    verdict.largest_difference =
        std::isnan(apart) ? kInfinity : std::max(verdict.largest_difference, apart);
  }
  return verdict;
}

/// The longest sum: the widest row of a matrix, or of a convolution's window.
int64_t longest_sum_of(const ir::Program& program) {
  int64_t longest = 1;
  for (const auto& [name, source] : program.parameters) {
    if (source->shape().size() >= 2) longest = std::max(longest, source->shape().back());
  }
  for (const ir::Component& component : program.components) {
    for (const ir::Node& node : component.graph->nodes()) {
      if (node.kind() != ir::OpKind::kConv) continue;
      const std::vector<int64_t> window = component.graph->type(node.inputs[1]).shape.sizes();
      longest = std::max(longest, std::accumulate(window.begin() + 1, window.end(), int64_t{1},
                                                  std::multiplies<>()));
    }
  }
  return longest;
}

int64_t vocab_size_of(const ExportedModel& model) {
  if (model.config().empty()) return 2;
  const Json config = parse_json("verify", "config.json", model.config());
  const auto size = config.find("vocab_size");
  return size != config.end() && size->is_number_integer() ? size->get<int64_t>() : 2;
}

}  // namespace

NamedTensors make_inputs(const std::string& component, const ExportedProgram& program,
                         int64_t vocab_size, const Inputs& inputs) {
  Random random(inputs.seed);
  NamedTensors given;
  for (const Port& port : program.inputs()) {
    const bool is_cache = is_floating(port.dtype);
    if (!is_cache && !ends_with_ids(port.name)) continue;  // gets its default below
    std::vector<int64_t> shape;
    for (const std::string& axis : port.shape) shape.push_back(size_of_axis(axis, inputs));
    Tensor tensor(port.dtype, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.set(i, is_cache ? random.number() : static_cast<double>(random.below(vocab_size)));
    }
    given.emplace(port.name, std::move(tensor));
  }
  NamedTensors all = feed(component, program.inputs(), given).tensors;
  for (auto& [name, tensor] : all) {
    const bool is_mask = name.ends_with("attention_mask") && tensor.shape().size() == 2;
    if (is_mask && tensor.shape()[0] > 1 && tensor.shape()[1] > 2)
      tensor.set(tensor.shape()[1] + 1, 0);
  }
  return all;
}

std::vector<OutputVerdict> compare(const ExportedModel& model, const Runner& found,
                                   const Runner& reference, int64_t longest_sum,
                                   const Inputs& inputs) {
  std::vector<OutputVerdict> verdicts;
  for (const auto& [name, component] : model.components()) {
    const DType dtype = find_dtype(component.metadata.export_dtype).value_or(DType::kF32);
    const double unit = 4 * epsilon(dtype) * std::sqrt(static_cast<double>(longest_sum));
    const NamedTensors given = make_inputs(name, component.program, vocab_size_of(model), inputs);
    const NamedTensors expected = reference(name, given);
    const NamedTensors outputs = found(name, given);
    for (const auto& [output, tensor] : expected) {
      const auto it = outputs.find(output);
      verdicts.push_back(
          difference(name, output, it == outputs.end() ? Tensor() : it->second, tensor, unit));
    }
  }
  return verdicts;
}

Reference reference_of(const ExportedModel& model, const Checkpoint& checkpoint, const Sink& sink) {
  const ExportMetadata& metadata = model.components().front().second.metadata;
  const OnnxConfig config = OnnxConfig::from_json(metadata.export_config);
  const DType dtype = find_dtype(metadata.export_dtype).value_or(DType::kF32);
  std::vector<std::string> taken;
  const std::set<std::string> known = {"attention_mask", "token_type_ids", "position_ids",
                                       "decoder_attention_mask"};
  for (const auto& [name, component] : model.components()) {
    for (const Port& port : component.program.inputs()) {
      if (known.contains(port.name)) taken.push_back(port.name);
    }
  }
  const tasks::TaskOptions options = {.dtype = dtype,
                                      .architecture = metadata.architecture,
                                      .graph_inputs = taken,
                                      .cache_name = config.cache_name,
                                      .ignored_config_keys = config.ignored_config_keys};
  const bool generates = model.components().size() > 1;
  const auto made = std::make_shared<const tasks::TaskProgram>(
      generates ? tasks::generation(checkpoint.data(), options, sink)
                : tasks::forward(checkpoint.data(), options, sink));
  return {.runner =
              [made](const std::string& component, const NamedTensors& inputs) {
                return interpret(made->program, component, inputs);
              },
          .longest_sum = longest_sum_of(made->program)};
}

}  // namespace tranship::exporters

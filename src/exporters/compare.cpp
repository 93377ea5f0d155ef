#include "exporters/compare.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "exporters/compare_sides.h"
#include "exporters/ports.h"

namespace tranship::exporters {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The tensor as often as it stands in `whole`: passes leave repeats out where they can. As it is
/// if it cannot be spread.
Tensor repeated(const Tensor& tensor, const Tensor& whole) {
  const std::vector<int64_t>& to = whole.shape();
  std::vector<int64_t> from = tensor.shape();
  if (from == to || from.size() > to.size()) return tensor;
  from.insert(from.begin(), to.size() - from.size(), 1);
  for (size_t i = 0; i < to.size(); ++i) {
    if (from[i] != to[i] && from[i] != 1) return tensor;
  }
  Tensor out(tensor.dtype(), to);
  for (int64_t place = 0; place < out.num_elements(); ++place) {
    int64_t rest = place, at = 0, step = 1;
    for (size_t i = to.size(); i-- > 0;) {
      at += from[i] == 1 ? 0 : rest % to[i] * step;
      step *= from[i];
      rest /= to[i];
    }
    out.set(place, tensor.at(at));
  }
  return out;
}

/// Results that a layer rounds one after the other.
constexpr double kRoundings = 16;

/// The tolerance for a reference whose largest number is 1: 4 (eps32 sqrt(K L) + eps16 sqrt(16 L)),
/// K the longest sum, L the number of layers. Sums are kept in f32 by all runtimes; what a coarser
/// dtype adds is that each result is rounded to it. eps16: of f16 or bf16, whichever of the sides
/// is coarser; nothing if both compute in f32.
double tolerance_of_one(const Side& found, const Side& reference, int64_t num_layers) {
  double eps16 = 0;
  for (const Side* side : {&found, &reference}) {
    if (side->dtype == DType::kF16) eps16 = std::max(eps16, 0x1p-10);
    if (side->dtype == DType::kBF16) eps16 = 0x1p-7;
  }
  const auto layers = static_cast<double>(std::max<int64_t>(num_layers, 1));
  const double sums = std::sqrt(static_cast<double>(reference.longest_sum) * layers);
  return 4 *
         (std::numeric_limits<float>::epsilon() * sums + eps16 * std::sqrt(kRoundings * layers));
}

/// The largest difference, over the elements in their order: a module's result may be a matrix on
/// one side and have its batch apart on the other.
double largest_difference(const Tensor& found, const Tensor& reference) {
  if (found.num_elements() != reference.num_elements()) return kInfinity;
  double largest = 0;
  for (int64_t i = 0; i < reference.num_elements(); ++i) {
    const double a = found.at(i), b = reference.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;  // infinities too
    const double apart = std::abs(a - b);
    if (std::isnan(apart)) return kInfinity;
    largest = std::max(largest, apart);
  }
  return largest;
}

/// How many slots of a static cache's buffer hold something: what stands behind them is nobody's,
/// and kernels leave it out. Nothing for what is no such buffer.
std::optional<int64_t> taken_slots(const std::string& name, const NamedTensors& outputs) {
  for (const std::string_view part : {".keys", ".values"}) {
    if (!name.ends_with(part)) continue;
    const std::string layer = name.substr(0, name.size() - part.size());
    const auto counter = outputs.find(layer + std::string(kCounter));
    if (counter != outputs.end() && counter->second.num_elements() == 1)
      return static_cast<int64_t>(counter->second.at(0));
  }
  return std::nullopt;
}

/// The first slots of a buffer [batch, heads, slots, size]; all of what has no more.
Tensor first_slots(const Tensor& buffer, int64_t count) {
  std::vector<int64_t> shape = buffer.shape();
  if (shape.size() != 4 || count < 0 || count >= shape[2]) return buffer;
  const int64_t row = shape[2] * shape[3], kept = count * shape[3];
  shape[2] = count;
  Tensor out(buffer.dtype(), shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) out.set(i, buffer.at(i / kept * row + i % kept));
  return out;
}

/// One comparison of one component.
class Comparer {
 public:
  /// unit: the tolerance for a reference whose largest number is 1.
  Comparer(std::string component, double unit) : component_(std::move(component)), unit_(unit) {}

  Difference of(const std::string& name, const Tensor& found, const Tensor& reference) const {
    Difference result{component_, name};
    for (int64_t i = 0; i < reference.num_elements(); ++i) {
      const double size = std::abs(reference.at(i));
      if (std::isfinite(size)) result.largest_reference = std::max(result.largest_reference, size);
    }
    result.tolerance = unit_ * result.largest_reference;
    result.largest_difference = largest_difference(found, reference);
    return result;
  }

  std::vector<Difference> of_outputs(const NamedTensors& found,
                                     const NamedTensors& reference) const {
    std::vector<Difference> out;
    for (const auto& [name, tensor] : reference) {
      const auto it = found.find(name);
      const bool fits = it != found.end() && it->second.shape() == tensor.shape();
      const int64_t taken = taken_slots(name, reference).value_or(-1);
      out.push_back(fits ? of(name, first_slots(it->second, taken), first_slots(tensor, taken))
                         : lacking(name));
    }
    for (const auto& [name, tensor] : found) {
      if (!reference.contains(name)) out.push_back(lacking(name));
    }
    return out;
  }

  std::vector<Difference> of_modules(const Computed& found, const Computed& reference) const {
    std::vector<Difference> out;
    const std::map<std::string, Tensor> known(reference.modules.begin(), reference.modules.end());
    for (const auto& [path, tensor] : found.modules) {
      const auto it = known.find(path);
      if (it != known.end()) out.push_back(of(path, repeated(tensor, it->second), it->second));
    }
    return out;
  }

 private:
  Difference lacking(const std::string& name) const { return {component_, name, kInfinity}; }

  std::string component_;
  double unit_;
};

/// Optional inputs that a side does not take, though the other might.
void add_lacking(const Side& side, std::set<std::string>& lacking) {
  std::set<std::string> absent = optional_inputs();
  for (const auto& [component, ports] : side.inputs) {
    for (const Port& port : ports) absent.erase(port.name);
  }
  lacking.merge(absent);
}

/// The program, with the other side's names and sizes for axes that are open in it: a .pt2 has
/// names without a meaning, s0 and s1.
ExportedProgram with_axes_of(const std::vector<Port>& other, const ExportedProgram& program) {
  std::vector<Port> inputs = program.inputs();
  for (Port& input : inputs) {
    const auto known = std::ranges::find(other, input.name, &Port::name);
    if (known == other.end() || known->shape.size() != input.shape.size()) continue;
    for (size_t i = 0; i < input.shape.size(); ++i) {
      if (!fixed_size(input.shape[i])) input.shape[i] = known->shape[i];
    }
  }
  return {std::move(inputs), program.outputs(), program.num_nodes()};
}

/// As the program gives them; what it does not give last.
std::vector<Difference> in_order(std::vector<Difference> outputs, const ExportedProgram& program) {
  const auto place = [&](const Difference& d) {
    return std::ranges::find(program.outputs(), d.name, &Port::name) - program.outputs().begin();
  };
  std::ranges::stable_sort(outputs, {}, place);
  return outputs;
}

}  // namespace

Comparison compare(const ExportedModel& model, const Side& found, const Side& reference,
                   const InputSizes& sizes) {
  const int64_t layers = config_number(model.config(), "num_hidden_layers", 1);
  const double unit = tolerance_of_one(found, reference, layers);
  std::map<std::string, int64_t> fixed = reference.fixed_sizes;
  fixed.insert(found.fixed_sizes.begin(), found.fixed_sizes.end());
  std::set<std::string> lacking;
  for (const Side* side : {&found, &reference}) add_lacking(*side, lacking);
  Comparison all;
  for (const auto& [name, component] : model.components()) {
    const auto known = reference.inputs.find(name);
    const ExportedProgram program = known == reference.inputs.end()
                                        ? component.program
                                        : with_axes_of(known->second, component.program);
    const NamedTensors inputs = make_inputs({.component = name,
                                             .program = program,
                                             .config = model.config(),
                                             .fixed_sizes = fixed,
                                             .defaults = lacking},
                                            sizes);
    const Computed expected = reference.run(name, inputs), outputs = found.run(name, inputs);
    const Comparer comparer(name, unit);
    std::ranges::move(in_order(comparer.of_outputs(outputs.outputs, expected.outputs), program),
                      std::back_inserter(all.outputs));
    std::ranges::move(comparer.of_modules(outputs, expected), std::back_inserter(all.modules));
  }
  return all;
}

}  // namespace tranship::exporters

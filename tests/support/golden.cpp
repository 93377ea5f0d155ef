#include "support/golden.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"

namespace tranship::testing {
namespace {

std::filesystem::path folder() {
  return std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/golden/logits";
}

/// Numbers in nested lists: i64, or f32 if one of them has a point.
Tensor read_tensor(const Json& json) {
  std::vector<int64_t> shape;
  for (const Json* at = &json; at->is_array(); at = &at->at(0)) shape.push_back(std::ssize(*at));
  const Json flat = json.flatten();
  const bool is_float =
      std::any_of(flat.begin(), flat.end(), [](const Json& v) { return v.is_number_float(); });
  Tensor tensor(is_float ? DType::kF32 : DType::kI64, shape);
  int64_t i = 0;
  for (const Json& v : flat) tensor.set(i++, v.get<double>());
  return tensor;
}

/// What hash_weights.numbers() makes.
Tensor hash_numbers(const Json& json) {
  const auto shape = json.at("shape").get<std::vector<int64_t>>();
  Tensor tensor(DType::kF32, shape);
  const Tensor vector = read_all(
      *hash_source(json.at("numbers").get<std::string>(), DType::kF32, {tensor.num_elements()}));
  for (size_t i = 0; i < tensor.f32().size(); ++i) tensor.f32()[i] = 10 * vector.f32()[i];
  return tensor;
}

GoldenCall read_call(const Json& json, const std::string& component) {
  GoldenCall call;
  call.component = json.value("component", component);
  for (const auto& [name, rows] : json.at("inputs").items())
    call.inputs.emplace(name, rows.is_object() ? hash_numbers(rows) : read_tensor(rows));
  for (const auto& [name, output] : json.at("outputs").items()) {
    ExpectedOutput expected;
    expected.shape = output.at("shape").get<std::vector<int64_t>>();
    if (output.contains("positions"))
      expected.positions = output.at("positions").get<std::vector<int64_t>>();
    expected.values = output.at("values").get<std::vector<float>>();
    call.outputs.emplace(name, std::move(expected));
  }
  return call;
}

/// The widest layer. Errors: out_of_range for a config without one of these keys.
int64_t longest_sum(const Json& config) {
  const auto widest = [&](const char* a, const char* b) {
    return std::max(config.at(a).get<int64_t>(), config.at(b).get<int64_t>());
  };
  if (config.contains("state_size")) {  // Mamba's inner size, and the steps of a scan
    const int64_t inner =
        config.at("hidden_size").get<int64_t>() * config.at("expand").get<int64_t>();
    return std::max<int64_t>(inner, 64);
  }
  if (config.contains("patch_size")) {
    const Json& size = config.at("patch_size");
    const auto height = (size.is_array() ? size.at(0) : size).get<int64_t>();
    const auto width = (size.is_array() ? size.at(1) : size).get<int64_t>();
    const auto channels = config.at("num_channels").get<int64_t>();
    return std::max(widest("hidden_size", "intermediate_size"), channels * height * width);
  }
  if (config.contains("d_ff")) return widest("d_model", "d_ff");
  if (config.contains("decoder_ffn_dim"))
    return std::max(widest("d_model", "encoder_ffn_dim"), widest("d_model", "decoder_ffn_dim"));
  return widest("hidden_size", "intermediate_size");
}

}  // namespace

std::vector<std::string> golden_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

GoldenCase read_golden(const std::string& name) {
  const Json json = parse_json("golden", name, read_text(folder() / (name + ".json")));
  GoldenCase golden;
  golden.name = name;
  golden.config_json = json.at("config").dump();
  golden.architecture = json.at("config").at("architectures").at(0);
  golden.generation = json.at("task") == "generation";
  if (json.contains("absent_tensors"))
    golden.absent_tensors = json.at("absent_tensors").get<std::vector<std::string>>();
  int64_t longest_sequence = 1;
  if (json.contains("own_tensors"))
    golden.own_tensors = json.at("own_tensors").get<std::map<std::string, std::vector<int64_t>>>();
  for (const Json& run : json.at("runs")) {
    std::vector<GoldenCall> calls;
    if (golden.generation) {
      for (const Json& step : run.at("steps"))
        calls.push_back(read_call(step, calls.empty() ? "prefill" : "decode"));
    } else {
      calls.push_back(read_call(run, "model"));
    }
    for (const GoldenCall& call : calls) {
      for (const auto& [input, tensor] : call.inputs)
        longest_sequence = std::max(longest_sequence, tensor.shape().back());
    }
    golden.runs.push_back(std::move(calls));
  }
  golden.longest_reduction = std::max(longest_sum(json.at("config")), longest_sequence);
  return golden;
}

CheckpointData golden_checkpoint(const GoldenCase& golden) {
  const CheckpointData synthetic = Checkpoint::synthetic(golden.config_json).data();
  if (golden.absent_tensors.empty() && golden.own_tensors.empty()) return synthetic;
  // A checkpoint with files' manners: what is not in its index is not there.
  const tasks::TaskProgram all = tasks::forward(synthetic, {});
  CheckpointData partial = synthetic;
  partial.kind = CheckpointKind::kSafetensors;
  for (const auto& [name, source] : all.program.parameters) {
    const auto& absent = golden.absent_tensors;
    if (std::find(absent.begin(), absent.end(), name) == absent.end())
      partial.tensors.emplace(name, source);
  }
  for (const auto& [name, shape] : golden.own_tensors)
    partial.tensors.insert_or_assign(name, hash_source(name, DType::kF32, shape));
  return partial;
}

double distance(const Tensor& found, const ExpectedOutput& expected, int64_t longest_reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (found.shape() != expected.shape) return kInfinity;
  double largest = 0;
  for (const float v : expected.values)
    largest = std::max(largest, std::abs(static_cast<double>(v)));
  const double tolerance = 4 * std::numeric_limits<float>::epsilon() *
                           std::sqrt(static_cast<double>(longest_reduction)) * largest;
  const int64_t rows = expected.shape.at(0),
                places = expected.shape.size() > 1 ? expected.shape[1] : 1;
  const int64_t inner = rows * places == 0 ? 0 : found.num_elements() / (rows * places);
  std::vector<int64_t> positions = expected.positions;
  if (positions.empty()) {
    for (int64_t p = 0; p < places; ++p) positions.push_back(p);
  }
  if (static_cast<int64_t>(expected.values.size()) !=
      rows * static_cast<int64_t>(positions.size()) * inner)
    return kInfinity;
  double worst = 0;
  size_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (const int64_t p : positions) {
      for (int64_t i = 0; i < inner; ++i) {
        const double difference = std::abs(found.at((row * places + p) * inner + i) -
                                           static_cast<double>(expected.values[at++]));
        worst = std::isnan(difference) ? kInfinity : std::max(worst, difference);
      }
    }
  }
  return worst / tolerance;
}

}  // namespace tranship::testing

#include "nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tranship::nn {
namespace {

using Frequencies = std::vector<double>;

/// The object that holds a layer type's parameters: config.json has had three places for them.
std::optional<Config> find_parameters(const Config& config, std::string_view layer_type) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const std::optional<Config> object = config.find_object(key);
    if (!object || object->keys().empty()) continue;
    config.ignore(
        {"rope_parameters"});  // beside a rope_scaling it does not count, as in Transformers
    bool nested = false;
    for (const char* type : {"full_attention", "sliding_attention"}) {
      nested |= object->has(type) || object->is_null(type);
      object->find_object(type);
    }
    if (!nested) return object;
    if (std::optional<Config> own = object->find_object(layer_type)) return own;
    fail(ErrorKind::kUnsupported,
         "[config] {}: there are parameters for other layers and none for '{}', which the model "
         "has: layers without rotary embeddings cannot be built",
         object->where(), layer_type);
  }
  return std::nullopt;
}

void need_positive(const Config& p, std::string_view key, double value) {
  if (value > 0) return;
  fail(ErrorKind::kInvalidArgument, "[config] {}: {} is {}, expected a positive number", p.where(),
       key, value);
}

void read_scaling(const Config& p, RopeParameters& r) {
  if (r.rope_type == "yarn") {
    r.mscale = p.find_number("mscale");
    r.mscale_all_dim = p.find_number("mscale_all_dim");
    r.beta_fast = p.number("beta_fast", 32);
    r.beta_slow = p.number("beta_slow", 1);
    r.truncate = p.boolean("truncate", true);
  }
  if (r.rope_type == "yarn" || r.rope_type == "longrope")
    r.attention_factor = p.find_number("attention_factor");
  if (r.rope_type == "longrope") {
    r.long_factor = p.numbers("long_factor");
    r.short_factor = p.numbers("short_factor");
  }
  if (r.rope_type == "llama3") {
    r.low_freq_factor = p.number("low_freq_factor");
    r.high_freq_factor = p.number("high_freq_factor");
  }
}

}  // namespace

RopeParameters read_rope_parameters(const Config& config, std::string_view layer_type,
                                    int64_t max_position_embeddings) {
  RopeParameters r;
  r.rope_theta = config.number("rope_theta", 10000);
  need_positive(config, "rope_theta", r.rope_theta);
  config.require("partial_rotary_factor", int64_t{1});  // all of a head is rotated
  const std::optional<Config> found = find_parameters(config, layer_type);
  if (!found) return r;
  const Config& p = *found;
  const std::string older = p.text("type", "default");
  r.rope_type = p.text("rope_type", older);
  if (r.rope_type == "su") r.rope_type = "longrope";
  r.rope_theta = p.number("rope_theta", r.rope_theta);
  need_positive(p, "rope_theta", r.rope_theta);
  p.require("partial_rotary_factor", int64_t{1});
  if (r.rope_type == "default") {
    p.ignore({"factor", "original_max_position_embeddings"});
    return r;
  }
  static constexpr std::string_view kKnown[] = {"linear", "dynamic", "yarn", "longrope", "llama3"};
  if (std::find(std::begin(kKnown), std::end(kKnown), r.rope_type) == std::end(kKnown)) {
    fail(ErrorKind::kUnsupported,
         "[config] {}: rope_type '{}'; known are default, linear, dynamic, yarn, longrope, llama3",
         p.where(), r.rope_type);
  }
  // A value beside rope_scaling wins over one inside it, as in Transformers.
  const int64_t inside = p.integer("original_max_position_embeddings", max_position_embeddings);
  r.original_max_position_embeddings = config.integer("original_max_position_embeddings", inside);
  const std::optional<double> factor = p.find_number("factor");
  if (!factor && r.rope_type != "yarn" && r.rope_type != "longrope") {
    fail(ErrorKind::kCorrupt, "[config] {}: rope_type '{}' needs a 'factor'", p.where(),
         r.rope_type);
  }
  r.factor = factor.value_or(static_cast<double>(max_position_embeddings) /
                             static_cast<double>(r.original_max_position_embeddings));
  need_positive(p, "factor", r.factor);
  read_scaling(p, r);
  return r;
}

namespace {

Frequencies default_frequencies(double theta, int64_t dim) {
  Frequencies f;
  for (int64_t i = 0; i < dim; i += 2)
    f.push_back(1 / std::pow(theta, static_cast<double>(i) / static_cast<double>(dim)));
  return f;
}

Frequencies yarn_frequencies(const RopeParameters& r, int64_t dim) {
  const auto d = static_cast<double>(dim);
  const auto correction = [&](double rotations) {
    return d *
           std::log(static_cast<double>(r.original_max_position_embeddings) /
                    (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(r.rope_theta));
  };
  double low = correction(r.beta_fast), high = correction(r.beta_slow);
  if (r.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, d - 1);
  if (low == high) high += 0.001;
  Frequencies f = default_frequencies(r.rope_theta, dim);
  for (size_t i = 0; i < f.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f[i] = f[i] / r.factor * ramp + f[i] * (1 - ramp);
  }
  return f;
}

double yarn_attention_factor(const RopeParameters& r) {
  const auto mscale = [&](double m) {
    return r.factor <= 1 ? 1.0 : 0.1 * m * std::log(r.factor) + 1;
  };
  if (r.attention_factor) return *r.attention_factor;
  const bool both = r.mscale.value_or(0) != 0 && r.mscale_all_dim.value_or(0) != 0;
  return both ? mscale(*r.mscale) / mscale(*r.mscale_all_dim) : mscale(1);
}

Frequencies llama3_frequencies(const RopeParameters& r, int64_t dim) {
  const auto length = static_cast<double>(r.original_max_position_embeddings);
  Frequencies f = default_frequencies(r.rope_theta, dim);
  for (double& v : f) {
    const double wavelength = 2 * std::numbers::pi / v;
    const bool is_long = wavelength > length / r.low_freq_factor,
               is_short = wavelength < length / r.high_freq_factor;
    const double smooth =
        (length / wavelength - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
    if (is_long) {
      v /= r.factor;
    } else if (!is_short) {
      v = (1 - smooth) * v / r.factor + smooth * v;
    }
  }
  return f;
}

Frequencies longrope_frequencies(const RopeParameters& r, const std::vector<double>& factors,
                                 int64_t dim) {
  Frequencies f = default_frequencies(r.rope_theta, dim);
  if (factors.size() != f.size()) {
    fail(ErrorKind::kCorrupt,
         "[config] rope_parameters: long_factor and short_factor need {} numbers, half of "
         "head_dim; found {}",
         f.size(), factors.size());
  }
  for (size_t i = 0; i < f.size(); ++i) {
    if (!(factors[i] > 0) || !std::isfinite(factors[i])) {
      fail(ErrorKind::kInvalidArgument,
           "[config] rope_parameters: long_factor and short_factor need positive numbers, found {}",
           factors[i]);
    }
    f[i] /= factors[i];
  }
  return f;
}

double longrope_attention_factor(const RopeParameters& r) {
  if (r.attention_factor) return *r.attention_factor;
  return r.factor <= 1
             ? 1.0
             : std::sqrt(1 + std::log(r.factor) /
                                 std::log(static_cast<double>(r.original_max_position_embeddings)));
}

Tensor frequency_table(ir::Graph& g, const Frequencies& f) {
  const std::vector<float> narrow(f.begin(), f.end());
  return ir::constant(g, tranship::Tensor::of(narrow, {static_cast<int64_t>(narrow.size())}));
}

/// The longest position of the call plus one, as an i64 scalar: what `dynamic` and `longrope` look
/// at.
Tensor sequence_length(Tensor position_ids) {
  return ir::reduce(ir::ReduceKind::kMax, position_ids, {0, 1}, false) + 1;
}

/// NTK scaling: the base grows with the sequence once it is longer than the model was made for.
Tensor dynamic_frequencies(const RopeParameters& r, Tensor position_ids, int64_t dim,
                           int64_t max_position_embeddings) {
  ir::Graph& g = position_ids.graph();
  const auto d = static_cast<double>(dim), limit = static_cast<double>(max_position_embeddings);
  const Tensor longest = ir::binary(ir::BinaryKind::kMax, sequence_length(position_ids),
                                    ir::scalar(g, DType::kI64, limit));
  const Tensor stretch = ir::cast(longest, DType::kF32) * (r.factor / limit) - (r.factor - 1);
  const Tensor base =
      ir::binary(ir::BinaryKind::kPow, stretch, ir::scalar(g, DType::kF32, d / (d - 2))) *
      r.rope_theta;
  Frequencies exponents;
  for (int64_t i = 0; i < dim; i += 2) exponents.push_back(static_cast<double>(i) / d);
  return ir::unary(ir::UnaryKind::kReciprocal,
                   ir::binary(ir::BinaryKind::kPow, base, frequency_table(g, exponents)));
}

struct Scaled {
  Tensor inv_freq;  // f32 [R/2]
  double attention_factor = 1;
};

Scaled frequencies(const RopeParameters& r, Tensor position_ids, int64_t dim,
                   int64_t max_position_embeddings) {
  ir::Graph& g = position_ids.graph();
  if (r.rope_type == "linear") {
    Frequencies f = default_frequencies(r.rope_theta, dim);
    for (double& v : f) v /= r.factor;
    return {frequency_table(g, f)};
  }
  if (r.rope_type == "dynamic")
    return {dynamic_frequencies(r, position_ids, dim, max_position_embeddings)};
  if (r.rope_type == "yarn")
    return {frequency_table(g, yarn_frequencies(r, dim)), yarn_attention_factor(r)};
  if (r.rope_type == "llama3") return {frequency_table(g, llama3_frequencies(r, dim))};
  if (r.rope_type == "longrope") {
    const auto limit = static_cast<double>(r.original_max_position_embeddings);
    const Tensor is_long = ir::compare(ir::CompareKind::kGreater, sequence_length(position_ids),
                                       ir::scalar(g, DType::kI64, limit));
    const Tensor table =
        ir::where(is_long, frequency_table(g, longrope_frequencies(r, r.long_factor, dim)),
                  frequency_table(g, longrope_frequencies(r, r.short_factor, dim)));
    return {table, longrope_attention_factor(r)};
  }
  return {frequency_table(g, default_frequencies(r.rope_theta, dim))};
}

}  // namespace

Rotary rotary(const RopeParameters& r, Tensor position_ids, int64_t head_dim,
              int64_t max_position_embeddings, DType dtype) {
  const Scaled scaled = frequencies(r, position_ids, head_dim, max_position_embeddings);
  const Tensor angles =
      ir::unsqueeze(ir::cast(position_ids, DType::kF32), {2}) * scaled.inv_freq;  // [B, S, R/2]
  Rotary tables = {ir::unary(ir::UnaryKind::kCos, angles), ir::unary(ir::UnaryKind::kSin, angles)};
  if (scaled.attention_factor != 1) {
    tables.cos = tables.cos * scaled.attention_factor;
    tables.sin = tables.sin * scaled.attention_factor;
  }
  return {ir::cast(tables.cos, dtype), ir::cast(tables.sin, dtype)};
}

Tensor rope(Tensor x, const Rotary& tables) {
  return x.graph().add_one(ir::make(ir::Rope{}), {x, tables.cos, tables.sin});
}

}  // namespace tranship::nn

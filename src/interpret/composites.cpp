#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "interpret/kernels.h"

namespace tranship {

Array run_linear(const Operands& in) {
  const Array &x = *in[0], &weight = *in[1];
  const Array* bias = in.size() > 2 ? in[2] : nullptr;
  const int64_t out_features = weight.shape[0], in_features = weight.shape[1];
  Sizes shape = x.shape;
  shape.back() = out_features;
  Array y(x.dtype, shape);
  for (int64_t row = 0; row < x.size() / in_features; ++row) {
    for (int64_t o = 0; o < out_features; ++o) {
      double sum = bias != nullptr ? (*bias)[o] : 0;
      for (int64_t i = 0; i < in_features; ++i)
        sum += x[row * in_features + i] * weight[o * in_features + i];
      y[row * out_features + o] = sum;
    }
  }
  return y;
}

namespace {

template <class F>
Array each_row(const Array& x, F f) {
  Array y(x.dtype, x.shape);
  const int64_t n = x.shape.back();
  for (int64_t row = 0; n > 0 && row < x.size() / n; ++row)
    f(&x.data[static_cast<size_t>(row * n)], &y.data[static_cast<size_t>(row * n)], n);
  return y;
}

}  // namespace

Array run_rms_norm(const Operands& in, double eps) {
  return each_row(*in[0], [&](const double* x, double* y, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * (*in[1])[i];
  });
}

Array run_layer_norm(const Operands& in, double eps) {
  const Array* bias = in.size() > 2 ? in[2] : nullptr;
  return each_row(*in[0], [&](const double* x, double* y, int64_t n) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
    const double scale = 1 / std::sqrt(variance + eps);
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - mean) * scale * (*in[1])[i] + (bias != nullptr ? (*bias)[i] : 0);
  });
}

namespace {

double activated(ir::ActivationKind fn, double v, double slope) {  // #lizard forgives: a table
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  const auto hard = [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); };
  switch (fn) {
    case ir::ActivationKind::kSilu:
      return v * sigmoid(v);
    case ir::ActivationKind::kQuickGelu:
      return v * sigmoid(1.702 * v);
    case ir::ActivationKind::kRelu:
      return std::max(v, 0.0);
    case ir::ActivationKind::kGelu:
      return 0.5 * v * (1 + std::erf(v / std::numbers::sqrt2));
    case ir::ActivationKind::kGeluTanh:
      return 0.5 * v *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
    case ir::ActivationKind::kSoftplus:
      return softplus(v);
    case ir::ActivationKind::kMish:
      return v * std::tanh(softplus(v));
    case ir::ActivationKind::kElu:
      return v > 0 ? v : std::expm1(v);
    case ir::ActivationKind::kLeakyRelu:
      return v >= 0 ? v : slope * v;
    case ir::ActivationKind::kHardSigmoid:
      return hard(v);
    case ir::ActivationKind::kHardSwish:
      return v * hard(v);
    case ir::ActivationKind::kRelu6:
      return std::clamp(v, 0.0, 6.0);
    case ir::ActivationKind::kRelu2:
      return std::max(v, 0.0) * std::max(v, 0.0);
  }
  __builtin_unreachable();
}

}  // namespace

Array run_activation(const Operands& in, ir::ActivationKind fn) {
  Array y = *in[0];
  std::vector<int64_t> slopes;
  if (in.size() > 1) slopes = broadcast_index(y.shape, in[1]->shape);
  for (int64_t i = 0; i < y.size(); ++i)
    y[i] = activated(fn, y[i], in.size() > 1 ? (*in[1])[slopes[static_cast<size_t>(i)]] : 0);
  return y;
}

Array run_moe(const Operands& in, ir::ActivationKind fn) {
  const Array &x = *in[0], &expert = *in[1], &weight = *in[2], &gate_up = *in[3], &down = *in[4];
  const int64_t size = x.shape.back(), chosen = expert.shape.back(), inner = down.shape[2];
  Array y(x.dtype, x.shape);
  std::vector<double> hidden(static_cast<size_t>(inner));
  for (int64_t i = 0; i < expert.size(); ++i) {
    const double* row = &x.data[static_cast<size_t>(i / chosen * size)];
    const int64_t e = checked_index(expert[i], gate_up.shape[0]);
    const auto product_with = [&](int64_t feature) {
      double sum = 0;
      for (int64_t j = 0; j < size; ++j)
        sum += row[j] * gate_up[(e * 2 * inner + feature) * size + j];
      return sum;
    };
    for (int64_t f = 0; f < inner; ++f)
      hidden[static_cast<size_t>(f)] = activated(fn, product_with(f), 0) * product_with(inner + f);
    for (int64_t j = 0; j < size; ++j) {
      double sum = 0;
      for (int64_t f = 0; f < inner; ++f)
        sum += hidden[static_cast<size_t>(f)] * down[(e * size + j) * inner + f];
      y[i / chosen * size + j] += weight[i] * sum;
    }
  }
  return y;
}

std::vector<Array> run_selective_scan(const Operands& in) {
  const Array &x = *in[0], &step = *in[1], &a = *in[2], &b = *in[3], &c = *in[4];
  const int64_t batch = x.shape[0], length = x.shape[1], channels = x.shape[2], size = a.shape[1];
  Array y(DType::kF32, x.shape), state = *in[5];
  for (int64_t row = 0; row < batch * length; ++row) {
    for (int64_t d = 0; d < channels; ++d) {
      double sum = 0;
      const double dt = step[row * channels + d], u = x[row * channels + d];
      for (int64_t n = 0; n < size; ++n) {
        double& s = state[(row / length * channels + d) * size + n];
        s = std::exp(dt * a[d * size + n]) * s + dt * b[row * size + n] * u;
        sum += s * c[row * size + n];
      }
      y[row * channels + d] = sum;
    }
  }
  return {std::move(y), std::move(state)};
}

Array run_rope(const Operands& in) {
  const Array &x = *in[0], &cos = *in[1], &sin = *in[2];
  const int64_t batch = x.shape[0], heads = x.shape[1], length = x.shape[2], size = x.shape[3],
                half = cos.shape[2];
  Array y = x;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t cos_table = cos.shape[0] == 1 ? 0 : b * length * half,
                  sin_table = sin.shape[0] == 1 ? 0 : b * length * half;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t s = 0; s < length; ++s) {
        const int64_t at = ((b * heads + h) * length + s) * size;
        for (int64_t i = 0; i < half; ++i) {
          const double c = cos[cos_table + s * half + i], n = sin[sin_table + s * half + i];
          y[at + i] = x[at + i] * c - x[at + half + i] * n;
          y[at + half + i] = x[at + half + i] * c + x[at + i] * n;
        }
      }
    }
  }
  return y;
}

namespace {

// One attention: which keys a query sees, and the weighted sum of their values.
class AttentionLoop {
 public:
  AttentionLoop(const Operands& in, const ir::Attention& op)
      : q_(*in[0]),
        k_(*in[1]),
        v_(*in[2]),
        mask_(in.size() > 3 ? in[3] : nullptr),
        bias_(in.size() > 4 ? in[4] : nullptr),
        op_(op) {
    if (bias_ != nullptr)
      bias_index_ =
          broadcast_index({q_.shape[0], q_.shape[1], q_.shape[2], k_.shape[2]}, bias_->shape);
  }

  Array run() {
    const int64_t batch = q_.shape[0], heads = q_.shape[1], queries = q_.shape[2];
    Array y(q_.dtype, {batch, heads, queries, v_.shape[3]});
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t s = 0; s < queries; ++s)
          attend(b, h, s,
                 &y.data[static_cast<size_t>(((b * heads + h) * queries + s) * v_.shape[3])]);
      }
    }
    return y;
  }

 private:
  bool sees(int64_t b, int64_t h, int64_t s, int64_t t) const {
    const int64_t keys = k_.shape[2], position = keys - q_.shape[2] + s;
    if (op_.causal && t > position) return false;
    if (op_.window && t <= position - *op_.window) return false;
    if (bias_ != nullptr && bias_->dtype == DType::kBool && bias_at(b, h, s, t) == 0) return false;
    return mask_ == nullptr || (*mask_)[b * keys + t] != 0;
  }

  double bias_at(int64_t b, int64_t h, int64_t s, int64_t t) const {
    const int64_t query = (b * q_.shape[1] + h) * q_.shape[2] + s;
    return (*bias_)[bias_index_[static_cast<size_t>(query * k_.shape[2] + t)]];
  }

  void attend(int64_t b, int64_t h, int64_t s, double* out) const {
    const int64_t keys = k_.shape[2], size = q_.shape[3], value_size = v_.shape[3];
    const int64_t key_head = b * k_.shape[1] + h / (q_.shape[1] / k_.shape[1]);
    const int64_t query = ((b * q_.shape[1] + h) * q_.shape[2] + s);
    std::vector<double> scores(static_cast<size_t>(keys), -std::numeric_limits<double>::infinity());
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t t = 0; t < keys; ++t) {
      if (!sees(b, h, s, t)) continue;
      double score = 0;
      for (int64_t i = 0; i < size; ++i)
        score += q_[query * size + i] * k_[(key_head * keys + t) * size + i];
      score *= op_.scale;
      if (bias_ != nullptr && bias_->dtype != DType::kBool) score += bias_at(b, h, s, t);
      scores[static_cast<size_t>(t)] = score;
      largest = std::max(largest, score);
    }
    if (std::isinf(largest)) return;  // sees nothing: zeros
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (int64_t t = 0; t < keys; ++t) {
      for (int64_t i = 0; i < value_size; ++i)
        out[i] += scores[static_cast<size_t>(t)] / sum * v_[(key_head * keys + t) * value_size + i];
    }
  }

  const Array &q_, &k_, &v_;
  const Array *mask_, *bias_;
  const ir::Attention& op_;
  std::vector<int64_t> bias_index_;
};

}  // namespace

Array run_attention(const Operands& in, const ir::Attention& attention) {
  return AttentionLoop(in, attention).run();
}

}  // namespace tranship

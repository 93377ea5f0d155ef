#include "checkpoint/checkpoint_data.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/half.h"

namespace tranship {
namespace {

constexpr int64_t kBlockElements = 16384;

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

/// SplitMix64's output number i + 1, as a number in [-1, 1).
double uniform(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30u)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27u)) * 0x94d049bb133111eb;
  z = z ^ (z >> 31u);
  return 2.0 * (static_cast<double>(static_cast<int64_t>(z >> 11u)) * 0x1p-53) - 1.0;
}

class HashSource final : public TensorSource {
 public:
  HashSource(std::string name, DType dtype, std::vector<int64_t> shape)
      : TensorSource(std::move(name), dtype, std::move(shape)), seed_(fnv1a(this->name())) {
    if (this->shape().size() >= 2) {
      double fan_in = 1;
      for (size_t axis = 1; axis < this->shape().size(); ++axis)
        fan_in *= static_cast<double>(this->shape()[axis]);
      scale_ = std::sqrt(3.0 / fan_in);
    } else if (this->shape().size() == 1 && this->name().ends_with("weight")) {
      offset_ = 1.0;
    }
  }

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check(first >= 0 && count >= 0 && first <= num_elements() && count <= num_elements() - first,
          "a hash tensor is read past its end");
    check(out.size() == static_cast<size_t>(count) * tranship::size_bytes(dtype()),
          "a hash tensor's buffer");
    std::vector<float> block(static_cast<size_t>(std::min(count, kBlockElements)));
    for (int64_t done = 0; done < count; done += kBlockElements) {
      const auto n = static_cast<size_t>(std::min(count - done, kBlockElements));
      const auto start = static_cast<uint64_t>(first + done);
      for (size_t i = 0; i < n; ++i)
        block[i] = static_cast<float>(offset_ + scale_ * uniform(seed_, start + i));
      const size_t lost = convert(DType::kF32, std::as_bytes(std::span(block)), dtype(), out, n);
      check(lost == 0, "a hash weight does not fit in its dtype");
      out = out.subspan(n * tranship::size_bytes(dtype()));
    }
  }

 private:
  uint64_t seed_;
  double scale_ = 0.1;
  double offset_ = 0;
};

/// What a configuration says of its weights' dtype: `dtype`, or `torch_dtype` as it was called
/// before Transformers 5.
DType weights_dtype(const Config& config) {
  auto text = config.find_text("dtype");
  if (!text) text = config.find_text("torch_dtype");
  if (!text) return DType::kF32;
  const auto dtype = find_dtype(*text);
  if (!dtype) {
    fail(ErrorKind::kUnsupported,
         "[checkpoint] '{}': the dtype '{}' is not known: float32, float16 or bfloat16?",
         config.where(), *text);
  }
  return *dtype;
}

}  // namespace

TensorSourcePtr CheckpointData::find_tensor(const std::string& name,
                                            const std::vector<int64_t>& shape) const {
  if (kind == CheckpointKind::kSynthetic) return hash_source(name, weights_dtype(config), shape);
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : found->second;
}

TensorSourcePtr hash_source(std::string name, DType dtype, std::vector<int64_t> shape) {
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    fail(ErrorKind::kUnsupported,
         "[checkpoint] tensor '{}': hash weights are f32, f16 or bf16, not {}", name,
         tranship::name(dtype));
  }
  return std::make_shared<HashSource>(std::move(name), dtype, std::move(shape));
}

}  // namespace tranship

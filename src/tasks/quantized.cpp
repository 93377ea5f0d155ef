#include "tasks/quantized.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace tranship::tasks {
namespace {

/// What the names of a method's tensors end with.
struct Mark {
  std::string_view ending;
  std::string_view method;
};

constexpr auto kMarks = std::to_array<Mark>({
    {".qweight", "GPTQ or AWQ"},
    {".qzeros", "GPTQ or AWQ"},
    {".g_idx", "GPTQ"},
    {".SCB", "bitsandbytes, 8 bits"},
    {".quant_state.bitsandbytes__nf4", "bitsandbytes, nf4"},
    {".quant_state.bitsandbytes__fp4", "bitsandbytes, fp4"},
    {".weight_packed", "compressed-tensors"},
    {".weight_scale_inv", "FP8"},
    {".weight_scale", "FP8 or compressed-tensors"},
    {".W_q", "HQQ"},
    {".codebooks", "AQLM"},
});

[[noreturn]] void fail_quantized(std::string_view where, std::string_view method,
                                 std::string_view because) {
  fail(ErrorKind::kUnsupported,
       "[config] {}: {}: the checkpoint is quantized by '{}', which tranship cannot read yet: "
       "export the original checkpoint, or one saved after dequantizing",
       where, because, method);
}

std::string method_of(const Config& quantization) {
  const bool is_bitsandbytes =
      quantization.boolean("load_in_8bit", false) || quantization.boolean("load_in_4bit", false);
  return quantization.text("quant_method", is_bitsandbytes ? "bitsandbytes" : "an unnamed method");
}

}  // namespace

void refuse_quantized(const CheckpointData& checkpoint) {
  const Config& config = checkpoint.config;
  for (const char* key : {"quantization_config", "compression_config"}) {
    const std::optional<Config> quantization = config.find_object(key);
    if (quantization) fail_quantized(config.where(), method_of(*quantization), key);
  }
  for (const auto& [name, source] : checkpoint.tensors) {
    const auto* mark = std::ranges::find_if(
        kMarks, [&](const Mark& m) { return std::string_view(name).ends_with(m.ending); });
    if (mark != kMarks.end())
      fail_quantized(checkpoint.path.string(), mark->method, "there is a tensor '" + name + "'");
  }
}

bool holds_numbers(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 ||
         dtype == DType::kF64;
}

}  // namespace tranship::tasks

// Times of the decode loop for bench/generation.sh, one line of numbers.
// usage: bench_steps ARTIFACT loop PROMPT TEXT            tokens/s of prompt and text, loop's share
// in %
//        bench_steps ARTIFACT step SEEN STEPS CAPACITY    milliseconds of a step, the median
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "generation/onnx_model.h"
#include "tranship/error.h"
#include "tranship/generation.h"

namespace tranship {
namespace {

std::vector<int64_t> made_up_ids(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(5 + i * 37 % 900);
  return ids;
}

void time_loop(const char* artifact, int64_t prompt_length, int64_t num_tokens) {
  Generator generator = Generator::open(artifact);
  const std::vector<int64_t> prompt = made_up_ids(prompt_length);
  const GenerationStats stats =
      generator.generate(std::span(&prompt, 1), {.max_new_tokens = num_tokens}).stats;
  const double seconds = stats.prefill_seconds + stats.decode_seconds;
  std::printf("%.2f %.2f %.3f\n", stats.prefill_tokens_per_second(),
              stats.decode_tokens_per_second(), 100 * (1 - stats.runtime_seconds / seconds));
}

void time_steps(const char* artifact, int64_t seen, int64_t num_steps, int64_t capacity) {
  const auto model = generation::open_onnx_model(ExportedModel::from_pretrained(artifact), {}, {});
  const std::vector<int64_t> prompt = made_up_ids(seen);
  model->prefill(generation::pad_left(std::span(&prompt, 1), 0));
  model->reserve(capacity);
  std::vector<double> times;
  for (int64_t i = 0; i < num_steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    model->decode(std::vector<int64_t>{7});
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  std::printf("%.3f\n", times[times.size() / 2]);
}

int run(int argc, char** argv) {
  const auto number = [&](int i) { return std::stoll(argv[i]); };
  if (argc == 5 && std::strcmp(argv[2], "loop") == 0) {
    time_loop(argv[1], number(3), number(4));
  } else if (argc == 6 && std::strcmp(argv[2], "step") == 0) {
    time_steps(argv[1], number(3), number(4), number(5));
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace tranship

int main(int argc, char** argv) try {
  return tranship::run(argc, argv);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

#include "nn/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "nn/layers.h"

namespace tranship::nn {
namespace {

void check_buckets(const RelativeBuckets& buckets) {
  constexpr int64_t kFarthest = 65536;
  if (buckets.num_buckets >= 4 && buckets.max_distance > buckets.num_buckets / 2 &&
      buckets.max_distance <= kFarthest)
    return;
  fail(ErrorKind::kInvalidArgument,
       "[config] config.json: relative_attention_num_buckets is {}, expected at least 4; "
       "relative_attention_max_distance is {}, expected more than half of that, and at most {}",
       buckets.num_buckets, buckets.max_distance, kFarthest);
}

}  // namespace

int64_t bucket_of(int64_t distance, const RelativeBuckets& buckets) {
  const int64_t count = buckets.num_buckets / (buckets.bidirectional ? 2 : 1), exact = count / 2;
  const int64_t first = buckets.bidirectional && distance > 0 ? count : 0;
  distance = buckets.bidirectional ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  if (distance < exact) return first + distance;
  const double octaves =
      std::log(static_cast<double>(buckets.max_distance) / static_cast<double>(exact));
  const float share = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      static_cast<float>(octaves);
  const auto far = static_cast<int64_t>(share * static_cast<float>(count - exact));
  return first + std::min(exact + far, count - 1);
}

Tensor relative_position_bias(Scope m, const Dim& queries, const Dim& keys, int64_t heads,
                              const RelativeBuckets& buckets, Tensor first) {
  check_buckets(buckets);
  ir::Graph& g = m.graph();
  const int64_t far = buckets.max_distance;  // beyond, all distances are one
  std::vector<int64_t> table;
  for (int64_t d = -far; d <= far; ++d) table.push_back(bucket_of(d, buckets));
  const Tensor learned = embedding(m, ir::constant(g, tranship::Tensor::of(table, {2 * far + 1})),
                                   buckets.num_buckets, heads);
  const auto limit = static_cast<double>(far);
  const Tensor query =
      ir::iota(g, queries) + (first ? first : ir::dim_to_tensor(g, keys - queries));
  Tensor distance = ir::iota(g, keys) - ir::unsqueeze(query, {1});  // [queries, keys]
  distance = ir::binary(ir::BinaryKind::kMin, distance, ir::scalar(g, DType::kI64, limit));
  distance = ir::binary(ir::BinaryKind::kMax, distance, ir::scalar(g, DType::kI64, -limit));
  const Tensor by_head = ir::transpose(learned, {1, 0});  // [heads, 2 far + 1]
  return ir::unsqueeze(ir::gather(by_head, distance + limit, 1), {0});
}

}  // namespace tranship::nn

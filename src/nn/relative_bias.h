// Positions as a learned bias on attention's scores, by distance: T5 and its kin.
#pragma once

#include "nn/scope.h"

namespace tranship::nn {

/// Near distances have a bucket each, farther ones share them, the wider the farther, up to
/// max_distance.
struct RelativeBuckets {
  int64_t num_buckets = 0;
  int64_t max_distance = 0;
  bool bidirectional = false;  // half of the buckets are for keys behind the query; else these
                               // share the nearest one's
};

/// The bucket of a key so many tokens behind the query, in f32 as Transformers computes it.
/// Source: modeling_t5.py _relative_position_bucket (5.23).
int64_t bucket_of(int64_t distance, const RelativeBuckets& buckets);

/// A bias for `heads` heads: [1, heads, queries, keys]. `first`, i64 scalar: the key at which the
/// first query stands; absent: the last query stands at the last key.
/// Weight: weight [num_buckets, heads]. Errors: invalid_argument for fewer than 4 buckets, or a
/// max_distance that is not over half of their number, or over 65 536.
Tensor relative_position_bias(Scope m, const Dim& queries, const Dim& keys, int64_t heads,
                              const RelativeBuckets& buckets, Tensor first = {});

}  // namespace tranship::nn

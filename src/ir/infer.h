// What type an op's results have, given its operands'.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tranship::ir {

struct Inference {
  std::vector<Type> results;
  std::vector<Assumption> assumptions;  // equalities that could not be proved
};

/// inputs: null for an absent one. graphs: those of an If, Loop or Scan.
/// Errors: invalid_argument with what the op expected and what it found.
Inference infer(const Op& op, std::span<const Type* const> inputs,
                std::span<const std::unique_ptr<Graph>> graphs);

/// The axis counted from the front. Errors: invalid_argument outside the rank.
int64_t normal_axis(int64_t axis, int64_t rank, std::string_view what);

}  // namespace tranship::ir

// The table of PyTorch's operators: what each is in our words.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "formats/pt2/call.h"

namespace tranship::pt2 {

/// One for each result of a call, those in a list as well; nothing for one that nobody uses.
using Results = std::vector<Reference>;
/// Errors: those of Call; unsupported for values of arguments that have no words here.
using Mapper = Results (*)(Call& call);

struct Row {
  std::string_view target;  // "aten.add.Tensor"
  Mapper map;
};

std::span<const Row> elementwise_rows();
std::span<const Row> arithmetic_rows();
std::span<const Row> activation_rows();
std::span<const Row> reduction_rows();
std::span<const Row> order_rows();
std::span<const Row> creation_rows();
std::span<const Row> view_rows();
std::span<const Row> shape_rows();
std::span<const Row> index_rows();
std::span<const Row> scatter_rows();
std::span<const Row> layer_rows();
std::span<const Row> matrix_rows();
std::span<const Row> attention_rows();
std::span<const Row> window_rows();
std::span<const Row> sampling_rows();
std::span<const Row> transformers_rows();
/// Those that take or give complex numbers.
std::span<const Row> complex_rows();

/// Null for an operator that nobody has mapped.
Mapper find_mapper(std::string_view target);
/// Where complex numbers are among the arguments or results.
Mapper find_complex_mapper(std::string_view target);

}  // namespace tranship::pt2

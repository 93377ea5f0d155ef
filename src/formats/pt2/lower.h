// A graph in ATen's words. Internal to formats/pt2.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/pt2/python_value.h"
#include "formats/pt2/tensor_meta.h"
#include "ir/program.h"

namespace tranship::pt2 {

/// What no operator here says, with the reason: all of it is collected before anything is written.
using Unsupported = std::map<std::string, std::string>;

/// Whether a composite is written as it is; others are decomposed.
bool claims(const ir::Node& node);

/// Attention without causal, window or key mask where ATen has no word for them: a dense bias in
/// their place. Equal ones become one by the passes that follow.
bool spell_out_masks(std::unique_ptr<ir::Graph>& graph);

/// A graph as model.json has it, and what it takes from the archive.
struct LoweredGraph {
  std::string graph;                    // JSON
  std::string signature;                // JSON
  std::vector<std::string> parameters;  // names of weights, in the order of their first use
  std::vector<std::pair<std::string, Tensor>> constants;  // by the name that the signature has
  size_t num_nodes = 0;
  bool is_functional = true;  // else it writes into its inputs
};

/// inputs: all of the graph's, by their ports, in the order in which Python flattens a call.
/// outputs: the same of what it gives. states: those in slots, and counters, are written in place.
/// What the graph assumes of sizes is checked by nodes.
/// Errors: unsupported for a size that no input has.
LoweredGraph lower_graph(const ir::Graph& graph, const std::vector<Leaf>& inputs,
                         const std::vector<Leaf>& outputs, const std::vector<ir::State>& states,
                         const SymbolTable& symbols, Unsupported& unsupported);

}  // namespace tranship::pt2

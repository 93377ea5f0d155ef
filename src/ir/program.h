// What an exporter writes: graphs by component, the weights they share, and the state that goes
// from call to call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor_source.h"

namespace tranship::ir {

/// Something a graph takes and gives back, to be passed to the next call: a cache.
struct State {
  enum class Kind {
    kAppend,     // each call adds entries along growth_axis; empty before the first
    kOverwrite,  // each call gives a new one of the same size; zeros before the first
    kReadOnly,   // made once, then passed on as it is: what a decoder keeps of an encoder
    kSlots,    // a buffer of fixed length along growth_axis; each call writes its entries in place,
               // from where its counter says
    kCounter,  // how many entries a buffer of slots has: a number that each call raises
  };
  std::string name;  // "past_key_values.layers.0.keys"
  Kind kind = Kind::kAppend;
  std::string input;   // the graph's input that takes it; empty in a graph that starts from nothing
  std::string output;  // the graph's output that gives it
  int64_t growth_axis = 2;
  int64_t batch_axis = 0;
};

struct Component {
  std::string name;  // "model", "prefill", "decode"
  std::unique_ptr<Graph> graph;
  std::vector<State> states;
};

struct Program {
  std::vector<Component> components;
  /// By the name that Param nodes carry, shared by all components. dtype and shape are the Param's.
  std::map<std::string, TensorSourcePtr> parameters;
};

}  // namespace tranship::ir

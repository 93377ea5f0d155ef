// Where a decoder's keys and values come from and go to: what a task hands to a model as nn::Cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/attention.h"

namespace tranship::tasks {

/// A state that a layer keeps.
struct KeptState {
  int64_t layer;
  std::string name;
  ir::Value value;
};

/// Transformers' name for how many slots of a layer are taken.
inline constexpr std::string_view kCounter = "cumulative_length";

/// An input of a graph.
ir::Value add_input(ir::Graph& graph, std::string name, DType dtype, ir::Shape shape);

/// Remembers what the layers have: all keys and values, past and new, those of the encoder, states,
/// and of a cache of slots how many are taken.
class LayerCache : public nn::Cache {
 public:
  void keep(int64_t layer, std::string_view name, ir::Value value) override {
    states_.push_back({layer, std::string(name), value});
  }
  const std::vector<nn::KeyValue>& layers() const { return layers_; }
  const std::vector<nn::KeyValue>& cross_layers() const { return cross_layers_; }
  const std::vector<KeptState>& states() const { return states_; }
  /// Of a cache of slots: the counters after the call, one a layer; and how many of the encoder's
  /// keys there are.
  const std::vector<ir::Value>& counters() const { return counters_; }
  const std::vector<ir::Value>& cross_counters() const { return cross_counters_; }

 protected:
  std::vector<nn::KeyValue> layers_, cross_layers_;
  std::vector<KeptState> states_;
  std::vector<ir::Value> counters_, cross_counters_;
};

/// Caches that begin empty: a layer's keys and values are what it has just made.
class FreshCache : public LayerCache {
 public:
  nn::KeyValue update(int64_t layer, ir::Value keys, ir::Value values) override;
  nn::KeyValue cross(int64_t layer, const ir::Shape& shape,
                     const std::function<nn::KeyValue()>& make) override;
  ir::Value state(int64_t layer, std::string_view name, const ir::Type& type) override;
};

/// Caches that come in as inputs: "input.<name>.layers.0.keys". They grow along the tokens; those
/// of the encoder stay as they are.
class GrowingCache : public LayerCache {
 public:
  /// cross_name: of the encoder's keys and values.
  GrowingCache(ir::Graph& graph, std::string name, std::string cross_name);
  nn::KeyValue update(int64_t layer, ir::Value keys, ir::Value values) override;
  nn::KeyValue cross(int64_t layer, const ir::Shape& shape,
                     const std::function<nn::KeyValue()>& make) override;
  ir::Value state(int64_t layer, std::string_view name, const ir::Type& type) override;

 private:
  ir::Value input(std::string name, DType dtype, ir::Shape shape);
  ir::Value grow(int64_t layer, std::string_view part, ir::Value added);

  ir::Graph& graph_;
  std::string name_, cross_name_;
  DType dtype_ = DType::kF32;
};

/// A cache of slots has nothing but keys and values. Errors: unsupported for anything else.
class SlotLayers : public LayerCache {
 public:
  ir::Value state(int64_t, std::string_view, const ir::Type&) override;
};

/// Caches with slots, "input.<name>.layers.0.keys" and so on: each call writes its keys and values
/// in place, from where the layer's counter says, and raises the counter. Those of an encoder stay
/// as they are.
class SlotCache : public SlotLayers {
 public:
  /// cross_name: of the encoder's keys and values.
  SlotCache(ir::Graph& graph, std::string name, std::string cross_name, ir::Dim num_slots);
  nn::KeyValue update(int64_t layer, ir::Value keys, ir::Value values) override;
  nn::KeyValue cross(int64_t layer, const ir::Shape& shape,
                     const std::function<nn::KeyValue()>& make) override;
  ir::Value first_slot() override { return counter(0); }
  ir::Dim num_slots() const override { return num_slots_; }

 private:
  ir::Value input(const std::string& name, int64_t layer, std::string_view part, DType dtype,
                  ir::Shape shape);
  ir::Value counter(int64_t layer);

  ir::Graph& graph_;
  std::string name_, cross_name_;
  ir::Dim num_slots_;
  DType dtype_ = DType::kF32;
  std::vector<ir::Value> before_;  // the counters that came in
};

/// The same before the first token: buffers are made, with zeros behind the tokens. The model sees
/// the tokens alone.
class FreshSlotCache : public SlotLayers {
 public:
  /// length: of the tokens; at most num_slots.
  FreshSlotCache(ir::Graph& graph, ir::Dim length, ir::Dim num_slots);
  nn::KeyValue update(int64_t layer, ir::Value keys, ir::Value values) override;
  nn::KeyValue cross(int64_t layer, const ir::Shape& shape,
                     const std::function<nn::KeyValue()>& make) override;
  ir::Value first_slot() override;
  ir::Dim num_slots() const override { return length_; }

 private:
  ir::Graph& graph_;
  ir::Dim length_, num_slots_;
};

}  // namespace tranship::tasks

#include "tasks/caches.h"

#include <fmt/format.h>

#include "base/error.h"
#include "ir/build.h"

namespace tranship::tasks {

ir::Value add_input(ir::Graph& graph, std::string name, DType dtype, ir::Shape shape) {
  ir::Input op;
  op.name = std::move(name);
  op.dtype = dtype;
  op.shape = std::move(shape);
  return graph.add_one(ir::make(std::move(op)), {});
}

nn::KeyValue FreshCache::update(int64_t, ir::Value keys, ir::Value values) {
  layers_.push_back({keys, values});
  return layers_.back();
}

nn::KeyValue FreshCache::cross(int64_t, const ir::Shape&,
                               const std::function<nn::KeyValue()>& make) {
  cross_layers_.push_back(make());
  return cross_layers_.back();
}

ir::Value FreshCache::state(int64_t, std::string_view, const ir::Type&) { return {}; }

GrowingCache::GrowingCache(ir::Graph& graph, std::string name, std::string cross_name)
    : graph_(graph), name_(std::move(name)), cross_name_(std::move(cross_name)) {}

ir::Value GrowingCache::input(std::string name, DType dtype, ir::Shape shape) {
  return add_input(graph_, "input." + std::move(name), dtype, std::move(shape));
}

ir::Value GrowingCache::grow(int64_t layer, std::string_view part, ir::Value added) {
  dtype_ = added.dtype();
  ir::Shape shape = added.shape();
  shape[2] = ir::Dim::symbol("past");
  const ir::Value past =
      input(fmt::format("{}.layers.{}.{}", name_, layer, part), dtype_, std::move(shape));
  return graph_.add_one(ir::make(ir::CacheAppend{}), {past, added});
}

nn::KeyValue GrowingCache::update(int64_t layer, ir::Value keys, ir::Value values) {
  layers_.push_back({grow(layer, "keys", keys), grow(layer, "values", values)});
  return layers_.back();
}

nn::KeyValue GrowingCache::cross(int64_t layer, const ir::Shape& shape,
                                 const std::function<nn::KeyValue()>&) {
  const std::string name = fmt::format("{}.layers.{}.", cross_name_, layer);
  const ir::Value keys = input(name + "keys", dtype_, shape);
  cross_layers_.push_back({keys, input(name + "values", dtype_, shape)});
  return cross_layers_.back();
}

ir::Value GrowingCache::state(int64_t layer, std::string_view name, const ir::Type& type) {
  return input(fmt::format("{}.layers.{}.{}", name_, layer, name), type.dtype, type.shape);
}

ir::Value SlotLayers::state(int64_t, std::string_view, const ir::Type&) {
  fail(ErrorKind::kUnsupported,
       "[task] a static cache holds keys and values; this model keeps something else from call to "
       "call: export it with the cache that it has (cache_implementation = dynamic)");
}

SlotCache::SlotCache(ir::Graph& graph, std::string name, std::string cross_name, ir::Dim num_slots)
    : graph_(graph),
      name_(std::move(name)),
      cross_name_(std::move(cross_name)),
      num_slots_(std::move(num_slots)) {}

ir::Value SlotCache::input(const std::string& name, int64_t layer, std::string_view part,
                           DType dtype, ir::Shape shape) {
  return add_input(graph_, fmt::format("input.{}.layers.{}.{}", name, layer, part), dtype,
                   std::move(shape));
}

nn::KeyValue SlotCache::cross(int64_t layer, const ir::Shape& shape,
                              const std::function<nn::KeyValue()>&) {
  const ir::Value keys = input(cross_name_, layer, "keys", dtype_, shape);
  cross_layers_.push_back({keys, input(cross_name_, layer, "values", dtype_, shape)});
  cross_counters_.push_back(input(cross_name_, layer, kCounter, DType::kI64, {}));
  return cross_layers_.back();
}

ir::Value SlotCache::counter(int64_t layer) {
  for (int64_t i = std::ssize(before_); i <= layer; ++i)
    before_.push_back(input(name_, i, kCounter, DType::kI64, {}));
  return before_[static_cast<size_t>(layer)];
}

nn::KeyValue SlotCache::update(int64_t layer, ir::Value keys, ir::Value values) {
  dtype_ = keys.dtype();
  const ir::Dim length = keys.shape()[2];
  const ir::Value first = counter(layer);
  const ir::Value slots = ir::unsqueeze(ir::iota(graph_, length) + first, {0, 1, 3});
  const auto written = [&](std::string_view part, ir::Value added) {
    ir::Shape shape = added.shape();
    shape[2] = num_slots_;
    const ir::Value buffer = input(name_, layer, part, added.dtype(), shape);
    ir::ScatterElements write;
    write.axis = 2;
    return graph_.add_one(ir::make(std::move(write)),
                          {buffer, ir::expand(slots, added.shape()), added});
  };
  const ir::Value all_keys = written("keys", keys);
  layers_.push_back({all_keys, written("values", values)});
  counters_.push_back(first + ir::dim_to_tensor(graph_, length));
  return layers_.back();
}

FreshSlotCache::FreshSlotCache(ir::Graph& graph, ir::Dim length, ir::Dim num_slots)
    : graph_(graph), length_(std::move(length)), num_slots_(std::move(num_slots)) {}

nn::KeyValue FreshSlotCache::update(int64_t, ir::Value keys, ir::Value values) {
  const auto with_zeros = [&](ir::Value added) {
    ir::Pad pad;
    pad.begin = {0, 0, 0, 0};
    pad.end = {0, 0, num_slots_ - length_, 0};
    return graph_.add_one(ir::make(std::move(pad)), {added});
  };
  const ir::Value buffer = with_zeros(keys);
  layers_.push_back({buffer, with_zeros(values)});
  counters_.push_back(ir::dim_to_tensor(graph_, length_));
  return {keys, values};
}

nn::KeyValue FreshSlotCache::cross(int64_t, const ir::Shape& shape,
                                   const std::function<nn::KeyValue()>& make) {
  cross_layers_.push_back(make());
  cross_counters_.push_back(ir::dim_to_tensor(graph_, shape[2]));
  return cross_layers_.back();
}

ir::Value FreshSlotCache::first_slot() { return ir::scalar(graph_, DType::kI64, 0); }

}  // namespace tranship::tasks

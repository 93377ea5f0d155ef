#include "tasks/caches.h"

#include <fmt/format.h>

namespace tranship::tasks {

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
  ir::Input op;
  op.name = "input." + std::move(name);
  op.dtype = dtype;
  op.shape = std::move(shape);
  return graph_.add_one(ir::make(std::move(op)), {});
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

}  // namespace tranship::tasks

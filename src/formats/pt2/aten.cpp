#include "formats/pt2/aten.h"

#include <map>

namespace tranship::pt2 {

namespace {

using Table = std::map<std::string_view, Mapper>;

Mapper find(const Table& table, std::string_view target) {
  const auto it = table.find(target);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace

Mapper find_mapper(std::string_view target) {
  static const Table table = [] {
    Table out;
    for (const std::span<const Row> rows :
         {elementwise_rows(), arithmetic_rows(), activation_rows(), reduction_rows(), order_rows(),
          creation_rows(), view_rows(), shape_rows(), index_rows(), scatter_rows(), layer_rows(),
          matrix_rows(), attention_rows(), window_rows(), sampling_rows(), transformers_rows()}) {
      for (const Row& row : rows) out.emplace(row.target, row.map);
    }
    return out;
  }();
  return find(table, target);
}

Mapper find_complex_mapper(std::string_view target) {
  static const Table table = [] {
    Table out;
    for (const Row& row : complex_rows()) out.emplace(row.target, row.map);
    return out;
  }();
  return find(table, target);
}

}  // namespace tranship::pt2

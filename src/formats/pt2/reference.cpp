#include "formats/pt2/reference.h"

#include "base/error.h"
#include "ir/build.h"

namespace tranship::pt2 {

using ir::Value;

Reference::Reference(Value value)
    : storage_(value ? std::make_shared<Storage>(Storage{value}) : nullptr), cached_(value) {}

Reference Reference::view(Read read, Write write) const {
  check(storage_ != nullptr, "a view of nothing");
  Reference out = *this;
  out.cached_ = read(value());
  out.cached_version_ = storage_->version;
  out.steps_.push_back(std::make_shared<const Step>(Step{std::move(read), std::move(write)}));
  return out;
}

Value Reference::value() const {
  check(storage_ != nullptr, "a tensor is read that is not there");
  if (cached_version_ != storage_->version) {
    cached_ = storage_->value;
    for (const auto& step : steps_) cached_ = step->read(cached_);
    cached_version_ = storage_->version;
  }
  return cached_;
}

void Reference::write(Value value) const {
  check(storage_ != nullptr, "a tensor is written that is not there");
  std::vector<Value> bases = {storage_->value};
  for (size_t i = 0; i + 1 < steps_.size(); ++i) bases.push_back(steps_[i]->read(bases.back()));
  cached_ = value;
  for (size_t i = steps_.size(); i > 0; --i) value = steps_[i - 1]->write(bases[i - 1], value);
  storage_->value = value;
  cached_version_ = ++storage_->version;
}

bool Reference::was_written() const { return storage_ != nullptr && storage_->version > 0; }

NumberKind kind_of(const Number& number) {
  if (std::holds_alternative<ir::Dim>(number)) return NumberKind::kInt;
  const bool is_bool = std::holds_alternative<bool>(number) ||
                       std::holds_alternative<Condition>(number) ||
                       std::holds_alternative<ComputedBool>(number);
  return is_bool ? NumberKind::kBool : NumberKind::kFloat;
}

Value to_value(ir::Graph& graph, const Number& number) {
  if (const auto* dim = std::get_if<ir::Dim>(&number)) return dim_to_tensor(graph, *dim);
  if (const auto* real = std::get_if<double>(&number)) return scalar(graph, DType::kF64, *real);
  if (const auto* truth = std::get_if<bool>(&number))
    return scalar(graph, DType::kBool, *truth ? 1 : 0);
  if (const auto* q = std::get_if<Quotient>(&number)) {
    return cast(dim_to_tensor(graph, q->numerator), DType::kF64) /
           cast(dim_to_tensor(graph, q->denominator), DType::kF64);
  }
  if (const auto* c = std::get_if<Condition>(&number))
    return compare(c->fn, dim_to_tensor(graph, c->a), dim_to_tensor(graph, c->b));
  if (const auto* computed = std::get_if<ComputedFloat>(&number)) return computed->value;
  return std::get<ComputedBool>(number).value;
}

}  // namespace tranship::pt2

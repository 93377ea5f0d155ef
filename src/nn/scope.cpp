#include "nn/scope.h"

#include "base/error.h"

namespace tranship::nn {

Parameters::Parameters(DType dtype, const TensorIndex* index) : dtype_(dtype), index_(index) {
  if (index != nullptr) names_.insert(index->names.begin(), index->names.end());
}

bool Parameters::contains_below(std::string_view prefix) const {
  const std::string start = std::string(prefix) + ".";
  const auto it = names_.lower_bound(start);
  return it != names_.end() && it->starts_with(start);
}

void Parameters::tie(const std::string& target, const std::string& source) {
  const std::string root = resolve(source);              // that of another tie, perhaps
  if (tied_.contains(target) || root == target) return;  // a second graph of the program
  if (contains(target) && contains(root) && !index_->equal(target, root)) {
    warnings_.insert(
        fmt::format("the config ties '{}' to '{}', but the checkpoint has both, with different "
                    "numbers: they stay apart, as in "
                    "Transformers. Set tie_word_embeddings to false to silence this.",
                    target, root));
    return;
  }
  if (contains(target) && !contains(root)) {
    for (auto& [name, other] : tied_) {
      if (other == root) other = target;
    }
    tied_[root] = target;
  } else {
    tied_[target] = root;
  }
}

std::string Parameters::resolve(const std::string& name) const {
  const auto it = tied_.find(name);
  return it == tied_.end() ? name : it->second;
}

void Parameters::ask(const std::string& name, const Shape& shape) {
  const auto [it, added] = asked_.try_emplace(name, shape);
  if (!added && !(it->second == shape)) {
    fail(ErrorKind::kInvalidArgument, "[model] the weight '{}' is asked for as {} and as {}", name,
         it->second.text(), shape.text());
  }
}

Scope::Scope(ir::Graph& graph, Parameters& parameters, std::string path)
    : graph_(&graph), parameters_(&parameters), path_(std::move(path)) {}

Scope Scope::operator/(std::string_view name) const {
  return Scope(*graph_, *parameters_,
               path_.empty() ? std::string(name) : path_ + "." + std::string(name));
}

void Parameters::ask_joined(const std::string& name, JoinedWeight weight) {
  joined_.try_emplace(name, std::move(weight));
}

Tensor Scope::param_node(std::string name, const Shape& shape) const {
  ir::Param op;
  op.name = name;
  op.dtype = dtype();
  op.shape = shape;
  return graph_->add_one(ir::make(std::move(op)), {}, std::move(name));
}

Tensor Scope::param(std::string_view name, const Shape& shape) const {
  const std::string resolved = parameters_->resolve((*this / name).path_);
  parameters_->ask(resolved, shape);
  return param_node(resolved, shape);
}

Tensor Scope::joined(std::string_view name, const Shape& shape,
                     const std::vector<Part>& parts) const {
  JoinedWeight weight = {shape, {}};
  for (const Part& part : parts) {
    weight.parts.push_back((*this / part.name).path_);
    parameters_->ask(weight.parts.back(), part.shape);
  }
  const std::string path = (*this / name).path_;
  parameters_->ask_joined(path, std::move(weight));
  return param_node(path, shape);
}

bool Scope::has(std::string_view name, bool otherwise) const {
  return parameters_->has_checkpoint()
             ? parameters_->contains(parameters_->resolve((*this / name).path_))
             : otherwise;
}

void Scope::tie(std::string_view name, Scope source, std::string_view source_name) const {
  parameters_->tie((*this / name).path_, (source / source_name).path_);
}

Scope Scope::base(std::string_view prefix, bool otherwise) const {
  const Scope inside = *this / prefix;
  const bool is_inside =
      parameters_->has_checkpoint() ? parameters_->contains_below(inside.path_) : otherwise;
  return is_inside ? inside : *this;
}

}  // namespace tranship::nn

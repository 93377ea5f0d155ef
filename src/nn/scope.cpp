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

Tensor Scope::param(std::string_view name, const Shape& shape) const {
  ir::Param op;
  op.name = parameters_->resolve((*this / name).path_);
  op.dtype = dtype();
  op.shape = shape;
  parameters_->ask(op.name, shape);
  const std::string node_name = op.name;
  return graph_->add_one(ir::make(std::move(op)), {}, node_name);
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

#include "formats/onnx/weight_pool.h"

#include <fmt/core.h>

#include "base/error.h"
#include "formats/onnx/model_summary.h"

namespace tranship::onnx {
namespace {

namespace fs = std::filesystem;

OrtPrepackedWeights* make_prepacked(const OrtLibrary& library) {
  OrtPrepackedWeights* made = nullptr;
  library.succeed(library.api().CreatePrepackedWeightsContainer(&made), library.path().string(),
                  "making room for weights");
  return made;
}

/// Whether the weight's bytes are what its shape needs, and within the file.
bool lies_in(const WeightInfo& weight, DType dtype, const MappedFile& file) {
  uint64_t elements = 1;
  for (const int64_t size : weight.shape) {
    if (size < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements))
      return false;
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements, size_bytes(dtype), &bytes)) return false;
  const uint64_t available = file.bytes().size();
  return bytes == weight.size_bytes && weight.offset <= available &&
         bytes <= available - weight.offset;
}

}  // namespace

WeightPool::WeightPool(const fs::path& library, const Sink& sink)
    : library_(OrtLibrary::open(library, sink)),
      prepacked_(make_prepacked(library_), {&library_.api()}) {}

const MappedFile* WeightPool::file(const fs::path& path) {
  auto& mapped = files_[path];
  std::error_code ignored;
  if (!mapped && fs::is_regular_file(fs::symlink_status(path, ignored)))
    mapped = MappedFile::open(path);
  return mapped.get();
}

void WeightPool::forget_pages() const {
  for (const auto& [path, mapped] : files_) {
    if (mapped) mapped->release(0, mapped->bytes().size());
  }
}

void WeightPool::lend(const fs::path& model, OrtSessionOptions* options) {
  for (const WeightInfo& weight : read_summary(model).weights) {
    const std::optional<DType> dtype = find_dtype(weight.dtype);
    const fs::path name = weight.data_file;
    if (name.empty() || name != name.filename() || !dtype) continue;
    const MappedFile* data = file(model.parent_path() / name);
    if (data == nullptr || !lies_in(weight, *dtype, *data)) continue;
    const std::string key = fmt::format("{} {} {}", weight.data_file, weight.offset,
                                        describe(*dtype, weight.shape, {}));
    auto value = values_.find(key);
    if (value == values_.end()) {
      const Bytes bytes = data->bytes().subspan(weight.offset, weight.size_bytes);
      // ONNX Runtime takes weights by a pointer that is not const, but does not write to them.
      auto* const first = const_cast<std::byte*>(bytes.data());
      value =
          values_.emplace(key, value_over(library_, *dtype, weight.shape, {first, bytes.size()}))
              .first;
    }
    library_.succeed(
        library_.api().AddInitializer(options, weight.name.c_str(), value->second.handle()),
        model.string(), "sharing a weight");
  }
}

}  // namespace tranship::onnx

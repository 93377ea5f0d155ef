#include "formats/onnx/ort_value.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/onnx/ort_library.h"

namespace tranship::onnx {
namespace {

constexpr std::string_view kWhere = "tensor";

constexpr std::array<std::pair<DType, int>, 15> kElementTypes = {{
    {DType::kF32, 1},
    {DType::kU8, 2},
    {DType::kI8, 3},
    {DType::kU16, 4},
    {DType::kI16, 5},
    {DType::kI32, 6},
    {DType::kI64, 7},
    {DType::kBool, 9},
    {DType::kF16, 10},
    {DType::kF64, 11},
    {DType::kU32, 12},
    {DType::kU64, 13},
    {DType::kBF16, 16},
    {DType::kF8E4M3, 17},
    {DType::kF8E5M2, 19},
}};

bool in_host_memory(const OrtLibrary& library, const OrtValue* value) {
  const OrtMemoryInfo* memory = nullptr;
  library.succeed(library.api().GetTensorMemoryInfo(value, &memory), kWhere,
                  "asking where a tensor is");
  int device = kOrtDeviceCpu;
  library.api().MemoryInfoGetDeviceType(memory, &device);
  return device == kOrtDeviceCpu;
}

}  // namespace

int ort_element_type(DType dtype) {
  for (const auto& [known, number] : kElementTypes) {
    if (known == dtype) return number;
  }
  fail(ErrorKind::kInternal, "[internal] dtype {} has no number in ONNX: this is a bug in tranship",
       name(dtype));
}

std::optional<DType> find_ort_dtype(int element_type) {
  for (const auto& [dtype, number] : kElementTypes) {
    if (number == element_type) return dtype;
  }
  return std::nullopt;
}

std::string describe(DType dtype, const std::vector<int64_t>& shape,
                     const std::vector<std::string>& dim_names) {
  std::string text = std::string(name(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    const bool named = i < dim_names.size() && !dim_names[i].empty();
    text += named ? dim_names[i] : shape[i] < 0 ? "?" : std::to_string(shape[i]);
  }
  return text + "]";
}

OrtTensorType read_tensor_type(const OrtLibrary& library, const OrtTensorInfo* info) {
  const OrtApi& api = library.api();
  constexpr std::string_view doing = "reading a tensor's type";
  OrtTensorType type;
  library.succeed(api.GetTensorElementType(info, &type.element_type), kWhere, doing);
  size_t rank = 0;
  library.succeed(api.GetDimensionsCount(info, &rank), kWhere, doing);
  type.shape.resize(rank);
  library.succeed(api.GetDimensions(info, type.shape.data(), rank), kWhere, doing);
  std::vector<const char*> names(rank);
  library.succeed(api.GetSymbolicDimensions(info, names.data(), rank), kWhere, doing);
  for (const char* name : names) type.dim_names.emplace_back(name != nullptr ? name : "");
  return type;
}

void Value::Release::operator()(OrtValue* value) const noexcept {
  library->api().ReleaseValue(value);
}

size_t bytes_of(DType dtype, const std::vector<int64_t>& shape) {
  size_t size = size_bytes(dtype);
  for (const int64_t dim : shape) {
    if (dim < 0 || !multiply(size, static_cast<size_t>(dim), &size)) {
      fail(ErrorKind::kInvalidArgument, "[onnxruntime] a tensor cannot have the shape of {}",
           describe(dtype, shape, {}));
    }
  }
  return size;
}

Value::Value(const OrtLibrary& library, OrtValue* value) : value_(value, {&library}) {
  const OrtApi& api = library.api();
  OrtTensorInfo* raw = nullptr;
  library.succeed(api.GetTensorTypeAndShape(value, &raw), kWhere, "reading a tensor's type");
  const OrtTensorInfoPtr info(raw, {&api});
  OrtTensorType type = read_tensor_type(library, info.get());
  const std::optional<DType> dtype = find_ort_dtype(type.element_type);
  if (!dtype) {
    fail(ErrorKind::kUnsupported,
         "[onnxruntime] a tensor's element type is ONNX's number {}, which tranship lacks",
         type.element_type);
  }
  dtype_ = *dtype;
  shape_ = std::move(type.shape);
  size_bytes_ = bytes_of(dtype_, shape_);
  on_host_ = in_host_memory(library, value);
  void* data = nullptr;
  library.succeed(api.GetTensorMutableData(value, &data), kWhere, "reading a tensor");
  data_ = static_cast<std::byte*>(data);
}

std::span<std::byte> Value::bytes() {
  if (!on_host_) {
    fail(ErrorKind::kUnsupported,
         "[onnxruntime] a tensor {} is in the device's memory: bind the output to Place::kHost to "
         "read it",
         describe(dtype_, shape_, {}));
  }
  return {data_, size_bytes_};
}

std::span<const std::byte> Value::bytes() const { return const_cast<Value*>(this)->bytes(); }

Tensor Value::to_tensor() const {
  const std::span<const std::byte> from = bytes();
  Tensor tensor(dtype_, shape_);
  if (!from.empty()) std::memcpy(tensor.bytes().data(), from.data(), from.size());
  return tensor;
}

Value allocate_value(const OrtLibrary& library, DType dtype, const std::vector<int64_t>& shape) {
  bytes_of(dtype, shape);
  OrtAllocator* allocator = nullptr;
  library.succeed(library.api().GetAllocatorWithDefaultOptions(&allocator), kWhere,
                  "allocating a tensor");
  OrtValue* value = nullptr;
  library.succeed(library.api().CreateTensorAsOrtValue(allocator, shape.data(), shape.size(),
                                                       ort_element_type(dtype), &value),
                  kWhere, "allocating a tensor");
  return Value(library, value);
}

Value value_over(const OrtLibrary& library, DType dtype, const std::vector<int64_t>& shape,
                 std::span<std::byte> bytes) {
  const size_t size = bytes_of(dtype, shape);
  if (size != bytes.size()) {
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] {} needs {} bytes, but {} are given",
         describe(dtype, shape, {}), size, bytes.size());
  }
  OrtMemoryInfo* raw = nullptr;
  library.succeed(library.api().CreateCpuMemoryInfo(kOrtArenaAllocator, kOrtMemTypeDefault, &raw),
                  kWhere, "describing host memory");
  const OrtMemoryInfoPtr memory(raw, {&library.api()});
  static std::byte nothing{};  // ONNX Runtime wants an address for a tensor without elements too
  OrtValue* value = nullptr;
  library.succeed(library.api().CreateTensorWithDataAsOrtValue(
                      memory.get(), bytes.empty() ? &nothing : bytes.data(), bytes.size(),
                      shape.data(), shape.size(), ort_element_type(dtype), &value),
                  kWhere, "making a tensor");
  return Value(library, value);
}

}  // namespace tranship::onnx

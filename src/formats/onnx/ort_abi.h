// ONNX Runtime's C interface in our own words: no header of ONNX Runtime is needed to build or to
// run.
//
// The library exports one function, OrtGetApiBase. It leads to a table of function pointers that
// only ever grows at its end, so a function keeps its place (its slot) in all later versions.
// OrtApi holds those that are used here, under ONNX Runtime's names, and kOrtSlots says where each
// is. tests/cases/ort_slots.txt is the independent second opinion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tranship::onnx {

// Things of the library: only their addresses pass through here.
struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorInfo;  // OrtTensorTypeAndShapeInfo
struct OrtMemoryInfo;
struct OrtAllocator;
struct OrtIoBinding;
struct OrtCudaOptions;       // OrtCUDAProviderOptionsV2
struct OrtPrepackedWeights;  // OrtPrepackedWeightsContainer

/// What a status says went wrong (the numbers are ONNX Runtime's).
enum class OrtErrorCode : int {
  kFail = 1,
  kInvalidArgument = 2,
  kNoSuchFile = 3,
  kNoModel = 4,
  kEngineError = 5,
  kRuntimeException = 6,
  kInvalidProtobuf = 7,
  kModelLoaded = 8,
  kNotImplemented = 9,
  kInvalidGraph = 10,
  kExecutionProviderFail = 11,
};

/// How bad a message of the log is.
enum class OrtLogLevel : int { kVerbose = 0, kInfo = 1, kWarning = 2, kError = 3, kFatal = 4 };

/// Kinds of allocator, memory and device.
inline constexpr int kOrtArenaAllocator = 1;
inline constexpr int kOrtMemTypeDefault = 0;
inline constexpr int kOrtDeviceCpu = 0;
/// ONNXType: what a graph's input or output is.
inline constexpr int kOrtTypeTensor = 1;

using OrtLogFunction = void (*)(void* parameter, OrtLogLevel level, const char* category,
                                const char* log_id, const char* code_location, const char* message);

/// What OrtGetApiBase returns.
struct OrtApiBase {
  const void* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

/// The functions that are used. Those that return a status return null for success; a status is
/// released by its taker.
struct OrtApi {
  OrtErrorCode (*GetErrorCode)(const OrtStatus*);
  const char* (*GetErrorMessage)(const OrtStatus*);
  OrtStatus* (*CreateEnvWithCustomLogger)(OrtLogFunction, void* parameter, OrtLogLevel,
                                          const char* log_id, OrtEnv**);
  OrtStatus* (*CreateSession)(const OrtEnv*, const char* path, const OrtSessionOptions*,
                              OrtSession**);
  OrtStatus* (*CreateSessionFromArray)(const OrtEnv*, const void* model, size_t size_bytes,
                                       const OrtSessionOptions*, OrtSession**);
  OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*, const char* const* input_names,
                    const OrtValue* const* inputs, size_t num_inputs,
                    const char* const* output_names, size_t num_outputs, OrtValue** outputs);
  OrtStatus* (*CreateSessionOptions)(OrtSessionOptions**);
  OrtStatus* (*EnableMemPattern)(OrtSessionOptions*);
  OrtStatus* (*DisableMemPattern)(OrtSessionOptions*);
  OrtStatus* (*EnableCpuMemArena)(OrtSessionOptions*);
  OrtStatus* (*DisableCpuMemArena)(OrtSessionOptions*);
  OrtStatus* (*SetSessionLogSeverityLevel)(OrtSessionOptions*, OrtLogLevel);
  OrtStatus* (*SetSessionGraphOptimizationLevel)(OrtSessionOptions*, int level);
  OrtStatus* (*SetIntraOpNumThreads)(OrtSessionOptions*, int threads);
  OrtStatus* (*SetInterOpNumThreads)(OrtSessionOptions*, int threads);
  OrtStatus* (*SessionGetInputCount)(const OrtSession*, size_t*);
  OrtStatus* (*SessionGetOutputCount)(const OrtSession*, size_t*);
  OrtStatus* (*SessionGetInputTypeInfo)(const OrtSession*, size_t index, OrtTypeInfo**);
  OrtStatus* (*SessionGetOutputTypeInfo)(const OrtSession*, size_t index, OrtTypeInfo**);
  OrtStatus* (*SessionGetInputName)(const OrtSession*, size_t index, OrtAllocator*, char**);
  OrtStatus* (*SessionGetOutputName)(const OrtSession*, size_t index, OrtAllocator*, char**);
  OrtStatus* (*CreateTensorAsOrtValue)(OrtAllocator*, const int64_t* shape, size_t rank,
                                       int element_type, OrtValue**);
  OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void* data, size_t size_bytes,
                                               const int64_t* shape, size_t rank, int element_type,
                                               OrtValue**);
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void**);
  OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*, const OrtTensorInfo**);
  OrtStatus* (*GetOnnxTypeFromTypeInfo)(const OrtTypeInfo*, int*);
  OrtStatus* (*GetTensorElementType)(const OrtTensorInfo*, int*);
  OrtStatus* (*GetDimensionsCount)(const OrtTensorInfo*, size_t*);
  OrtStatus* (*GetDimensions)(const OrtTensorInfo*, int64_t* dimensions, size_t count);
  OrtStatus* (*GetSymbolicDimensions)(const OrtTensorInfo*, const char** names, size_t count);
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue*, OrtTensorInfo**);
  OrtStatus* (*CreateMemoryInfo)(const char* name, int allocator_kind, int device_index,
                                 int memory_kind, OrtMemoryInfo**);
  OrtStatus* (*CreateCpuMemoryInfo)(int allocator_kind, int memory_kind, OrtMemoryInfo**);
  OrtStatus* (*AllocatorFree)(OrtAllocator*, void*);
  OrtStatus* (*GetAllocatorWithDefaultOptions)(OrtAllocator**);
  void (*ReleaseStatus)(OrtStatus*);
  void (*ReleaseMemoryInfo)(OrtMemoryInfo*);
  void (*ReleaseSession)(OrtSession*);
  void (*ReleaseValue)(OrtValue*);
  void (*ReleaseTypeInfo)(OrtTypeInfo*);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorInfo*);
  void (*ReleaseSessionOptions)(OrtSessionOptions*);
  OrtStatus* (*GetAvailableProviders)(char*** names, int* count);
  OrtStatus* (*ReleaseAvailableProviders)(char** names, int count);
  OrtStatus* (*AddSessionConfigEntry)(OrtSessionOptions*, const char* key, const char* value);
  OrtStatus* (*RunWithBinding)(OrtSession*, const OrtRunOptions*, const OrtIoBinding*);
  OrtStatus* (*CreateIoBinding)(OrtSession*, OrtIoBinding**);
  void (*ReleaseIoBinding)(OrtIoBinding*);
  OrtStatus* (*BindInput)(OrtIoBinding*, const char* name, const OrtValue*);
  OrtStatus* (*BindOutput)(OrtIoBinding*, const char* name, const OrtValue*);
  OrtStatus* (*BindOutputToDevice)(OrtIoBinding*, const char* name, const OrtMemoryInfo*);
  OrtStatus* (*GetBoundOutputValues)(const OrtIoBinding*, OrtAllocator*, OrtValue*** values,
                                     size_t* count);
  void (*ClearBoundInputs)(OrtIoBinding*);
  void (*ClearBoundOutputs)(OrtIoBinding*);
  OrtStatus* (*AddInitializer)(OrtSessionOptions*, const char* name, const OrtValue*);
  OrtStatus* (*CreatePrepackedWeightsContainer)(OrtPrepackedWeights**);
  void (*ReleasePrepackedWeightsContainer)(OrtPrepackedWeights*);
  OrtStatus* (*CreateSessionWithPrepackedWeightsContainer)(const OrtEnv*, const char* path,
                                                           const OrtSessionOptions*,
                                                           OrtPrepackedWeights*, OrtSession**);
  OrtStatus* (*GetTensorMemoryInfo)(const OrtValue*, const OrtMemoryInfo**);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_CUDA_V2)(OrtSessionOptions*,
                                                              const OrtCudaOptions*);
  OrtStatus* (*CreateCUDAProviderOptions)(OrtCudaOptions**);
  OrtStatus* (*UpdateCUDAProviderOptions)(OrtCudaOptions*, const char* const* keys,
                                          const char* const* values, size_t count);
  void (*ReleaseCUDAProviderOptions)(OrtCudaOptions*);
  void (*MemoryInfoGetDeviceType)(const OrtMemoryInfo*, int*);
  OrtStatus* (*SetUserLoggingFunction)(OrtSessionOptions*, OrtLogFunction, void* parameter);
};

/// A function's name, its slot in ONNX Runtime's table, and its place in OrtApi.
struct OrtSlot {
  std::string_view name;
  size_t slot;
  size_t offset;
};

/// The version of the interface that is asked for: the first whose table has every slot below (that
/// of 1.17).
inline constexpr uint32_t kOrtApiVersion = 17;

inline constexpr auto kOrtSlots = std::to_array<OrtSlot>({
    {"GetErrorCode", 1, offsetof(OrtApi, GetErrorCode)},
    {"GetErrorMessage", 2, offsetof(OrtApi, GetErrorMessage)},
    {"CreateEnvWithCustomLogger", 4, offsetof(OrtApi, CreateEnvWithCustomLogger)},
    {"CreateSession", 7, offsetof(OrtApi, CreateSession)},
    {"CreateSessionFromArray", 8, offsetof(OrtApi, CreateSessionFromArray)},
    {"Run", 9, offsetof(OrtApi, Run)},
    {"CreateSessionOptions", 10, offsetof(OrtApi, CreateSessionOptions)},
    {"EnableMemPattern", 16, offsetof(OrtApi, EnableMemPattern)},
    {"DisableMemPattern", 17, offsetof(OrtApi, DisableMemPattern)},
    {"EnableCpuMemArena", 18, offsetof(OrtApi, EnableCpuMemArena)},
    {"DisableCpuMemArena", 19, offsetof(OrtApi, DisableCpuMemArena)},
    {"SetSessionLogSeverityLevel", 22, offsetof(OrtApi, SetSessionLogSeverityLevel)},
    {"SetSessionGraphOptimizationLevel", 23, offsetof(OrtApi, SetSessionGraphOptimizationLevel)},
    {"SetIntraOpNumThreads", 24, offsetof(OrtApi, SetIntraOpNumThreads)},
    {"SetInterOpNumThreads", 25, offsetof(OrtApi, SetInterOpNumThreads)},
    {"SessionGetInputCount", 30, offsetof(OrtApi, SessionGetInputCount)},
    {"SessionGetOutputCount", 31, offsetof(OrtApi, SessionGetOutputCount)},
    {"SessionGetInputTypeInfo", 33, offsetof(OrtApi, SessionGetInputTypeInfo)},
    {"SessionGetOutputTypeInfo", 34, offsetof(OrtApi, SessionGetOutputTypeInfo)},
    {"SessionGetInputName", 36, offsetof(OrtApi, SessionGetInputName)},
    {"SessionGetOutputName", 37, offsetof(OrtApi, SessionGetOutputName)},
    {"CreateTensorAsOrtValue", 48, offsetof(OrtApi, CreateTensorAsOrtValue)},
    {"CreateTensorWithDataAsOrtValue", 49, offsetof(OrtApi, CreateTensorWithDataAsOrtValue)},
    {"GetTensorMutableData", 51, offsetof(OrtApi, GetTensorMutableData)},
    {"CastTypeInfoToTensorInfo", 55, offsetof(OrtApi, CastTypeInfoToTensorInfo)},
    {"GetOnnxTypeFromTypeInfo", 56, offsetof(OrtApi, GetOnnxTypeFromTypeInfo)},
    {"GetTensorElementType", 60, offsetof(OrtApi, GetTensorElementType)},
    {"GetDimensionsCount", 61, offsetof(OrtApi, GetDimensionsCount)},
    {"GetDimensions", 62, offsetof(OrtApi, GetDimensions)},
    {"GetSymbolicDimensions", 63, offsetof(OrtApi, GetSymbolicDimensions)},
    {"GetTensorTypeAndShape", 65, offsetof(OrtApi, GetTensorTypeAndShape)},
    {"CreateMemoryInfo", 68, offsetof(OrtApi, CreateMemoryInfo)},
    {"CreateCpuMemoryInfo", 69, offsetof(OrtApi, CreateCpuMemoryInfo)},
    {"AllocatorFree", 76, offsetof(OrtApi, AllocatorFree)},
    {"GetAllocatorWithDefaultOptions", 78, offsetof(OrtApi, GetAllocatorWithDefaultOptions)},
    {"ReleaseStatus", 93, offsetof(OrtApi, ReleaseStatus)},
    {"ReleaseMemoryInfo", 94, offsetof(OrtApi, ReleaseMemoryInfo)},
    {"ReleaseSession", 95, offsetof(OrtApi, ReleaseSession)},
    {"ReleaseValue", 96, offsetof(OrtApi, ReleaseValue)},
    {"ReleaseTypeInfo", 98, offsetof(OrtApi, ReleaseTypeInfo)},
    {"ReleaseTensorTypeAndShapeInfo", 99, offsetof(OrtApi, ReleaseTensorTypeAndShapeInfo)},
    {"ReleaseSessionOptions", 100, offsetof(OrtApi, ReleaseSessionOptions)},
    {"GetAvailableProviders", 125, offsetof(OrtApi, GetAvailableProviders)},
    {"ReleaseAvailableProviders", 126, offsetof(OrtApi, ReleaseAvailableProviders)},
    {"AddSessionConfigEntry", 130, offsetof(OrtApi, AddSessionConfigEntry)},
    {"RunWithBinding", 133, offsetof(OrtApi, RunWithBinding)},
    {"CreateIoBinding", 134, offsetof(OrtApi, CreateIoBinding)},
    {"ReleaseIoBinding", 135, offsetof(OrtApi, ReleaseIoBinding)},
    {"BindInput", 136, offsetof(OrtApi, BindInput)},
    {"BindOutput", 137, offsetof(OrtApi, BindOutput)},
    {"BindOutputToDevice", 138, offsetof(OrtApi, BindOutputToDevice)},
    {"GetBoundOutputValues", 140, offsetof(OrtApi, GetBoundOutputValues)},
    {"ClearBoundInputs", 141, offsetof(OrtApi, ClearBoundInputs)},
    {"ClearBoundOutputs", 142, offsetof(OrtApi, ClearBoundOutputs)},
    {"AddInitializer", 150, offsetof(OrtApi, AddInitializer)},
    {"CreatePrepackedWeightsContainer", 166, offsetof(OrtApi, CreatePrepackedWeightsContainer)},
    {"ReleasePrepackedWeightsContainer", 167, offsetof(OrtApi, ReleasePrepackedWeightsContainer)},
    {"CreateSessionWithPrepackedWeightsContainer", 168,
     offsetof(OrtApi, CreateSessionWithPrepackedWeightsContainer)},
    {"GetTensorMemoryInfo", 194, offsetof(OrtApi, GetTensorMemoryInfo)},
    {"SessionOptionsAppendExecutionProvider_CUDA_V2", 204,
     offsetof(OrtApi, SessionOptionsAppendExecutionProvider_CUDA_V2)},
    {"CreateCUDAProviderOptions", 205, offsetof(OrtApi, CreateCUDAProviderOptions)},
    {"UpdateCUDAProviderOptions", 206, offsetof(OrtApi, UpdateCUDAProviderOptions)},
    {"ReleaseCUDAProviderOptions", 208, offsetof(OrtApi, ReleaseCUDAProviderOptions)},
    {"MemoryInfoGetDeviceType", 225, offsetof(OrtApi, MemoryInfoGetDeviceType)},
    {"SetUserLoggingFunction", 266, offsetof(OrtApi, SetUserLoggingFunction)},
});
static_assert(kOrtSlots.size() * sizeof(void (*)()) == sizeof(OrtApi),
              "a function of OrtApi has no slot");

}  // namespace tranship::onnx

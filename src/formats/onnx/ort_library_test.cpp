#include "formats/onnx/ort_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "base/atomic_file.h"
#include "formats/onnx/ort_test_support.h"

namespace tranship::onnx {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Slots by name, as tests/cases/ort_slots.txt has them ("7 CreateSession" in each line).
std::map<std::string, size_t, std::less<>> independent_slots() {
  std::map<std::string, size_t, std::less<>> slots;
  const std::string text = read_text(fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/ort_slots.txt");
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    size_t slot = 0;
    const auto number = std::from_chars(line.data(), line.data() + line.size(), slot);
    if (line.starts_with('#') || number.ec != std::errc{}) continue;
    slots.emplace(line.substr(static_cast<size_t>(number.ptr - line.data()) + 1), slot);
  }
  return slots;
}

TEST(OrtSlots, AgreeWithAnIndependentDeclarationOfTheTable) {
  const auto expected = independent_slots();
  ASSERT_GT(expected.size(), 400u);
  for (const OrtSlot& slot : kOrtSlots) {
    const auto found = expected.find(slot.name);
    ASSERT_NE(found, expected.end()) << slot.name;
    EXPECT_EQ(slot.slot, found->second) << slot.name;
  }
}

TEST(OrtSlots, GiveEachFunctionAPlaceOfItsOwn) {
  std::map<size_t, std::string_view> places;
  for (const OrtSlot& slot : kOrtSlots) {
    EXPECT_TRUE(places.emplace(slot.offset, slot.name).second) << slot.name;
    EXPECT_LT(slot.offset, sizeof(OrtApi));
  }
}

std::vector<std::string> warnings_for(std::string_view version) {
  std::vector<std::string> warnings;
  check_ort_version(
      version, "lib.so",
      {.warning = [&](std::string_view m) { warnings.emplace_back(m); }, .progress = {}});
  return warnings;
}

TEST(OrtVersion, ATestedOneIsSilent) {
  for (const char* version : {"1.29.0", "1.30.1", "1.31.1"})
    EXPECT_THAT(warnings_for(version), IsEmpty()) << version;
}

TEST(OrtVersion, AnUntestedOneIsAWarningWithBothVersions) {
  for (const char* version : {"1.20.0", "1.28.1", "1.32.0", "2.0.0"}) {
    EXPECT_THAT(warnings_for(version),
                ElementsAre(testing::AllOf(HasSubstr(version), HasSubstr("1.29 to 1.31"))));
  }
}

TEST(OrtVersion, OneBelowTheMinimumIsRefusedWithBothVersions) {
  for (const char* version : {"1.19.2", "1.9.0", "0.5.0", "unknown", "1", ""}) {
    const Error error = error_of([&] { warnings_for(version); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << version;
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr(version), HasSubstr("1.20")));
  }
}

TEST(OrtSearch, NothingFoundNamesAllPlacesAndWhatToDo) {
  const fs::path folder = fs::path(testing::TempDir()) / "ort_search_nothing";
  fs::create_directories(folder);
  write_text(folder / "libonnxruntime.so.1", "not a library");
  const Error error =
      error_of([&] { search_ort_library({"/nowhere", folder}, {"libno_such_library.so"}); });
  fs::remove_all(folder);
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(),
              testing::AllOf(HasSubstr("/nowhere/libonnxruntime.so (not there)"),
                             HasSubstr((folder / "libonnxruntime.so.1").string()),
                             HasSubstr("libno_such_library.so"), HasSubstr("make setup"),
                             HasSubstr("TRANSHIP_ORT_LIBRARY")));
}

TEST(OrtLibraryOpen, ANamedFileThatIsNotThereIsAnErrorAndNothingElseIsTried) {
  const Error error = error_of([] { OrtLibrary::open("/nowhere/libonnxruntime.so", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("/nowhere/libonnxruntime.so"));
}

TEST(OrtLibraryOpen, AFolderWithoutTheLibraryIsAnError) {
  const Error error = error_of([] { OrtLibrary::open(TRANSHIP_SOURCE_DIR, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("libonnxruntime.so"));
}

TEST(OrtLibraryOpen, AnotherLibraryIsNotOnnxRuntime) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &libc), 0);
  const Error error = error_of([&] { OrtLibrary::open(libc.dli_fname, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("OrtGetApiBase"));
}

TEST(OrtLibraryOpen, TheEnvironmentVariableIsHeeded) {
  const char* before = std::getenv("TRANSHIP_ORT_LIBRARY");
  const std::string kept = before != nullptr ? before : "";
  setenv("TRANSHIP_ORT_LIBRARY", "/nowhere/mine.so", 1);
  const Error error = error_of([] { OrtLibrary::open({}, {}); });
  before != nullptr ? setenv("TRANSHIP_ORT_LIBRARY", kept.c_str(), 1)
                    : unsetenv("TRANSHIP_ORT_LIBRARY");
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(),
              testing::AllOf(HasSubstr("/nowhere/mine.so"), HasSubstr("TRANSHIP_ORT_LIBRARY")));
}

class LoadedOrt : public NeedsOnnxRuntime {};

TEST_F(LoadedOrt, IsOneObjectUnderItsFileAndItsFolder) {
  if (!library_->path().has_parent_path())
    GTEST_SKIP() << "found by the system's loader: there is no path to try";
  EXPECT_EQ(&OrtLibrary::open(library_->path(), {}), library_);
  EXPECT_EQ(&OrtLibrary::open(library_->path().parent_path(), {}), library_);
}

TEST_F(LoadedOrt, SaysItsVersion) {
  EXPECT_THAT(library_->version(), testing::MatchesRegex("1\\.[0-9]+\\.[0-9]+.*"));
}

TEST_F(LoadedOrt, HasTheCpuProvider) {
  EXPECT_THAT(library_->providers(), Contains("CPUExecutionProvider"));
}

TEST_F(LoadedOrt, StatusBecomesAnErrorWithItsText) {
  OrtSessionOptions* raw = nullptr;
  library_->succeed(library_->api().CreateSessionOptions(&raw), "here", "making options");
  const OrtSessionOptionsPtr options(raw, {&library_->api()});
  const Error error = error_of([&] {
    library_->succeed(library_->api().AddSessionConfigEntry(raw, "", "value"), "here",
                      "setting an option");
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("'here': setting an option"),
                                           HasSubstr(library_->version()), HasSubstr("onfig")));
}

TEST_F(LoadedOrt, WithoutCudaEachFunctionForItSaysSo) {
  const std::vector<std::string> providers = library_->providers();
  if (std::find(providers.begin(), providers.end(), "CUDAExecutionProvider") != providers.end()) {
    GTEST_SKIP() << "this build of ONNX Runtime has CUDA";
  }
  const OrtApi& api = library_->api();
  OrtCudaOptions* options = nullptr;
  const auto message = [&](OrtStatus* status) {
    return std::string(error_of([&] { library_->succeed(status, "here", "testing"); }).what());
  };
  const auto says_so = HasSubstr("CUDA execution provider is not enabled");
  EXPECT_THAT(message(api.CreateCUDAProviderOptions(&options)), says_so);
  EXPECT_THAT(message(api.UpdateCUDAProviderOptions(nullptr, nullptr, nullptr, 0)), says_so);
}

TEST(OrtLogOfASession, HoldsErrorsBackUntilTheCallEnds) {
  std::vector<std::string> warnings;
  OrtLog log("m.onnx",
             {.warning = [&](std::string_view m) { warnings.emplace_back(m); }, .progress = {}});
  OrtLog::callback(&log, OrtLogLevel::kWarning, "", "", "", "careful");
  EXPECT_THAT(warnings, ElementsAre("[onnxruntime] 'm.onnx': careful"));
  OrtLog::callback(&log, OrtLogLevel::kError, "", "", "", "said by the status too");
  log.settle(true);
  EXPECT_EQ(warnings.size(), 1u);
  OrtLog::callback(&log, OrtLogLevel::kError, "", "", "", "went on regardless");
  log.settle(false);
  EXPECT_EQ(warnings.back(), "[onnxruntime] 'm.onnx': went on regardless");
}

TEST(OrtLogOfASession, ASinkThatThrowsDoesNotUnwindThroughTheLibrary) {
  OrtLog log("m.onnx",
             {.warning = [](std::string_view) { throw Error(ErrorKind::kInternal, "no"); },
              .progress = {}});
  OrtLog::callback(&log, OrtLogLevel::kWarning, "", "", "", "careful");
  EXPECT_THROW(log.write(OrtLogLevel::kWarning, "careful"), Error);
}

}  // namespace
}  // namespace tranship::onnx

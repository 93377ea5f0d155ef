#include "formats/onnx/fusions/provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tranship::onnx {
namespace {

TEST(Providers, are_found_by_the_names_that_they_have) {
  EXPECT_THAT(provider_names(), ::testing::ElementsAre("cpu", "cuda", "webgpu", "dml"));
  for (const std::string& name : provider_names())
    EXPECT_EQ(capabilities(*find_provider(name)).name, name);
  EXPECT_FALSE(find_provider("CPU"));
  EXPECT_FALSE(find_provider(""));
}

}  // namespace
}  // namespace tranship::onnx

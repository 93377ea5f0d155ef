#include <gtest/gtest.h>

#include "tranship/tokenizer.h"

namespace tranship {
namespace {

TEST(NoTokenizer, SaysHowToGetOne) {
  try {
    Tokenizer::from_json("{}", "");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("TRANSHIP_TOKENIZER=ON"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tranship

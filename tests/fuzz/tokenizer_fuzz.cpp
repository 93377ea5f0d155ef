#include <array>

#include "fuzz.h"
#include "tranship/tokenizer.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const Tokenizer tokenizer = Tokenizer::from_json(fuzz::text_of(data, size), "");
    tokenizer.decode(tokenizer.encode("Hello, world: 12 + \xC3\xA9 \xF0\x9F\x98\x80"));
    tokenizer.decode(std::array<int64_t, 3>{0, 7, 4'000'000'000});
  });
  return 0;
}

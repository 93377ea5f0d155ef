// As generation_config.json, and as the config.json that stands in for it.
#include "fuzz.h"
#include "generation/generation_config.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto read = [](std::string_view generation_config, std::string_view config) {
    fuzz::accepts([&] {
      const auto parsed = GenerationConfig::from_json(generation_config, config);
      generation::check_config(parsed);
      generation::limits_of(parsed, 3, 2048, {});
      generation::limits_of(parsed, 3, {}, {});
    });
  };
  read(text, R"({"eos_token_id": 2})");
  read("", text);
  return 0;
}

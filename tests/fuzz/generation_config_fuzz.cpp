// As generation_config.json, and as the config.json that stands in for it.
#include "checkpoint/config.h"
#include "fuzz.h"
#include "generation/generation_config.h"
#include "generation/speech.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  // Each reading below begins with this one; where it fails nothing is left to try.
  if (!fuzz::accepts([&] { Config::parse("generation_config.json", text); })) return 0;
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
  fuzz::accepts([&] {
    const auto tokens = generation::read_speech_tokens(text, "{}");
    const GenerationConfig config = {.max_length = 30};
    const bool detects = generation::must_detect_language(tokens, config);
    generation::speech_prompt(tokens, config, 3,
                              detects ? std::optional<int64_t>(5) : std::nullopt);
  });
  fuzz::accepts([&] { generation::read_speech_tokens("", text); });
  return 0;
}

// config.json: the readers of its keys, and then the definition that it names.
#include "base/json.h"
#include "checkpoint/config.h"
#include "fuzz.h"
#include "tasks/task.h"

using namespace tranship;

namespace {

/// Reads each key by one reader, whether it suits or not; `turn` says by which.
void read_each_key(const Config& config, const Json& object, size_t turn) {
  for (const auto& [key, value] : object.items()) {
    config.is_null(key);
    fuzz::accepts([&, &key = key] {
      switch (turn++ % 8) {
        case 0:
          config.find_integer(key);
          break;
        case 1:
          config.find_number(key);
          break;
        case 2:
          config.find_text(key);
          break;
        case 3:
          config.boolean(key, false);
          break;
        case 4:
          config.integers(key);
          break;
        case 5:
          config.numbers(key);
          break;
        case 6:
          config.texts(key);
          break;
        default:
          config.require(key, "text");
      }
    });
    if (value.is_object()) read_each_key(*config.find_object(key), value, turn);
  }
}

void check_text(const Config& config) {
  const std::string text = config.to_json();
  fuzz::require(Config::parse("again", text).to_json() == text, "what is written reads back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  std::optional<Config> config;
  if (!fuzz::accepts([&] { config = Config::parse("config.json", text); })) return 0;
  check_text(*config);
  read_each_key(*config, parse_json("config", "config.json", text, NonFinite::kAsPython), size);
  fuzz::require(config->unread().empty(), "what was read counts as read");
  // A definition makes a layer for each that the configuration asks for: here that is a few.
  int64_t layers = 0;
  fuzz::accepts([&] { layers = config->integer("num_hidden_layers", 2); });
  if (layers > 2 && layers <= 10'000) return 0;
  config->reset_reads();
  CheckpointData checkpoint;
  checkpoint.config = *config;
  fuzz::accepts([&] { tasks::forward(checkpoint, {}); });
  return 0;
}

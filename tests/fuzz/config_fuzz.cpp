// config.json: each reader of each key, and then the definition that it names.
#include "checkpoint/config.h"
#include "fuzz.h"
#include "tasks/task.h"

using namespace tranship;

namespace {

void read_all_ways(const Config& config) {
  for (const std::string& key : config.keys()) {
    config.is_null(key);
    fuzz::accepts([&] { config.find_integer(key); });
    fuzz::accepts([&] { config.find_number(key); });
    fuzz::accepts([&] { config.find_text(key); });
    fuzz::accepts([&] { config.boolean(key, false); });
    fuzz::accepts([&] { config.integers(key); });
    fuzz::accepts([&] { config.numbers(key); });
    fuzz::accepts([&] { config.texts(key); });
    fuzz::accepts([&] { config.require(key, "text"); });
    fuzz::accepts([&] {
      if (const auto object = config.find_object(key)) read_all_ways(*object);
    });
  }
  fuzz::require(config.unread().empty(), "what was read counts as read");
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
  read_all_ways(*config);
  // A definition makes a layer for each that the configuration asks for: here that is a few.
  int64_t layers = 0;
  fuzz::accepts([&] { layers = config->integer("num_hidden_layers", 2); });
  if (layers > 4 && layers <= 10'000) return 0;
  fuzz::accepts([&] { tasks::forward(Checkpoint::synthetic(text).data(), {}); });
  return 0;
}

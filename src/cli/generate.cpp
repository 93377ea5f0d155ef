// `tranship generate`: text from an artifact, as it comes.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/talk.h"
#include "cli/usage.h"
#include "tranship/generation.h"

namespace tranship::cli {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kLongestAnswer = 1024;  // tokens, in a conversation

struct Options {
  std::string directory;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::string input_file;
  std::string language;
  std::string task;
  bool chat = false;
  bool interactive = false;
  std::string system;
  bool greedy = false;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> repetition_penalty;
  std::optional<uint64_t> seed;
  std::optional<int64_t> max_new_tokens;
  std::vector<std::string> stop_strings;
  bool stats = false;
  bool json = false;
  RunOptions run;
  std::string library;
};

std::string read_standard_input() {
  std::string text;
  std::array<char, 65536> block;
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      fail(ErrorKind::kIo, "[read] cannot read standard input: {}", std::strerror(errno));
    if (count == 0) return text;
    text.append(block.data(), static_cast<size_t>(count));
  }
}

/// A file or standard input; its last line end is not part of the prompt.
std::string read_prompt(const Options& options) {
  if (options.prompt) return *options.prompt;
  if (options.prompt_file.empty() && ::isatty(STDIN_FILENO) == 1) {
    throw UsageError(
        "there is no prompt: pass --prompt TEXT or --prompt-file FILE, or write it to standard "
        "input");
  }
  std::string text =
      options.prompt_file.empty() ? read_standard_input() : read_text(options.prompt_file);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

GenerationConfig config_of(const Options& options, GenerationConfig config) {
  if (options.temperature || options.top_k || options.top_p || options.seed)
    config.do_sample = true;
  if (options.greedy) config.do_sample = false;
  if (options.temperature) config.temperature = *options.temperature;
  if (options.top_k) config.top_k = *options.top_k;
  if (options.top_p) config.top_p = *options.top_p;
  if (options.repetition_penalty) config.repetition_penalty = *options.repetition_penalty;
  if (options.seed) config.seed = options.seed;
  if (options.max_new_tokens) config.max_new_tokens = options.max_new_tokens;
  if (!options.language.empty()) config.language = options.language;
  if (!options.task.empty()) config.task = options.task;
  config.stop_strings.insert(config.stop_strings.end(), options.stop_strings.begin(),
                             options.stop_strings.end());
  return config;
}

std::string stats_text(const GeneratedText& made) {
  const GenerationStats& stats = made.stats;
  Table table({"", "", ""});
  const auto tokens = [](int64_t count) {
    return fmt::format("{} token{}", count, count == 1 ? "" : "s");
  };
  table.add({"load", format_duration(stats.load_seconds), ""});
  const std::string cached =
      stats.cached_tokens > 0 ? fmt::format(" ({} cached)", stats.cached_tokens) : "";
  table.add({"prompt", format_duration(stats.prefill_seconds),
             fmt::format("{}{}, {:.1f} tokens/s", tokens(stats.prompt_tokens), cached,
                         stats.prefill_tokens_per_second())});
  table.add({"decode", format_duration(stats.decode_seconds),
             fmt::format("{}, {:.1f} tokens/s", tokens(stats.decoded_tokens),
                         stats.decode_tokens_per_second())});
  table.add({"end", std::string(name(made.finish_reason)),
             fmt::format("{} new", tokens(stats.new_tokens))});
  const double seconds = stats.prefill_seconds + stats.decode_seconds;
  table.add({"loop", format_duration(seconds - stats.runtime_seconds),
             fmt::format("{:.1f} % of the time, the rest is the runtime's",
                         seconds > 0 ? 100 * (1 - stats.runtime_seconds / seconds) : 0)});
  const auto bytes = [](int64_t count) { return format_bytes(static_cast<uint64_t>(count)); };
  table.add({"memory", bytes(stats.memory.peak_bytes),
             fmt::format("at most; anonymous {}, files {}, caches {}",
                         bytes(stats.memory.anonymous_bytes), bytes(stats.memory.mapped_bytes),
                         bytes(stats.cache_bytes))});
  std::string text = "\n" + table.text();
  text.pop_back();
  return text;
}

Json report(const GeneratedText& made) {
  const GenerationStats& stats = made.stats;
  Json out;
  out["prompt_ids"] = made.prompt_ids;
  out["new_ids"] = made.new_ids;
  out["text"] = made.text;
  out["finish_reason"] = std::string(name(made.finish_reason));
  out["seed"] = made.seed;
  out["stats"]["load_seconds"] = stats.load_seconds;
  out["stats"]["prefill_seconds"] = stats.prefill_seconds;
  out["stats"]["decode_seconds"] = stats.decode_seconds;
  out["stats"]["runtime_seconds"] = stats.runtime_seconds;
  out["stats"]["prompt_tokens"] = stats.prompt_tokens;
  out["stats"]["cached_tokens"] = stats.cached_tokens;
  out["stats"]["new_tokens"] = stats.new_tokens;
  out["stats"]["decoded_tokens"] = stats.decoded_tokens;
  out["stats"]["prefill_tokens_per_second"] = stats.prefill_tokens_per_second();
  out["stats"]["decode_tokens_per_second"] = stats.decode_tokens_per_second();
  out["stats"]["cache_bytes"] = stats.cache_bytes;
  out["stats"]["peak_bytes"] = stats.memory.peak_bytes;
  out["stats"]["anonymous_bytes"] = stats.memory.anonymous_bytes;
  out["stats"]["mapped_bytes"] = stats.memory.mapped_bytes;
  return out;
}

std::vector<ChatMessage> beginning_of(const Options& options) {
  if (options.system.empty()) return {};
  return {{.role = "system", .content = options.system}};
}

GeneratedText generate(Generator& generator, const Options& options, const std::string& prompt,
                       const OnText& on_text) {
  const GenerationConfig config = config_of(options, generator.generation_config());
  if (!options.input_file.empty())
    return generator.generate_text_from(read_safetensors(options.input_file), config, on_text);
  if (!options.chat) return generator.generate_text(prompt, config, on_text);
  std::vector<ChatMessage> messages = beginning_of(options);
  messages.push_back({.role = "user", .content = prompt});
  return generator.chat(messages, config, on_text);
}

void show(const GeneratedText& made, const Options& options, Console& console) {
  console.print(options.json ? to_python_json_line(report(made)) + "\n" : "\n");
  if (options.stats) console.note(stats_text(made));
  console.flush();
}

/// An answer may be long, unless somebody says otherwise.
GenerationConfig config_for_answers(const Options& options, const Generator& generator) {
  GenerationConfig config = config_of(options, generator.generation_config());
  if (config.max_new_tokens || config.max_length) return config;
  config.max_length = generator.max_length();
  if (!config.max_length) config.max_new_tokens = kLongestAnswer;
  return config;
}

void converse(Generator& generator, const Options& options, Console& console) {
  const GenerationConfig config = config_for_answers(options, generator);
  Conversation conversation(generator, beginning_of(options));
  const auto answer = [&](const std::string& text) {
    const InterruptGuard guard;
    const GeneratedText made = conversation.say(text, config, [&](std::string_view piece) {
      if (!options.json) console.print_live(piece);
      return !take_interrupt();
    });
    show(made, options, console);
  };
  if (options.prompt) answer(*options.prompt);
  talk({.answer = answer,
        .clear = [&] { conversation = Conversation(generator, beginning_of(options)); }},
       console);
}

/// Whether lines are read one by one: asked for, or a terminal where nothing else is to be said.
bool is_conversation(const Options& options) {
  const bool has_prompt = options.prompt || !options.prompt_file.empty();
  return options.interactive || (options.chat && !has_prompt && ::isatty(STDIN_FILENO) == 1);
}

void run(const Options& options, Console& console) {
  if (!options.system.empty() && !options.chat && !options.interactive)
    throw UsageError("--system is part of a conversation: add --chat");
  if (options.greedy && (options.temperature || options.top_k || options.top_p || options.seed)) {
    throw UsageError(
        "--greedy takes the most likely token: --temperature, --top-k, --top-p and --seed have no "
        "say in it");
  }
  const bool talks = is_conversation(options);
  const std::string prompt =
      talks || !options.input_file.empty() ? std::string() : read_prompt(options);
  RunOptions run_options = options.run;
  run_options.library = options.library;
  Generator generator = Generator::open(options.directory, run_options, console.sink());
  if (talks) return converse(generator, options, console);
  const InterruptGuard guard;
  const GeneratedText made = generate(generator, options, prompt, [&](std::string_view text) {
    check_interrupt();
    if (options.json) return true;
    console.print_live(text);
    return true;
  });
  show(made, options, console);
}

constexpr Description kDescription = {
    .name = "generate",
    .summary = "Generates text with an artifact made for generation.",
    .text =
        "The text streams to standard output. What no option says comes from the artifact's "
        "generation_config.json. The "
        "prompt is --prompt, --prompt-file, or standard input; --chat in a terminal talks; an "
        "encoder-decoder writes what it "
        "makes of it. What is no text comes by --inputs.",
    .examples =
        "  tranship generate smollm2-onnx --chat --prompt \"What is the capital of France?\"\n"
        "  tranship generate smollm2-onnx --chat\n"
        "  tranship generate smollm2-onnx --prompt \"Once upon a time\" --temperature 0.8 --seed "
        "1\n"
        "  tranship generate whisper-onnx --inputs features.safetensors --language en\n"
        "  echo \"def fibonacci(n):\" | tranship generate coder-onnx --greedy --max-new-tokens 64 "
        "--stats"};

void add_sampling_options(CLI::App& app, Options& options) {
  const std::string group = "Choosing tokens";
  app.add_flag("--greedy", options.greedy, "Always the most likely token.")->group(group);
  const auto is_positive = [](double value) { return value > 0; };
  limit(app.add_option("--temperature", options.temperature,
                       "Over 1 for more surprise, under 1 for less. Samples.")
            ->type_name("T")
            ->group(group),
        is_positive, "a number over 0 (--greedy takes the most likely token)");
  limit(
      app.add_option("--top-k", options.top_k, "Only the K most likely tokens; 0 for all. Samples.")
          ->type_name("K")
          ->group(group),
      0, kMost);
  limit(
      app.add_option("--top-p", options.top_p,
                     "Only the most likely tokens that together have probability P. Samples.")
          ->type_name("P")
          ->group(group),
      [](double value) { return value >= 0 && value <= 1; }, "a number from 0 to 1");
  limit(app.add_option("--repetition-penalty", options.repetition_penalty,
                       "Over 1, tokens that were there become less likely.")
            ->type_name("R")
            ->group(group),
        is_positive, "a number over 0");
  const auto is_seed = [](double value) {
    return value >= 0 && value < 0x1p64 && value == std::floor(value);
  };
  limit(app.add_option("--seed", options.seed, "The same seed gives the same text. Samples.")
            ->type_name("N")
            ->group(group),
        is_seed, "a whole number of 64 bits");
}

}  // namespace

Command add_generate(CLI::App& root, Console& console) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = add_subcommand(root, console, kDescription);
  app->add_option("DIR", options->directory, "The artifact: a directory with an export.json.")
      ->required();
  auto* prompt =
      app->add_option("--prompt", options->prompt, "The text to continue, or the question.")
          ->type_name("TEXT");
  auto* prompt_file =
      app->add_option("--prompt-file", options->prompt_file, "A file with the prompt.")
          ->type_name("FILE")
          ->excludes(prompt);
  auto* chat = app->add_flag("--chat", options->chat,
                             "The prompt is a question: it is put into the model's chat template.");
  auto* interactive = app->add_flag(
      "-i,--interactive", options->interactive,
      "A conversation: each line of standard input is answered, and what was said is not read "
      "again. --chat without a prompt does so in a terminal.");
  interactive->excludes(prompt_file);
  app->add_option(
         "--inputs", options->input_file,
         "Instead of a prompt, for an encoder that reads no text: a .safetensors file with "
         "its inputs by name (input_features).")
      ->type_name("FILE")
      ->excludes(prompt)
      ->excludes(prompt_file)
      ->excludes(chat)
      ->excludes(interactive);
  app->add_option("--system", options->system,
                  "With --chat: what the model is told before the question.")
      ->type_name("TEXT");
  limit(app->add_option("--max-new-tokens", options->max_new_tokens, "At most so many new tokens.")
            ->type_name("N"),
        1, kMost);
  app->add_option("--language", options->language,
                  "Of speech: the code of its language (en); left out, the model finds out.")
      ->type_name("CODE");
  app->add_option("--task", options->task, "Of speech: transcribe or translate.")
      ->type_name("NAME");
  add_repeated(*app, "--stop", options->stop_strings, "TEXT",
               "Ends where the new text has this. May be repeated.")
      ->check(
          [](const std::string& word) { return word.empty() ? "an empty text ends nothing" : ""; },
          "");
  add_sampling_options(*app, *options);
  app->add_flag(
      "--stats", options->stats,
      "Prints to standard error: times, tokens per second, what the loop takes beside the "
      "runtime, and memory (the most that the process ever had; its own and of mapped "
      "files; of caches).");
  app->add_flag("--json", options->json,
                "Prints one object at the end: prompt_ids, new_ids, text, stats.");
  add_runtime_options(*app, options->run, options->library);
  return {app, [options, &console] { run(*options, console); }};
}

}  // namespace tranship::cli

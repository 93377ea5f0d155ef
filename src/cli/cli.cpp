#include "cli/cli.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>  // all of it: one file must have the definitions of its virtual functions
#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/manual.h"
#include "cli/suggest.h"
#include "cli/usage.h"
#include "tranship/error.h"

namespace tranship::cli {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

constexpr const char* kAbout =
    "exports Hugging Face checkpoints to ONNX and .pt2, and runs them: no Python, no PyTorch\n"
    "A checkpoint is a directory with config.json and safetensors, or a .gguf file. `tranship "
    "export` writes an artifact: a directory that Transformers loads, and that ONNX Runtime and "
    "this program (onnx) or PyTorch (dynamo) runs.";
constexpr const char* kExamples =
    "  tranship export SmolLM2-135M-Instruct --to onnx -o smollm2-onnx\n"
    "  tranship generate smollm2-onnx --chat --prompt \"What is the capital of France?\"\n"
    "  tranship inspect smollm2-onnx\n"
    "  tranship help export";

/// The root, its commands, and the command that the line names.
class Line {
 public:
  explicit Line(Console& console) : console_(console), root_(kAbout, "tranship") {
    root_.set_help_flag("-h,--help", "Shows this page; `tranship help COMMAND` shows a command's.");
    root_.add_flag("-V,--version", version_, "Shows the version, and which ONNX Runtime is found.");
    root_.footer(kExamples);
    root_.require_subcommand(0, 1);
    for (const auto add :
         {add_export, add_run, add_generate, add_inspect, add_verify, add_list, add_completion}) {
      commands_.push_back(add(root_, console_));
    }
  }

  int run(std::vector<std::string> words) {
    if (words.empty()) {
      std::fputs(manual(root_, console_.width()).c_str(), stderr);
      return kWrongUsage;
    }
    if (words.front() == "help") words = help_words(words);
    choose(words);
    try {
      std::ranges::reverse(words);  // as CLI11 wants them
      root_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      console_.print(manual(*app_, console_.width()));
      return kDone;
    } catch (const CLI::ParseError& error) {
      throw UsageError(unexpected().value_or(error.what()));
    }
    if (version_) {
      console_.print(version_text());
    } else if (command_ != nullptr) {
      command_->run();
    }
    return kDone;
  }

  const CLI::App& app() const { return *app_; }

 private:
  /// `help export` is `export --help`.
  static std::vector<std::string> help_words(const std::vector<std::string>& words) {
    if (words.size() == 1) return {"--help"};
    return {words[1], "--help"};
  }

  void choose(const std::vector<std::string>& words) {
    const auto word =
        std::ranges::find_if(words, [](const std::string& w) { return !w.starts_with('-'); });
    if (word == words.end()) return;
    std::vector<std::string> names;
    for (const Command& command : commands_) {
      names.push_back(command.app->get_name());
      if (names.back() != *word) continue;
      command_ = &command;
      app_ = command.app;
      return;
    }
    const auto meant = nearest(*word, names);
    throw UsageError(fmt::format("there is no command '{}'{}", *word,
                                 meant ? fmt::format("; did you mean '{}'?", *meant) : ""));
  }

  /// What to say of words that no option or argument took; nothing if all were taken. A mistyped
  /// option is why others are missing, so it is told first.
  std::optional<std::string> unexpected() const {
    const std::vector<std::string> words = root_.remaining(true);
    if (words.empty()) return std::nullopt;
    const auto option = std::ranges::find_if(
        words, [](const std::string& w) { return w.starts_with('-') && w != "--"; });
    if (option == words.end()) return fmt::format("unexpected argument '{}'", words.front());
    std::vector<std::string> names;
    for (const OptionEntry& entry : entries(*app_))
      names.insert(names.end(), entry.names.begin(), entry.names.end());
    const std::string name = option->substr(0, option->find('='));
    const auto meant = nearest(name, names);
    return fmt::format("there is no option '{}'{}", name,
                       meant ? fmt::format("; did you mean '{}'?", *meant) : "");
  }

  Console& console_;
  CLI::App root_;
  bool version_ = false;
  std::vector<Command> commands_;
  const Command* command_ = nullptr;
  const CLI::App* app_ = &root_;
};

int run_line(Line& line, Console& console, std::vector<std::string> words) {
  try {
    const int code = line.run(std::move(words));
    console.flush();
    return code;
  } catch (const UsageError& error) {
    console.error(error.what());
    const std::string name = line.app().get_parent() == nullptr ? "" : " " + line.app().get_name();
    std::fputs(
        fmt::format("\n{}\nFor more: tranship{} --help\n", usage_line(line.app()), name).c_str(),
        stderr);
    return kWrongUsage;
  } catch (const Interrupted&) {
    console.progress().clear();
    end_by_signal();
  } catch (const Error& error) {
    console.error(error.what());
  } catch (const std::bad_alloc&) {
    console.error("[memory] there is not enough memory for this");
  } catch (const std::exception& error) {
    console.error(fmt::format("[internal] {}: this is a bug in tranship", error.what()));
  }
  return kFailed;
}

}  // namespace

int run(int argc, char** argv) {
  Console console;
  Line line(console);
  return run_line(line, console, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

}  // namespace tranship::cli

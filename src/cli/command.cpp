#include "cli/command.h"

#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "cli/manual.h"
#include "cli/suggest.h"
#include "formats/onnx/session.h"

namespace tranship::cli {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(between)) + word;
  return out;
}

/// What is wrong with the value of --device, or "".
std::string device_problem(const std::string& word) {
  const std::string_view number = std::string_view(word).substr(std::min<size_t>(word.size(), 5));
  const bool is_numbered = word.starts_with("cuda:") && !number.empty() && number.size() <= 4 &&
                           number.find_first_not_of("0123456789") == number.npos;
  if (word == "cpu" || word == "cuda" || is_numbered) return "";
  return "'" + word + "' is none of cpu, cuda, cuda:N";
}

}  // namespace

CLI::App* add_subcommand(CLI::App& root, Console& console, const Description& description) {
  const std::string text = std::string(description.summary) + "\n" + std::string(description.text);
  CLI::App* app = root.add_subcommand(std::string(description.name), text);
  app->footer(std::string(description.examples));
  app->set_help_flag("-h,--help", "Shows this page.");
  app->add_flag_function(
      "-q,--quiet", [&console](int64_t) { console.set_quiet(); },
      "No progress and no warnings on standard error.");
  return app;
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& description) {
  const auto check = [choices](const std::string& word) -> std::string {
    if (std::ranges::find(choices, word) != choices.end()) return "";
    const auto meant = nearest(word, choices);
    return "'" + word + "' is none of " + joined(choices, ", ") +
           (meant ? "; did you mean '" + *meant + "'?" : "");
  };
  return app.add_option(name, value, description)
      ->check(check, "")
      ->type_name(joined(choices, "|"));
}

CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& type_name, const std::string& description) {
  return app.add_option(name, values, description)->allow_extra_args(false)->type_name(type_name);
}

CLI::Option* add_list_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& values, const std::string& type_name,
                             const std::string& description) {
  return add_repeated(app, name, values, type_name, description)->delimiter(',');
}

void limit(CLI::Option* option, std::function<bool(double)> holds, const std::string& expected) {
  const auto check = [holds = std::move(holds), expected](const std::string& word) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_number =
        error == std::errc() && end == word.data() + word.size() && std::isfinite(value);
    return is_number && holds(value) ? "" : "'" + word + "' is not " + expected;
  };
  option->check(check, "");
}

void limit(CLI::Option* option, int64_t least, int64_t most) {
  limit(
      option,
      [least, most](double value) {
        return value >= static_cast<double>(least) && value <= static_cast<double>(most) &&
               value == std::floor(value);
      },
      fmt::format("a whole number from {} to {}", least, most));
}

void add_runtime_options(CLI::App& app, RunOptions& options, std::string& library) {
  const std::string group = "Runtime";
  app.add_option("--device", options.device, "cpu (the default), cuda or cuda:N.")
      ->type_name("DEVICE")
      ->group(group)
      ->check(device_problem, "");
  CLI::Option* threads =
      app.add_option("--threads", options.threads,
                     "Threads to compute with; by default one for each CPU that may be used.");
  threads->type_name("N")->group(group);
  limit(threads, 0, onnx::kMostThreads);
  app.add_flag("!--no-memory-arena", options.memory_arena,
               "Gives memory back after each run: less of it, and slower.")
      ->group(group);
  app.add_flag("!--no-memory-pattern", options.memory_pattern,
               "Takes a run's memory tensor by tensor, and not in one block.")
      ->group(group);
  app.add_option_function<std::vector<std::string>>(
         "--session-option",
         [&options](const std::vector<std::string>& given) {
           for (const std::string& entry : given) {
             const size_t at = entry.find('=');
             options.session_config.insert_or_assign(entry.substr(0, at), entry.substr(at + 1));
           }
         },
         "A setting by ONNX Runtime's own key: session.disable_prepacking=1 (less memory), "
         "session.intra_op.allow_spinning=0 (idle threads sleep). May be repeated.")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE")
      ->group(group)
      ->check(
          [](const std::string& word) {
            const size_t at = word.find('=');
            return at == word.npos || at == 0 ? "'" + word + "' is not KEY=VALUE" : "";
          },
          "");
  app.add_option("--ort-library", library,
                 "ONNX Runtime's shared library, or its folder. By default TRANSHIP_ORT_LIBRARY, "
                 "then the usual places "
                 "(`tranship --version` says which).")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace tranship::cli

// What a subcommand is. Each has a file of its own, which adds it to the command line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "tranship/exporters.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tranship::cli {

struct Command {
  CLI::App* app;              // its options; owned by the root
  std::function<void()> run;  // after the line was parsed. Errors: Error, UsageError, Interrupted
};

// Each of these outlives neither the root nor the console.
Command add_export(CLI::App& root, Console& console);
Command add_run(CLI::App& root, Console& console);
Command add_generate(CLI::App& root, Console& console);
Command add_inspect(CLI::App& root, Console& console);
Command add_verify(CLI::App& root, Console& console);
Command add_list(CLI::App& root, Console& console);
Command add_completion(CLI::App& root, Console& console);

/// What `tranship --version` prints.
std::string version_text();

struct Description {
  std::string_view name;
  std::string_view summary;   // one line, for the list of commands
  std::string_view text;      // a paragraph or more, for its own help
  std::string_view examples;  // lines, as they are
};

/// A subcommand with --help and --quiet.
CLI::App* add_subcommand(CLI::App& root, Console& console, const Description& description);

/// An option that takes one of a few words.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& description);

/// An option that may be given several times, with one value each time.
CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& type_name, const std::string& description);

/// An option that takes a list of values with commas between; it may be given several times.
CLI::Option* add_list_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& values, const std::string& type_name,
                             const std::string& description);

/// Lets only numbers pass for which `holds`; anything else is wrong usage. `expected` is for the
/// message: "a number from 0 to 1".
void limit(CLI::Option* option, std::function<bool(double)> holds, const std::string& expected);
/// The same for whole numbers from `least` to `most`.
void limit(CLI::Option* option, int64_t least, int64_t most);

/// --device, --threads, --ort-library and settings of the runtime, of every command that runs a
/// model.
void add_runtime_options(CLI::App& app, RunOptions& options, std::string& library);

}  // namespace tranship::cli

// --help as a manual: what a command is for, examples, and each option in a line or two.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tranship::cli {

/// The page of the root or of a subcommand, wrapped at `width`.
std::string manual(const CLI::App& app, size_t width);
/// "Usage: tranship export [OPTIONS] CHECKPOINT".
std::string usage_line(const CLI::App& app);

/// An option as help and completion show it.
struct OptionEntry {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional argument
  std::string value_name;          // "DIR", "f32|f16|bf16"; empty for a flag
  std::string description;
  std::string group;
  bool required = false;
  bool many = false;  // a positional argument that may stand several times
};
std::vector<OptionEntry> entries(const CLI::App& app);

/// Commands in the order of the manual.
std::vector<const CLI::App*> subcommands(const CLI::App& root);
/// The first line of a command's description.
std::string summary(const CLI::App& app);

}  // namespace tranship::cli

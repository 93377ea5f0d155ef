#include "cli/manual.h"

#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "cli/format.h"

namespace tranship::cli {
namespace {

constexpr size_t kLeftColumn = 30;  // names of options; longer ones have a line of their own

std::string left_cell(const OptionEntry& entry) {
  if (entry.names.empty()) return entry.value_name + (entry.many ? "..." : "");
  std::string out = entry.names.front().starts_with("--") ? "    " : "";
  for (size_t i = 0; i < entry.names.size(); ++i) out += (i > 0 ? ", " : "") + entry.names[i];
  return out + (entry.value_name.empty() ? "" : " " + entry.value_name);
}

void add_entry(std::string& out, const std::string& left, const std::string& description,
               size_t width) {
  const size_t column = kLeftColumn + 4;
  std::string line = "  " + left;
  if (display_width(line) + 2 > column) {
    out += line + "\n";
    line.clear();
  }
  line.resize(column, ' ');
  out += wrap(line + description, width, column) + "\n";
}

std::string body(const CLI::App& app) {
  const std::string description = app.get_description();
  const size_t end = description.find('\n');
  return end == description.npos ? description : description.substr(end + 1);
}

}  // namespace

std::vector<OptionEntry> entries(const CLI::App& app) {
  std::vector<OptionEntry> out;
  for (const CLI::Option* option : app.get_options()) {
    OptionEntry entry;
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
    const bool is_flag = option->get_items_expected_max() == 0;
    if (!is_flag)
      entry.value_name = entry.names.empty() ? option->get_name(true) : option->get_type_name();
    entry.description = option->get_description();
    entry.group = option->get_group();
    entry.required = option->get_required();
    entry.many = option->get_items_expected_max() > 1;
    out.push_back(std::move(entry));
  }
  // --help and --quiet, which were added first, come last.
  std::ranges::stable_partition(out, [](const OptionEntry& e) {
    return std::ranges::none_of(e.names, [](const std::string& n) {
      return n == "--help" || n == "--quiet" || n == "--version";
    });
  });
  return out;
}

std::vector<const CLI::App*> subcommands(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App* app) { return !app->get_name().empty(); });
}

std::string summary(const CLI::App& app) {
  const std::string description = app.get_description();
  return description.substr(0, description.find('\n'));
}

std::string usage_line(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "Usage: tranship COMMAND [OPTIONS]";
  std::string out = "Usage: tranship " + app.get_name();
  for (const OptionEntry& entry : entries(app)) {
    if (entry.required && !entry.names.empty())
      out += " " + entry.names.front() + " " + entry.value_name;
  }
  out += " [OPTIONS]";
  for (const OptionEntry& entry : entries(app)) {
    if (!entry.names.empty()) continue;
    const std::string name = entry.value_name + (entry.many ? "..." : "");
    out += entry.required ? " " + name : " [" + name + "]";
  }
  return out;
}

std::string manual(const CLI::App& app, size_t width) {
  std::string out = "tranship" + (app.get_parent() == nullptr ? "" : " " + app.get_name()) + ": " +
                    summary(app) + "\n\n";
  out += usage_line(app) + "\n";
  if (const std::string text = body(app); !text.empty()) out += "\n" + wrap(text, width) + "\n";
  if (app.get_parent() == nullptr) {
    out += "\nCommands:\n";
    for (const CLI::App* command : subcommands(app))
      add_entry(out, command->get_name(), summary(*command), width);
  }
  std::vector<std::string> groups;
  const std::vector<OptionEntry> all = entries(app);
  for (const OptionEntry& entry : all) {
    const std::string group = entry.names.empty() ? "Arguments" : entry.group;
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  std::ranges::stable_partition(groups,
                                [](const std::string& group) { return group == "Arguments"; });
  for (const std::string& group : groups) {
    out += "\n" + group + ":\n";
    for (const OptionEntry& entry : all) {
      if (group == (entry.names.empty() ? "Arguments" : entry.group))
        add_entry(out, left_cell(entry), entry.description, width);
    }
  }
  if (const std::string examples = app.get_footer(); !examples.empty())
    out += "\nExamples:\n" + examples + "\n";
  return out;
}

}  // namespace tranship::cli

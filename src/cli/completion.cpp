// `tranship completion`: a script for a shell, made from the commands and options themselves.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/manual.h"

namespace tranship::cli {
namespace {

/// "f32|f16|bf16" -> its words; nothing for other names of values.
std::vector<std::string> choices(const OptionEntry& entry) {
  std::vector<std::string> out;
  const std::string& text = entry.value_name;
  const bool is_list = text.find('|') != text.npos;
  for (size_t begin = 0; is_list && begin <= text.size();) {
    const size_t end = std::min(text.find('|', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::string spaced(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// In single quotes, for any of the shells.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash_script(const CLI::App& root) {
  std::vector<std::string> names;
  std::string options;
  std::string values;
  for (const CLI::App* command : subcommands(root)) {
    names.push_back(command->get_name());
    std::vector<std::string> words;
    for (const OptionEntry& entry : entries(*command)) {
      words.insert(words.end(), entry.names.begin(), entry.names.end());
      if (entry.names.empty() || choices(entry).empty()) continue;
      values += fmt::format("    '{} {}') COMPREPLY=($(compgen -W {} -- \"$word\")); return;;\n",
                            names.back(), entry.names.back(), in_quotes(spaced(choices(entry))));
    }
    options += fmt::format("    {}) words={};;\n", names.back(), in_quotes(spaced(words)));
  }
  return fmt::format(R"(# bash completion for tranship:  source <(tranship completion bash)
_tranship() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words=""
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W '{} help --help --version' -- "$word"))
    return
  fi
  case "$command $before" in
{}  esac
  if [[ $command == completion ]]; then
    COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word"))
    return
  fi
  if [[ $word != -* ]]; then
    COMPREPLY=($(compgen -f -- "$word"))
    return
  fi
  case "$command" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o filenames -F _tranship tranship
)",
                     spaced(names), values, options);
}

/// One option as zsh's _arguments wants it.
std::string zsh_option(const OptionEntry& entry, const std::string& option_name) {
  std::string text;
  for (const char c : entry.description)
    text += c == '[' || c == ']' || c == ':' ? std::string("\\") + c : std::string(1, c);
  std::string spec = option_name + "[" + text + "]";
  if (entry.value_name.empty()) return in_quotes(spec);
  const std::vector<std::string> words = choices(entry);
  spec += words.empty() ? ":value:_files" : ":value:(" + spaced(words) + ")";
  return in_quotes(spec);
}

std::string zsh_script(const CLI::App& root) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : subcommands(root)) {
    commands += "    " + in_quotes(command->get_name() + ":" + summary(*command)) + "\n";
    cases += fmt::format("    {})\n      _arguments -s", command->get_name());
    for (const OptionEntry& entry : entries(*command)) {
      for (const std::string& option_name : entry.names)
        cases += " \\\n        " + zsh_option(entry, option_name);
    }
    const bool is_completion = command->get_name() == "completion";
    cases += std::string(" \\\n        ") +
             (is_completion ? "'*:shell:(bash zsh fish)'" : "'*:file:_files'") + ";;\n";
  }
  return fmt::format(R"(#compdef tranship
# zsh completion for tranship:  source <(tranship completion zsh)
_tranship() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
compdef _tranship tranship
)",
                     commands, cases);
}

std::string fish_script(const CLI::App& root) {
  std::string out = "# fish completion for tranship:  tranship completion fish | source\n";
  for (const CLI::App* command : subcommands(root)) {
    out += fmt::format("complete -c tranship -n __fish_use_subcommand -f -a {} -d {}\n",
                       command->get_name(), in_quotes(summary(*command)));
    for (const OptionEntry& entry : entries(*command)) {
      if (entry.names.empty()) continue;
      out += fmt::format("complete -c tranship -n '__fish_seen_subcommand_from {}'",
                         command->get_name());
      for (const std::string& option_name : entry.names) {
        const bool is_long = option_name.starts_with("--");
        out += fmt::format(" {} {}", is_long ? "-l" : "-s", option_name.substr(is_long ? 2 : 1));
      }
      if (!entry.value_name.empty()) out += " -r";
      if (const auto words = choices(entry); !words.empty())
        out += " -f -a " + in_quotes(spaced(words));
      out += " -d " + in_quotes(entry.description) + "\n";
    }
  }
  return out +
         "complete -c tranship -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
}

}  // namespace

Command add_completion(CLI::App& root, Console& console) {
  CLI::App* app = add_subcommand(root, console,
                                 {.name = "completion",
                                  .summary = "Prints a completion script for a shell.",
                                  .text = "Put its line into your shell's start-up file.",
                                  .examples = "  source <(tranship completion bash)\n"
                                              "  source <(tranship completion zsh)\n"
                                              "  tranship completion fish | source"});
  const auto shell = std::make_shared<std::string>();
  add_choice(*app, "SHELL", *shell, {"bash", "zsh", "fish"}, "bash, zsh or fish.")->required();
  return {app, [&root, &console, shell] {
            const CLI::App& all = root;
            console.print(*shell == "bash"  ? bash_script(all)
                          : *shell == "zsh" ? zsh_script(all)
                                            : fish_script(all));
          }};
}

}  // namespace tranship::cli

#include "cli/completions.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/flags.hpp"
#include "headroom/answer/values.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/schema.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/report/table.hpp"

namespace headroom::cli {
namespace {

using Words = std::vector<std::string>;

// What may stand for a value: words, and whether files may too.
struct Values {
  Words words;
  bool files = false;
};

template <class E>
Words enumerators() {
  Words words;
  for (const auto& [enumerator, name] : spellings<E>) words.emplace_back(name);
  return words;
}

// Of a field of a strategy; none of a count.
Words words_of(const StrategyField& field) {
  return std::visit(
      [](const auto& member) {
        using T = std::remove_cvref_t<decltype(member.in(Strategy(), Workload()))>;
        if constexpr (std::is_enum_v<T>) return enumerators<T>();
        return Words();
      },
      field.member);
}

Words embedded_words(std::string_view kind) {
  const std::vector<std::string_view> names = embedded_names(kind);
  return {names.begin(), names.end()};
}

Values values_of_option(const OptionText& option) {
  if (option.value == "MODEL") return {embedded_words("model"), true};
  if (option.value == "SYSTEM") return {embedded_words("system"), true};
  if (option.value == "SOFTWARE") return {embedded_words("software"), true};
  if (option.value == "SCHEMA") {
    const std::vector<std::string_view> names = schema_names();
    return {{names.begin(), names.end()}};
  }
  if (option.value.starts_with("FILE") || option.value.starts_with("SAMPLES") ||
      option.value.starts_with("PART"))
    return {{}, true};
  if (option.value == "FORMAT") return {enumerators<Format>()};
  if (option.value == "KERNEL") return {enumerators<AttentionKernel>()};
  if (option.value == "SHELL") return {enumerators<Shell>()};
  if (option.value == "WHEN") return {{"auto", "always", "never"}};
  if (option.value == "DETAIL") return {{"paper", "exact"}};
  if (option.value.find('|') != std::string::npos) return {split(option.value, '|')};
  for (const std::string& name : option.names) {
    const StrategyField* const field = name.starts_with("--") ? find_field(name.substr(2)) : nullptr;
    if (field != nullptr) return {words_of(*field)};
  }
  return {};
}

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

Words names_below(const CommandText& command) {
  Words names;
  for (const CommandText& below : command.commands)
    names.push_back(below.name.substr(below.name.rfind(' ') + 1));
  return names;
}

// The command and those below it, outer ones first.
void collect_commands(const CommandText& command, std::vector<const CommandText*>& all) {
  all.push_back(&command);
  for (const CommandText& below : command.commands) collect_commands(below, all);
}

std::vector<const CommandText*> all_commands(const CommandText& program) {
  std::vector<const CommandText*> all;
  collect_commands(program, all);
  return all;
}

// Of what stands alone on the line: positional arguments, and the commands below.
Values values_of_positionals(const CommandText& command) {
  Values values{.words = names_below(command)};
  for (const OptionText& option : command.options) {
    if (!option.names.empty()) continue;
    const Values own = values_of_option(option);
    values.words.insert(values.words.end(), own.words.begin(), own.words.end());
    values.files = values.files || own.files;
  }
  return values;
}

// The lines of a shell's case that finds the command on the line: $command is its whole name.
std::string find_command(const std::vector<const CommandText*>& commands) {
  std::string cases;
  for (const CommandText* const command : commands) {
    for (const std::string& below : names_below(*command))
      cases += fmt::format("      '{0} {1}') command='{0} {1}' ;;\n", command->name, below);
  }
  return cases;
}

std::string bash(const CommandText& program) {
  const std::vector<const CommandText*> commands = all_commands(program);
  std::string cases;
  for (const CommandText* const command : commands) {
    std::string flags;
    std::string values;
    for (const OptionText& option : command->options) {
      for (const std::string& name : option.names) flags += name + ' ';
      const Values of = values_of_option(option);
      if (option.names.empty() || option.value.empty()) continue;
      values += fmt::format("        {}) words='{}' files={} flags= ;;\n", fmt::join(option.names, "|"),
                            joined(of.words), of.files ? 1 : 0);
    }
    const Values alone = values_of_positionals(*command);
    cases += fmt::format(
        "    '{}')\n      words='{}' files={} flags='{}'\n      case $previous in\n{}"
        "      esac ;;\n",
        command->name, joined(alone.words), alone.files ? 1 : 0, flags, values);
  }
  return fmt::format(R"(# bash completion of headroom, made by: headroom completions bash
_headroom() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=headroom
  local words flags files i
  if [[ $current == = ]]; then current=; fi
  if [[ $previous == = ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${{COMP_WORDS[i]}}" in
{}    esac
  done
  case $command in
{}  esac
  if [[ $current == -* ]]; then words=$flags files=0; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; ((files)) && compgen -f -- "$current")
}}
complete -o filenames -F _headroom headroom
)",
                     find_command(commands), cases);
}

// As it may stand in a specification of zsh's _arguments, inside single quotes.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return result;
}

std::string zsh_action(const Values& values) {
  if (values.words.empty()) return values.files ? "_files" : "";
  const std::string words = "compadd -- " + joined(values.words);
  return "{ " + words + (values.files ? "; _files }" : " }");
}

std::string zsh(const CommandText& program) {
  const std::vector<const CommandText*> commands = all_commands(program);
  std::string cases;
  for (const CommandText* const command : commands) {
    cases += fmt::format("    '{}')\n      _arguments \\\n", command->name);
    for (const OptionText& option : command->options) {
      const std::string action = zsh_action(values_of_option(option));
      for (const std::string& name : option.names) {
        cases += fmt::format("        '*{}{}[{}]{}' \\\n", name,
                             option.value.empty()     ? ""
                             : name.starts_with("--") ? "="
                                                      : "+",
                             zsh_text(option.help),
                             option.value.empty() ? "" : ":" + zsh_text(option.value) + ":" + action);
      }
    }
    cases += fmt::format("        '*:argument:{}' ;;\n", zsh_action(values_of_positionals(*command)));
  }
  return fmt::format(R"(#compdef headroom
# zsh completion of headroom, made by: headroom completions zsh
_headroom() {{
  local command=headroom word
  for word in ${{words[2,CURRENT-1]}}; do
    case "$command $word" in
{}    esac
  done
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _headroom ]]; then _headroom "$@"; else compdef _headroom headroom; fi
)",
                     find_command(commands), cases);
}

std::string fish_text(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish(const CommandText& program) {
  const std::vector<const CommandText*> commands = all_commands(program);
  std::string text =
      fmt::format(R"(# fish completion of headroom, made by: headroom completions fish
function __headroom_command
  set -l command headroom
  for word in (commandline -opc)[2..-1]
    switch "$command $word"
{}    end
  end
  test "$command" = "$argv"
end
)",
                  [&] {
                    std::string cases;
                    for (const CommandText* const command : commands) {
                      for (const std::string& below : names_below(*command)) {
                        cases += fmt::format("      case '{0} {1}'\n        set command '{0} {1}'\n",
                                             command->name, below);
                      }
                    }
                    return cases;
                  }());
  for (const CommandText* const command : commands) {
    const std::string here = fmt::format("complete -c headroom -n '__headroom_command {}'", command->name);
    const Values alone = values_of_positionals(*command);
    text += here + (alone.files ? "" : " -f");
    text += alone.words.empty() ? "\n" : " -a " + fish_text(joined(alone.words)) + "\n";
    for (const OptionText& option : command->options) {
      if (option.names.empty()) continue;
      text += here;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const Values values = values_of_option(option);
      if (!option.value.empty()) text += values.files ? " -r -F" : " -x";
      if (!values.words.empty()) text += " -a " + fish_text(joined(values.words));
      text += " -d " + fish_text(option.help) + '\n';
    }
  }
  return text;
}

}  // namespace

std::string completions(const CommandText& program, Shell shell) {
  switch (shell) {
    case Shell::bash: return bash(program);
    case Shell::zsh: return zsh(program);
    case Shell::fish: return fish(program);
  }
  return {};
}

}  // namespace headroom::cli

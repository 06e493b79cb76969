#include "cli/help.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/daily_flags.hpp"
#include "cli/topics.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/report/table.hpp"

namespace headroom::cli {
namespace {

constexpr std::size_t names_indent = 2;
constexpr std::size_t widest_names = 26;  // beyond which the text starts on the next line

// What a row says: the name of a flag, an argument or a command, and its text.
struct Row {
  std::string names;
  std::string text;
};

std::string names_of(const OptionText& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, ","));
  return names + (names.empty() || option.value.empty() ? "" : " ") + option.value;
}

std::string text_of(const OptionText& option) {
  return option.help + (option.fallback.empty() ? "" : " (default " + option.fallback + ")") +
         (option.required && !option.names.empty() ? " (required)" : "");
}

// Lines that are no row: sentences and examples.
std::string paragraph(const std::string& text, std::size_t columns) {
  return in_lines(text, columns, 0) + '\n';
}

std::string rows_text(const std::vector<Row>& rows, std::size_t columns) {
  std::size_t widest = 0;
  for (const Row& row : rows) {
    if (row.names.size() <= widest_names) widest = std::max(widest, row.names.size());
  }
  const std::size_t column = names_indent + widest + 2;
  std::string text;
  for (const Row& row : rows) {
    std::string line = std::string(names_indent, ' ') + row.names;
    const std::string words = in_lines(row.text, columns - std::min(columns, column), 0);
    for (const std::string_view words_line : parts_of(words, '\n')) {
      if (line.size() + 2 > column && !line.empty()) {
        text += line + '\n';
        line.clear();
      }
      line.resize(column, ' ');
      text += line.append(words_line) + '\n';
      line.clear();
    }
  }
  return text;
}

std::string usage(const CommandText& command) {
  std::string text = "Usage: " + command.name;
  for (const OptionText& option : command.options) {
    if (!option.names.empty()) continue;
    const std::string value = option.value + (option.repeats ? "..." : "");
    text += option.required ? " " + value : " [" + value + "]";
  }
  return text + " [FLAGS]" + (command.commands.empty() ? "" : " COMMAND");
}

std::string title_and_usage(const CommandText& command, std::size_t columns) {
  return paragraph(command.help + (command.help.ends_with('.') ? "" : "."), columns) +
         paragraph(usage(command), columns);
}

std::string commands_below(const CommandText& command, std::size_t columns) {
  if (command.commands.empty()) return {};
  std::vector<Row> rows;
  for (const CommandText& below : command.commands)
    rows.push_back({below.name.substr(command.name.size() + 1), below.help});
  return "\nCommands:\n" + rows_text(rows, columns);
}

std::string notes(const CommandText& command, std::size_t most_examples, std::size_t columns) {
  std::string text;
  const std::size_t shown = std::min(most_examples, command.examples.size());
  if (shown > 0) text += "\nExamples:\n";
  for (std::size_t i = 0; i < shown; ++i) text += paragraph("  " + command.examples[i], columns);
  if (!command.footer.empty()) text += '\n' + paragraph(command.footer, columns);
  return text;
}

const OptionText& option_named(const CommandText& command, std::string_view name) {
  const auto found = std::find_if(command.options.begin(), command.options.end(), [&](const OptionText& it) {
    return std::find(it.names.begin(), it.names.end(), name) != it.names.end();
  });
  EXPECTS(found != command.options.end());
  return *found;
}

std::vector<std::string_view> daily_flags_of(const CommandText& command) {
  const auto found = std::find_if(daily_flags.begin(), daily_flags.end(),
                                  [&](const DailyFlags& it) { return it.command == command.name; });
  return found == daily_flags.end() ? std::vector<std::string_view>() : parts_of(found->flags, ' ');
}

// The first sentence of a text, which says what a flag is for.
std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

}  // namespace

std::vector<OptionGroup> grouped(const CommandText& command) {
  std::vector<OptionGroup> groups{{"Arguments", {}}};
  for (const char* const title : topics) groups.push_back({title, {}});
  for (const OptionText& option : command.options) {
    const std::string title = option.names.empty() ? groups.front().title : option.topic;
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const OptionGroup& it) { return it.title == title; });
    EXPECTS(group != groups.end());
    group->options.push_back(&option);
  }
  std::erase_if(groups, [](const OptionGroup& group) { return group.options.empty(); });
  return groups;
}

std::string whole_help(const CommandText& command, std::size_t columns) {
  std::string text = title_and_usage(command, columns);
  for (const OptionGroup& group : grouped(command)) {
    std::vector<Row> rows;
    for (const OptionText* const option : group.options)
      rows.push_back({names_of(*option), text_of(*option)});
    text += '\n' + group.title + ":\n" + rows_text(rows, columns);
  }
  return text + commands_below(command, columns) + notes(command, command.examples.size(), columns);
}

std::string short_help(const CommandText& command, std::size_t columns) {
  const std::vector<std::string_view> daily = daily_flags_of(command);
  if (daily.empty()) return whole_help(command, columns);
  constexpr std::size_t most_examples = 3;
  std::vector<Row> rows;
  for (const OptionText& option : command.options) {
    if (option.names.empty()) rows.push_back({option.value, first_sentence(text_of(option))});
  }
  const std::size_t others = command.options.size() - rows.size() - daily.size();
  for (const std::string_view name : daily) {
    const OptionText& option = option_named(command, name);
    rows.push_back({names_of(option), first_sentence(text_of(option))});
  }
  return title_and_usage(command, columns) + '\n' + rows_text(rows, columns) +
         fmt::format("--help-all lists the other {} flags by topic.\n", others) +
         commands_below(command, columns) + notes(command, most_examples, columns);
}

}  // namespace headroom::cli

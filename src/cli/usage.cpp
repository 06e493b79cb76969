#include "cli/usage.hpp"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headroom::cli {
namespace {

// The innermost subcommand on the command line, whose flags were meant, and its full name.
std::pair<const CLI::App*, std::string> innermost(const CLI::App& program) {
  const CLI::App* app = &program;
  std::string name = program.get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  return {app, name};
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(below->get_name());
  return names;
}

// What could have been written instead of an argument that nothing takes.
std::string suggestion(const CLI::App& app, const std::string& unexpected) {
  std::vector<std::string> names = command_names(app);
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return did_you_mean(unexpected, {names.begin(), names.end()});
}

std::string no_option(const CLI::App& app, const std::string& flag) {
  return "has no option '" + flag + "'" + suggestion(app, flag);
}

// Whether a command does nothing without one of those below it.
bool needs_command(const CLI::App& app) { return app.get_require_subcommand_min() > 0; }

}  // namespace

void check_flags(const CLI::App& program, const OwnNames& own) {
  const CLI::App* app = &program;
  std::string name = program.get_name();
  std::vector<Problem> problems = own.problems;
  for (std::size_t i = 0; i < own.arguments.size(); ++i) {
    const std::string& argument = own.arguments[i];
    const auto below =
        app->get_subcommands([&](const CLI::App* each) { return each->get_name() == argument; });
    if (!below.empty()) {
      app = below.front();
      name += " " + argument;
    }
    if (!argument.starts_with("-")) continue;
    const std::size_t equals = argument.find('=');
    const CLI::Option* const option = app->get_option_no_throw(argument.substr(0, equals));
    if (option != nullptr && equals == std::string::npos && option->get_expected_min() > 0) ++i;  // its value
    if (option != nullptr || !argument.starts_with("--") || argument.size() == 2) continue;
    const std::string flag = argument.substr(0, equals);
    problems.push_back({"", name + " " + no_option(*app, flag)});
  }
  if (problems.size() > own.problems.size()) throw UsageError(std::move(problems), name);
  if (!problems.empty()) throw InputError(std::move(problems));
}

UsageError usage_error(const CLI::App& program, const CLI::ParseError& error) {
  const auto [app, name] = innermost(program);
  const std::vector<std::string> unexpected = program.remaining(true);
  if (unexpected.empty()) return {{{"", error.what()}}, name};
  const std::string& word = unexpected.front();
  if (word.starts_with('-')) return {{{"", name + " " + no_option(*app, word)}}, name};
  std::string hint = suggestion(*app, word);
  if (!needs_command(*app)) return {{{"", "unexpected argument '" + word + "'" + hint}}, name};
  if (hint.empty()) hint = fmt::format(" (it has {})", fmt::join(command_names(*app), ", "));
  return {{{"", name + " has no command '" + word + "'" + hint}}, name};
}

std::string broken_rule(const CLI::App& flags, const CLI::ParseError& error) {
  const std::vector<std::string> unexpected = flags.remaining();
  return unexpected.empty() ? error.what() : no_option(flags, unexpected.front());
}

void check_help(const CLI::App& program, const CLI::ParseError& asked) {
  if (needs_command(*innermost(program).first) && !program.remaining(true).empty())
    throw usage_error(program, asked);
}

}  // namespace headroom::cli

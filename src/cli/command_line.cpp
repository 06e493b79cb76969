#include "cli/command_line.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/help.hpp"
#include "cli/other_names.hpp"
#include "cli/picture_file.hpp"
#include "cli/terminal.hpp"
#include "cli/usage.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/core/reading.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom::cli {

class App : public CLI::App {
 public:
  using CLI::App::App;
  std::vector<const CLI::Option*> outputs;                          // files to write
  std::vector<const CLI::Option*> pictures;                         // those of them that are pictures
  std::map<std::string, std::vector<std::string>> values_of_flags;  // of flags that may have one
  std::vector<std::string> examples;
};

namespace {

std::string long_flag_of(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  return names.empty() ? std::string() : "--" + names.back();
}

constexpr std::size_t usual_columns = 80;  // of a screen that nothing is known of
constexpr std::size_t widest_help = 100;   // longer lines are hard to read

// For messages: "--tensor-parallel", "model".
std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : long_flag_of(option);
}

// What a shell makes of a variable that is not set. The program would take it for an option that is not there.
void check_values(const App& app) {
  std::vector<Problem> problems;
  for (const CLI::Option* const option : app.get_options()) {
    const std::vector<std::string>& values = option->results();
    const bool is_word_of_script = contains(option->get_lnames(), "script-argument");
    if (is_word_of_script || !contains(values, "")) continue;
    problems.push_back({name_of(*option), "must not be empty: give " + option->get_type_name() +
                                              (option->get_required() ? "" : ", or leave it out")});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

// What is read while the command runs is compared with them.
void note_outputs(const App& app) {
  std::vector<Problem> problems;
  for (const CLI::Option* const output : app.outputs) {
    if (output->count() == 0) continue;
    const std::string& file = output->results().back();
    const std::string flag = long_flag_of(*output);
    if (std::find(app.pictures.begin(), app.pictures.end(), output) != app.pictures.end()) {
      if (!is_picture(file)) problems.push_back({flag, "must end in .svg or .png"});
      if (std::string obstacle = obstacle_to_picture(file); !obstacle.empty())
        problems.push_back({flag, std::move(obstacle)});
    }
    collect(problems, [&] { will_write(flag, file); });
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

// Whether a command or one below it has the flag.
bool has_flag(const CLI::App& app, const std::string& flag) {
  const std::vector<const CLI::App*> below = app.get_subcommands([](const CLI::App*) { return true; });
  return app.get_option_no_throw(flag) != nullptr ||
         std::any_of(below.begin(), below.end(),
                     [&](const CLI::App* command) { return has_flag(*command, flag); });
}

// Returns the values that a flag of a command or of one below it may have.
std::vector<std::string> values_of_flag(const CLI::App& app, const std::string& flag) {
  if (const auto* const own = dynamic_cast<const App*>(&app)) {
    if (const auto found = own->values_of_flags.find(flag); found != own->values_of_flags.end())
      return found->second;
  }
  for (const CLI::App* const below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (std::vector<std::string> values = values_of_flag(*below, flag); !values.empty()) return values;
  }
  return {};
}

// Puts the value of such a flag behind an equals sign, or it would be a positional argument.
std::vector<std::string> with_values_of_flags(const CLI::App& app, std::vector<std::string> arguments) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--")) continue;
    const std::vector<std::string> values = values_of_flag(app, arguments[i]);
    if (std::find(values.begin(), values.end(), arguments[i + 1]) == values.end()) continue;
    arguments[i] += "=" + arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return arguments;
}

// Throws InputError where a word that nothing takes stands behind such a flag.
void check_values_of_flags(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<std::string> unexpected = app.remaining(true);
  for (std::size_t i = 0; !unexpected.empty() && i + 1 < arguments.size(); ++i) {
    const std::string& word = arguments[i + 1];
    if (word != unexpected.front() || word.starts_with('-')) continue;
    const std::vector<std::string> values = values_of_flag(app, arguments[i]);
    if (values.empty()) continue;
    throw InputError(
        {{arguments[i], fmt::format("must be one of {}, not '{}'", fmt::join(values, ", "), word)}});
  }
}

OwnNames own_names(const CLI::App& app, const std::vector<std::string>& arguments) {
  return in_own_names(arguments, [&](const std::string& flag) { return has_flag(app, flag); });
}

// Throws InputError with what is wrong with the names.
std::vector<std::string> own_arguments_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  OwnNames own = own_names(app, arguments);
  if (!own.problems.empty()) throw InputError(std::move(own.problems));
  return std::move(own.arguments);
}

void parse(App& app, std::vector<std::string> own_arguments) {
  std::reverse(own_arguments.begin(), own_arguments.end());
  app.parse(std::move(own_arguments));
}

OptionText text_of(const CLI::Option& option) {
  OptionText text{.names = {},
                  .positional = option.get_name(true),
                  .value = option.get_type_name(),
                  .fallback = option.get_default_str(),
                  .help = option.get_description(),
                  .topic = option.get_group(),
                  .required = option.get_required(),
                  .value_optional = false,
                  .list = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll,
                  .repeats = option.get_items_expected_max() > 1};
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_expected_max() == 0) text.value = "";
  return text;
}

CommandText text_of(const App& app, const std::string& above) {
  CommandText text{.name = above + app.get_name(),
                   .help = app.get_description(),
                   .examples = app.examples,
                   .footer = app.get_footer(),
                   .options = {},
                   .commands = {}};
  std::vector<const CLI::Option*> options = app.get_options();
  // They were there before all others.
  std::stable_partition(options.begin(), options.end(), [&](const CLI::Option* option) {
    return option != app.get_help_ptr() && option != app.get_help_all_ptr();
  });
  for (const CLI::Option* const option : options) {
    text.options.push_back(text_of(*option));
    text.options.back().value_optional = app.values_of_flags.contains(long_flag_of(*option));
  }
  for (const CLI::App* const below : app.get_subcommands([](const CLI::App*) { return true; }))
    text.commands.push_back(text_of(dynamic_cast<const App&>(*below), text.name + " "));
  return text;
}

void add_help_flags(App& app, const char* topic) {
  app.set_help_flag("-h,--help", "Show help, with the flags of daily use")->group(topic);
  app.set_help_all_flag("--help-all", "Show help, with all flags by topic")->group(topic);
}

// The text of the command that was named last.
CommandText innermost_text(const CommandText& program, const CLI::App& asked) {
  const CommandText* text = &program;
  const CLI::App* app = &asked;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    text = &*std::find_if(text->commands.begin(), text->commands.end(), [&](const CommandText& it) {
      return it.name == text->name + " " + app->get_name();
    });
  }
  return *text;
}

}  // namespace

Option& Option::required(bool value) {
  option_->required(value);
  return *this;
}

Option& Option::note(bool& given) {
  option_->each([&given](const std::string&) { given = true; });
  return *this;
}

Option& Option::describe(const std::string& type, const std::string& help) {
  option_->type_name(type)->description(help);
  return *this;
}

std::string Option::flag() const { return long_flag_of(*option_); }

const std::vector<std::string>& Option::long_names() const { return option_->get_lnames(); }

std::string Option::name() const { return name_of(*option_); }

bool Option::is_required() const { return option_->get_required(); }

Command Command::add_command(const std::string& name, const std::string& help) const {
  const auto app = std::make_shared<App>(help, name);
  add_help_flags(*app, topic::output);
  app_->add_subcommand(app);
  return Command(*app);
}

void Command::require_command() const { app_->require_subcommand(1); }

void Command::examples(std::vector<std::string> commands) const { app_->examples = std::move(commands); }

void Command::footer(const std::string& text) const { app_->footer(text); }

Option Command::added(CLI::Option& option, const std::string& type) const {
  option.type_name(type)->group(topic_);
  return Option(option);
}

Option Command::option(const std::string& names, FlagText& value, const std::string& type,
                       const std::string& help) const {
  return added(*app_->add_option(names, value, help), type);
}

Option Command::option(const std::string& names, std::string& value, const std::string& type,
                       const std::string& help) const {
  CLI::Option* const option = app_->add_option(names, value, help);
  if (!value.empty()) option->capture_default_str();
  return added(*option, type);
}

Option Command::option(const std::string& names, std::vector<std::string>& values, const std::string& type,
                       const std::string& help) const {
  CLI::Option* const option = app_->add_option(names, values, help);
  if (!option->get_positional()) {
    option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  return added(*option, type);
}

Option Command::flag(const std::string& names, bool& value, const std::string& help) const {
  return added(*app_->add_flag(names, value, help), "");
}

Option Command::flag(const std::string& names, std::optional<bool>& value, const std::string& help) const {
  const auto on = std::make_shared<bool>(false);  // which CLI11 converts, and whose words it checks
  CLI::Option* const option = app_->add_flag(names, *on, help);
  option->each([&value, on](const std::string& word) {
    constexpr std::array<std::string_view, 7> off{"false", "no", "off", "0", "-1", "f", "n"};
    value = !contains(off, std::string_view(word));
  });
  return added(*option, "");
}

Option Command::flag(const std::string& names, std::string& value, const std::string& type,
                     const std::vector<std::string>& values, const std::string& help) const {
  app_->values_of_flags[names] = values;
  return added(*app_->add_flag(names, value, help), type);
}

Option Command::output(const std::string& names, std::string& file, const std::string& help) const {
  CLI::Option* const option = app_->add_option(names, file, help);
  app_->outputs.push_back(option);
  return added(*option, "FILE");
}

Option Command::picture(const std::string& names, std::string& file, const std::string& help) const {
  CLI::Option* const option = app_->add_option(names, file, help);
  app_->outputs.push_back(option);
  app_->pictures.push_back(option);
  return added(*option, "FILE.svg|png");
}

Option Command::find(const std::string& name) const {
  CLI::Option* const option = app_->get_option_no_throw(name);
  EXPECTS(option != nullptr);
  return Option(*option);
}

bool Command::is_given(const std::string& name) const {
  const CLI::Option* const option = app_->get_option_no_throw(name);
  EXPECTS(option != nullptr);
  return option->count() > 0;
}

std::vector<Option> Command::options() const {
  std::vector<Option> options;
  for (CLI::Option* const option : app_->get_options()) options.emplace_back(*option);
  return options;
}

CommandText Command::text() const { return text_of(*app_, ""); }

void Command::on_run(std::function<void()> run) const {
  app_->callback([app = app_, run = std::move(run)] {
    if (!app->get_subcommands().empty()) return;
    check_values(*app);
    note_outputs(*app);
    run();
  });
}

std::vector<std::string> Command::arguments(const std::vector<std::string_view>& except) const {
  std::vector<std::string> arguments;
  std::vector<Problem> problems;
  for (const CLI::Option* const option : app_->get_options()) {
    const std::string flag = long_flag_of(*option);
    if (std::find(except.begin(), except.end(), flag) != except.end()) continue;
    for (const std::string& value : option->results()) {
      arguments.push_back(flag.empty() ? value : flag + "=" + value);
      if (first_non_text_byte(value)) {
        problems.push_back(
            {name_of(*option), "must be text without control characters, not '" + printable(value) + "'"});
      }
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return arguments;
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<App>(description, name)) {
  app_->set_version_flag("--version", name + " " + version)
      ->description("Show the version")
      ->group(topic::flags);
  add_help_flags(*app_, topic::flags);
}

CommandLine::~CommandLine() = default;

Command CommandLine::program() { return Command(*app_); }

void CommandLine::run(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {  // "help plan" is "plan --help"
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  // Words after -- are arguments of a launch script.
  if (const auto dashes = std::find(arguments.begin(), arguments.end(), "--"); dashes != arguments.end()) {
    std::vector<std::string> own(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
    for (std::string& word : own) {  // an empty one stands alone: CLI11 takes the next word after "--flag="
      if (word.empty()) arguments.insert(arguments.end(), {"--script-argument", ""});
      if (!word.empty()) arguments.push_back("--script-argument=" + word);
    }
  }
  OwnNames own = own_names(*app_, with_values_of_flags(*app_, std::move(arguments)));
  typed_ = own.typed;
  check_flags(*app_, own);
  const auto print_help = [&](const CLI::ParseError& asked, auto help) {
    check_help(*app_, asked);
    const std::size_t columns = std::min(screen_columns().value_or(usual_columns), widest_help);
    print_result(help(innermost_text(text_of(*app_, ""), *app_), columns));
  };
  try {
    parse(*app_, own.arguments);
  } catch (const CLI::CallForHelp& asked) {
    print_help(asked, short_help);
  } catch (const CLI::CallForAllHelp& asked) {
    print_help(asked, whole_help);
  } catch (const CLI::CallForVersion& asked) {
    print_result(asked.what() + std::string("\n"));
  } catch (const CLI::ParseError& error) {
    check_values_of_flags(*app_, own.arguments);
    throw usage_error(*app_, error);
  }
}

std::string CommandLine::typed(const std::string& where) const {
  const auto flag = typed_.find(where);
  return flag == typed_.end() ? where : fmt::format("{} (here {})", flag->second, where);
}

ArgumentReader::ArgumentReader() : app_(std::make_unique<App>()) { app_->set_help_flag(); }

ArgumentReader::~ArgumentReader() = default;
ArgumentReader::ArgumentReader(ArgumentReader&&) noexcept = default;
ArgumentReader& ArgumentReader::operator=(ArgumentReader&&) noexcept = default;

Command ArgumentReader::command() { return Command(*app_); }

void ArgumentReader::read(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string flag = argument.substr(0, equals);
    const CLI::Option* const option = flag.starts_with("--") ? app_->get_option_no_throw(flag) : nullptr;
    if (option == nullptr || option->get_expected_min() > 0 || !values_of_flag(*app_, flag).empty()) continue;
    const std::string value = argument.substr(std::min(equals + 1, argument.size()));
    if (value != "yes" && value != "no" && value != "true") {
      throw InputError(flag, "must be yes or no, not '" + printable(value) + "'");
    }
  }
  try {
    parse(*app_, own_arguments_of(*app_, arguments));
  } catch (const CLI::ParseError& error) {
    throw InputError("", broken_rule(*app_, error));
  }
}

void ArgumentReader::read(const std::string& where, const std::string& text) {
  try {
    std::vector<std::string> arguments =
        CLI::detail::split_up(CLI::detail::find_and_modify(text, "=", CLI::detail::escape_detect));
    std::erase(arguments, "");
    parse(*app_, own_arguments_of(*app_, arguments));
  } catch (const CLI::ParseError& error) {
    throw InputError(where, broken_rule(*app_, error));
  }
}

}  // namespace headroom::cli

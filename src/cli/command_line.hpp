// The command line: commands, their options and flags, and reading them. The one place that knows CLI11, which takes
// seconds to compile.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/topics.hpp"
#include "headroom/core/error.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): that of the library
class Option;
}  // namespace CLI

namespace headroom::cli {

class App;  // CLI11's, and what Headroom has to know of a command beside it

// The text of an option, where it is given. Options arrive as text, so that every mistake of a command line is
// reported at once and in the program's own words.
using FlagText = std::optional<std::string>;

// An option of a command, to say more of it. Valid as long as its command.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required(bool value = true);
  Option& describe(const std::string& type, const std::string& help);
  Option& note(bool& given);  // sets `given` where the option is given

  // "--tensor-parallel" of "-t,--tensor-parallel"; the last of several long names; empty for a positional argument.
  [[nodiscard]] std::string flag() const;
  // Without dashes.
  [[nodiscard]] const std::vector<std::string>& long_names() const;
  [[nodiscard]] std::string name() const;  // for messages: "--tensor-parallel", "model"
  [[nodiscard]] bool is_required() const;

 private:
  CLI::Option* option_;
};

// What the help says of an option, for manual pages and the completions of shells.
struct OptionText {
  std::vector<std::string> names;  // "-t", "--tensor-parallel"; empty for a positional argument
  std::string positional;          // its name, "model"
  std::string value;               // what stands for the value, "T"; empty for a flag without one
  std::string fallback;            // the default, where the help shows one
  std::string help;
  std::string topic;
  bool required = false;
  bool value_optional = false;  // a flag that may stand without its value, too
  bool list = false;            // is given once for each of its values
  bool repeats = false;         // a positional argument that takes several values
};

// And of a command, with those below it.
struct CommandText {
  std::string name;  // whole: "headroom sweep plan"
  std::string help;
  std::vector<std::string> examples;
  std::string footer;
  std::vector<OptionText> options;
  std::vector<CommandText> commands;
};

// A command or one of its subcommands: a name of it, cheap to copy, valid as long as its CommandLine.
class Command {
 public:
  explicit Command(App& app, const char* topic = topic::flags) : app_(&app), topic_(topic) {}

  // This command, where the options that are added by the result are listed under a topic.
  [[nodiscard]] Command in(const char* topic) const { return Command(*app_, topic); }

  Command add_command(const std::string& name, const std::string& help) const;
  void require_command() const;
  void examples(std::vector<std::string> commands) const;  // the most usual first
  void footer(const std::string& text) const;              // of the help

  // `names` as "-t,--tensor-parallel"; without dashes a positional argument. `type` stands for the value in the help.
  // The value must outlive the parsing. A text that is not empty is shown as the default.
  Option option(const std::string& names, FlagText& value, const std::string& type,
                const std::string& help) const;
  Option option(const std::string& names, std::string& value, const std::string& type,
                const std::string& help) const;
  // One value each time it is given; or, where it is positional, any number of values.
  Option option(const std::string& names, std::vector<std::string>& values, const std::string& type,
                const std::string& help) const;
  Option flag(const std::string& names, bool& value, const std::string& help) const;
  // Tells --name=no from a flag that is not there.
  Option flag(const std::string& names, std::optional<bool>& value, const std::string& help) const;
  // A flag that may have a value behind it, which is then one of `values`; without one the text is "true".
  Option flag(const std::string& names, std::string& value, const std::string& type,
              const std::vector<std::string>& values, const std::string& help) const;
  // A file that the command writes, if any; and a picture of it, whose name ends as pictures do (picture_file.hpp).
  Option output(const std::string& names, std::string& file, const std::string& help) const;
  Option picture(const std::string& names, std::string& file, const std::string& help) const;

  // An option that was added before. Expects that there is one.
  [[nodiscard]] Option find(const std::string& name) const;
  [[nodiscard]] bool is_given(const std::string& name) const;
  [[nodiscard]] std::vector<Option> options() const;

  [[nodiscard]] CommandText text() const;

  // What the command does once all is read. It is not called where a subcommand was given, where a value is empty, nor
  // where two flags name one file to write.
  void on_run(std::function<void()> run) const;

  // What was given, in one spelling: positional arguments as they are, options as "--name=value", in the order of the
  // help and without those of `except` ("--format"). Throws InputError when one is not text.
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string_view>& except) const;

 private:
  [[nodiscard]] Option added(CLI::Option& option, const std::string& type) const;

  App* app_;
  const char* topic_;
};

// A command line that cannot be read.
class UsageError : public InputError {
 public:
  UsageError(std::vector<Problem> problems, std::string command)
      : InputError(std::move(problems)), command_(std::move(command)) {}
  [[nodiscard]] const std::string& command() const { return command_; }  // whose help tells more

 private:
  std::string command_;
};

// The commands of a program.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command program();

  // Reads the arguments and runs the command that they name; or prints the help or the version that they ask for.
  // Throws UsageError, with what could have been meant, and what the command throws.
  void run(int argc, const char* const* argv);

  // A flag with the name that it was given by, where that is another program's: "--recompute-modules (here --recompute-ops)".
  [[nodiscard]] std::string typed(const std::string& where) const;

 private:
  std::unique_ptr<App> app_;
  std::map<std::string, std::string> typed_;  // by own flags, of the arguments that were read last
};

// Reads lists of arguments into bound values without being a command: those of a part file, of a point of a sweep.
class ArgumentReader {
 public:
  ArgumentReader();
  ~ArgumentReader();
  ArgumentReader(ArgumentReader&&) noexcept;
  ArgumentReader& operator=(ArgumentReader&&) noexcept;

  Command command();

  // Arguments as Command::arguments() spells them; a flag without a value is "yes", "no" or "true". Throws InputError.
  void read(const std::vector<std::string>& arguments);
  // A text with spaces between its arguments, as one would type it. `where` names it in the InputError.
  void read(const std::string& where, const std::string& text);

 private:
  std::unique_ptr<App> app_;
};

}  // namespace headroom::cli

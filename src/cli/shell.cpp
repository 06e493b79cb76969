// The commands of which an installation is made: `completions` and `man`.
#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/completions.hpp"
#include "cli/flags.hpp"
#include "cli/manual.hpp"
#include "cli/output.hpp"
#include "cli/version.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

struct ManFlags {
  std::vector<std::string> words;
  std::string folder;
  OutputFlags output;
};

const CommandText& command_of(const CommandText& program, const std::vector<std::string>& words) {
  const CommandText* command = &program;
  for (const std::string& word : words) {
    const auto found =
        std::find_if(command->commands.begin(), command->commands.end(),
                     [&](const CommandText& below) { return below.name == command->name + " " + word; });
    if (found == command->commands.end())
      throw InputError("man", command->name + " has no command '" + printable(word) + "'");
    command = &*found;
  }
  return *command;
}

// Calls take(file, command) for the page of the command and those of the commands below it.
template <class Take>
void for_each_page(const CommandText& command, const std::string& folder, const Take& take) {
  take(folder + "/" + page_name(command) + ".1", command);
  for (const CommandText& below : command.commands) for_each_page(below, folder, take);
}

void man(const CommandText& program, const ManFlags& flags) {
  const CommandText& command = command_of(program, flags.words);
  if (flags.folder.empty()) return write(flags.output, manual_page(command, version()));
  if (!flags.output.file.empty()) throw InputError("--all", "writes to its folder alone: leave out --output");
  if (kind_of_file(flags.folder) != FileKind::folder) throw InputError(flags.folder, "is no folder");
  for_each_page(command, flags.folder,
                [](const std::string& file, const CommandText&) { will_write("--all", file); });
  for_each_page(command, flags.folder, [](const std::string& file, const CommandText& of) {
    write({.file = file}, manual_page(of, version()));
  });
}

}  // namespace

void add_completions(Command program, ExitCode& exit_code) {
  Command command = program.add_command("completions", "Writes a completion script for bash, zsh or fish");
  const auto shell = std::make_shared<FlagText>();
  const auto output = std::make_shared<OutputFlags>();
  command.option("shell", *shell, "SHELL", "bash, zsh or fish").required();
  command.in(topic::output).output("-o,--output", output->file, "Write to FILE instead of standard output");
  command.examples({"source <(headroom completions bash)", "headroom completions zsh -o ~/.zfunc/_headroom",
                    "headroom completions fish -o ~/.config/fish/completions/headroom.fish"});
  command.on_run([program, shell, output, &exit_code] {
    std::vector<Problem> problems;
    Shell chosen{};
    read_choice("shell", *shell, chosen, problems);
    if (!problems.empty()) throw InputError(problems);
    write(*output, completions(program.text(), chosen));
    exit_code = ExitCode::done;
  });
}

void add_man(Command program, ExitCode& exit_code) {
  Command command = program.add_command("man", "Writes a command's manual page for man(1)");
  const auto flags = std::make_shared<ManFlags>();
  command.option("command", flags->words, "COMMAND",
                 "Command, such as plan or sweep plan (default: the program)");
  command.option("--all", flags->folder, "FOLDER", "Write it and the pages of its subcommands as files");
  command.in(topic::output)
      .output("-o,--output", flags->output.file, "Write to FILE instead of standard output");
  command.examples({"headroom man plan | man -l -", "headroom man --all ~/.local/share/man/man1"});
  command.on_run([program, flags, &exit_code] {
    man(program.text(), *flags);
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli

#include "cli/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/interrupt.hpp"
#include "cli/version.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/io/software_file.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

// A sharding that a stack has not is what others have. The rule ends with it (parallel/rules/stack.cpp).
std::string stacks_that_have(const Problem& problem) {
  if (problem.where != "data_sharding" || problem.rule.find("on the stack") == std::string::npos) return {};
  for (const auto& [mode, name] : spellings<DataSharding>) {
    if (!problem.rule.ends_with(", not " + std::string(name))) continue;
    std::vector<std::string> names;
    for (const Software& software : list_software()) {
      if (contains(software.sharding.modes, mode)) names.push_back(software.name);
    }
    return names.empty() ? std::string() : "; " + headroom::joined(names) + " have it";
  }
  return {};
}

// What one may type first.
constexpr const char* first_page = R"(Headroom plans memory and throughput of LLM training runs.

  headroom plan llama-3-70b --system h100 --devices 64
      The fastest strategies that fit.
  headroom estimate llama-3-8b --system h100 -t 2 --devices 8
      The memory of each rank and the time of an iteration, of one strategy.
  headroom explain llama-3-8b -t 2 --sp
      What each op of a layer saves, in symbols and in bytes.
  headroom list models
      The names of models; also: list systems, list software.
  headroom plan --help
      The flags of a command. The commands: headroom --help
)";

struct Subcommand {
  std::string_view name;
  void (*add)(Command program, ExitCode& exit_code);
};
constexpr std::array subcommands{Subcommand{"plan", add_plan},
                                 Subcommand{"estimate", add_estimate},
                                 Subcommand{"explain", add_explain},
                                 Subcommand{"compare", add_compare},
                                 Subcommand{"frontier", add_frontier},
                                 Subcommand{"report", add_report},
                                 Subcommand{"trace", add_trace},
                                 Subcommand{"sweep", add_sweep},
                                 Subcommand{"merge", add_merge},
                                 Subcommand{"calibrate", add_calibrate},
                                 Subcommand{"check", add_check},
                                 Subcommand{"memory", add_memory},
                                 Subcommand{"import", add_import},
                                 Subcommand{"list", add_list},
                                 Subcommand{"schema", add_schema},
#ifndef __EMSCRIPTEN__
                                 Subcommand{"serve", add_serve},
#endif
                                 Subcommand{"system", add_system},
                                 Subcommand{"validate", add_validate},
                                 Subcommand{"completions", add_completions},
                                 Subcommand{"man", add_man}};

}  // namespace

void add_commands(CommandLine& command_line, std::string_view first, ExitCode& exit_code) {
  Command program = command_line.program();
  program.require_command();
  program.examples({"headroom plan gpt3-175b --devices 64 --global-batch 64",
                    "headroom estimate gpt3-175b -t 8 -p 8 --sp --recompute selective",
                    "headroom list models", "headroom help plan"});
  const auto lists_all = [](const Subcommand& it) { return it.add == add_completions || it.add == add_man; };
  const auto asked = std::find_if(subcommands.begin(), subcommands.end(),
                                  [&](const Subcommand& it) { return it.name == first && !lists_all(it); });
  if (asked != subcommands.end()) return asked->add(program, exit_code);
  for (const Subcommand& it : subcommands) it.add(program, exit_code);
}

std::vector<Problem> problems_as_typed(const InputError& error, const CommandLine& command_line) {
  std::vector<Problem> problems;
  for (const Problem& problem : error.problems()) {
    // What a file's name or a flag holds may be no text, or escape codes that a terminal obeys.
    const Problem typed = as_typed(problem);
    problems.push_back({printable(command_line.typed(typed.where), std::string::npos),
                        printable(typed.rule + stacks_that_have(problem), std::string::npos)});
  }
  return problems;
}

namespace {

ExitCode bad_input(const InputError& error, const CommandLine& command_line) {
  for (const auto& [where, rule] : problems_as_typed(error, command_line))
    fmt::print(stderr, "headroom: error: {}{}{}\n", where, where.empty() ? "" : ": ", rule);
  return ExitCode::bad_input;
}

}  // namespace

ExitCode run(int argc, const char* const* argv) {
  if (argc == 1) {
    print_result(first_page);
    return ExitCode::done;
  }
  CommandLine command_line("headroom", "Headroom plans memory and throughput of LLM training runs.",
                           version_and_build());
  ExitCode exit_code = ExitCode::done;
  add_commands(command_line, argv[1], exit_code);
  try {
    command_line.run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw InputError("standard output", "cannot be written: " + std::generic_category().message(errno));
    return exit_code;
  } catch (const UsageError& error) {
    bad_input(error, command_line);
    fmt::print(stderr, "headroom: see '{} --help'\n", error.command());
    return ExitCode::bad_input;
  } catch (const InputError& error) {
    return bad_input(error, command_line);
  } catch (const Interrupted& interrupted) {
    end_as(interrupted);
    return ExitCode::internal;  // unless the signal is blocked, this is not reached
  }
}

}  // namespace headroom::cli

// The program: parses the command line, runs one subcommand, and turns failures into messages and exit codes.
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/interrupt.hpp"
#include "headroom/core/error.hpp"

namespace headroom::cli {
namespace {

ExitCode bad_input(const InputError& error) {
  for (const auto& [where, rule] : error.problems()) {
    fmt::print(stderr, "headroom: error: {}{}{}\n", where, where.empty() ? "" : ": ", rule);
  }
  return ExitCode::bad_input;
}

// The innermost subcommand on the command line, whose flags were meant, and its full name.
std::pair<const CLI::App*, std::string> innermost(const CLI::App& program) {
  const CLI::App* app = &program;
  std::string name = "headroom";
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  return {app, name};
}

// What could have been written instead of an argument that nothing takes.
std::string suggestion(const CLI::App& app, const std::string& unexpected) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return did_you_mean(unexpected, {names.begin(), names.end()});
}

ExitCode bad_usage(const CLI::App& program, const CLI::ParseError& error) {
  const auto [app, name] = innermost(program);
  const std::vector<std::string> unexpected = program.remaining(true);
  if (!unexpected.empty()) {
    fmt::print(stderr, "headroom: error: '{}' is not expected here{}\n", unexpected.front(),
               suggestion(*app, unexpected.front()));
  } else {
    fmt::print(stderr, "headroom: error: {}\n", error.what());
  }
  fmt::print(stderr, "headroom: see '{} --help'\n", name);
  return ExitCode::bad_input;
}

ExitCode run(int argc, const char* const* argv) {
  CLI::App program{"Headroom: will a model fit, what does it keep, and where."};
  program.name("headroom");
  program.set_version_flag("--version", std::string("headroom ") + HEADROOM_VERSION);
  program.require_subcommand(1);
  program.footer(
      "Start with:\n  headroom plan gpt3-175b --devices 64 --global-batch 64\n  headroom estimate gpt3-175b "
      "-t 8 -p 8 --sp --recompute selective\n  headroom list "
      "models");
  ExitCode exit_code = ExitCode::done;
  add_plan(program, exit_code);
  add_estimate(program, exit_code);
  add_explain(program, exit_code);
  add_compare(program, exit_code);
  add_frontier(program, exit_code);
  add_trace(program, exit_code);
  add_sweep(program, exit_code);
  add_merge(program, exit_code);
  add_calibrate(program, exit_code);
  add_check(program, exit_code);
  add_list(program, exit_code);
  add_validate(program, exit_code);
  try {
    program.parse(argc, argv);
    return exit_code;
  } catch (const CLI::Success& asked_for_help) {
    program.exit(asked_for_help);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    return bad_usage(program, error);
  } catch (const InputError& error) {
    return bad_input(error);
  } catch (const Interrupted& interrupted) {
    end_as(interrupted);
    return ExitCode::internal;  // unless the signal is blocked, this is not reached
  }
}

}  // namespace
}  // namespace headroom::cli

int main(int argc, char** argv) {
  try {
    return static_cast<int>(headroom::cli::run(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headroom: internal error: %s\n", error.what());
    return static_cast<int>(headroom::cli::ExitCode::internal);
  }
}

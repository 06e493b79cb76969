#include "cli/command.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "headroom/io/measurements_file.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/report/validation.hpp"

namespace headroom::cli {
namespace {

struct ValidateFlags {
  std::vector<std::string> runs;
  std::optional<std::string> system;
  std::optional<std::string> software;
  bool all = false;
  OutputFlags output;
};

ExitCode validate(const ValidateFlags& flags) {
  const Format format = format_of(flags.output);
  if (flags.runs.empty() && (flags.system || flags.software)) {
    throw InputError(flags.system ? "--system" : "--software",
                     "needs --runs: the built-in cases name their own");
  }
  Measurements measurements;
  ValidationReport report{.all = flags.all};
  if (flags.runs.empty()) {
    measurements = embedded_measurements();
  } else {
    std::vector<Problem> problems;
    std::vector<MeasuredRun> runs;
    for (const std::string& file : flags.runs) {
      collect(problems, [&] {
        const std::vector<MeasuredRun> more = read_runs(file);
        runs.insert(runs.end(), more.begin(), more.end());
      });
    }
    if (!problems.empty()) throw InputError(problems);
    RunCases cases = cases_of(runs, flags.system, flags.software);
    measurements = std::move(cases.measurements);
    report.skipped = std::move(cases.skipped);
  }
  report.rows = compare(measurements.cases, measurements.targets);
  report.groups = summarize(report.rows, measurements.targets);
  write(flags.output, render(report, format));
  return met(report) ? ExitCode::done : ExitCode::out_of_tolerance;
}

}  // namespace

void add_validate(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command =
      program.add_subcommand("validate", "Predictions against measured runs, signed error of each");
  const auto flags = std::make_shared<ValidateFlags>();
  command->add_option("--runs", flags->runs, "Measured runs, instead of the built-in cases; may be repeated")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--system", flags->system, "The system of all runs, instead of their sources' own")
      ->type_name("SYSTEM");
  command
      ->add_option("--software", flags->software,
                   "The training stack of all runs, instead of their sources' own")
      ->type_name("SOFTWARE");
  command->add_flag("--all", flags->all, "Show every row, not only the worst of each group");
  add_output_flags(*command, flags->output);
  command->footer(
      "Examples:\n"
      "  headroom validate                                    the published figures of K22, which are built "
      "in\n"
      "  headroom validate --runs my-runs.json --system my-cluster.json\n"
      "\ndocs/validation.md describes runs files.\n"
      "\nExit code: 0 all within their targets, 2 bad input, 4 out of tolerance.");
  command->callback([flags, &exit_code] { exit_code = validate(*flags); });
}

}  // namespace headroom::cli

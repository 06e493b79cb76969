#include "headroom/answer/validate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/notes.hpp"
#include "cli/output.hpp"
#include "cli/picture_file.hpp"
#include "cli/progress.hpp"
#include "cli/run_files.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/interop/profile.hpp"
#include "headroom/io/measurements_file.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/report/calibration.hpp"
#include "headroom/report/run_page.hpp"
#include "headroom/report/sample_picture.hpp"
#include "headroom/report/validation.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

struct ValidateFlags {
  std::vector<std::string> runs;
  std::vector<std::string> samples;
  std::vector<std::string> profiles;
  std::string page;
  std::string plot;
  FlagText group_by;
  std::optional<std::string> system;
  std::optional<std::string> software;
  bool by_title = false;
  bool keyed = false;
  bool choices = false;
  bool all = false;
  OutputFlags output;
};

std::vector<RunTrait> traits_of(const FlagText& flag) {
  std::vector<RunTrait> traits;
  if (!flag) return traits;
  for (const std::string_view name : parts_of(*flag)) {
    const std::optional<RunTrait> trait = from_name<RunTrait>(name);
    if (!trait)
      throw InputError("--group-by",
                       "must list gpu, model, precision or kind, not '" + std::string(name) + "'");
    if (contains(traits, *trait)) throw InputError("--group-by", "names " + std::string(name) + " twice");
    traits.push_back(*trait);
  }
  return traits;
}

void write_figures(const ValidateFlags& flags, const ValidateReply& reply) {
  const char* const title = "Runs, predicted and measured";
  if (!flags.page.empty()) write({.file = flags.page}, run_page(reply, title));
  if (!flags.plot.empty()) write_picture(flags.plot, run_picture(reply, title));
}

void note_names(const ValidateFlags& flags) {
  if (flags.system) note_reading("system", *flags.system);
  if (flags.software) note_reading("software", *flags.software);
}

// Kernels and collectives instead of runs.
ExitCode validate_samples(const ValidateFlags& flags) {
  const Style style = style_of(flags.output);
  std::vector<Problem> problems;
  const char* const flag = flags.samples.empty() ? "--profile" : "--samples";
  if (!flags.runs.empty()) problems.push_back({flag, "cannot be combined with --runs"});
  if (flags.group_by) problems.push_back({flag, "does not go with --group-by, which groups runs"});
  if (flags.choices) problems.push_back({flag, "does not go with --choices, which judges runs"});
  if (!flags.page.empty())
    problems.push_back({flag, "does not go with --html, a page of runs: --plot draws samples"});
  if (!flags.system) problems.push_back({flag, "needs --system, whose rates predict the measured times"});
  ValidateSamplesQuestion question;
  if (flags.system) collect(problems, [&] { question.system = read_system(*flags.system); });
  note_names(flags);
  for (const std::string& file : flags.samples) {
    collect(problems, [&] { question.sets.push_back(read_samples(file)); });
  }
  for (const std::string& file : flags.profiles) {
    collect(problems, [&] {
      const Profile profile = read_profile(file, question.system.devices_per_node);
      if (const auto problem = problem_of(profile)) problems.push_back(*problem);
      question.sets.push_back(profile.samples);
    });
  }
  const std::vector<Problem> of_question = problems_of(question);
  problems.insert(problems.end(), of_question.begin(), of_question.end());
  if (problems.empty() && !question.system.performance)
    problems.push_back({*flags.system, "has no performance figures"});
  if (!problems.empty()) throw InputError(problems);
  std::optional<Progress> progress(std::in_place, "predicting samples");
  const ValidateSamplesReply reply = answer(question);
  progress.reset();
  if (!flags.plot.empty()) {
    write_picture(flags.plot, sample_picture(reply.replay,
                                             "Samples on " + reply.system.name + ", predicted and measured"));
  }
  write(flags.output, render(reply, style, flags.all));
  return ExitCode::done;
}

void check_files(const ValidateFlags& flags) {
  std::vector<std::string> files = flags.runs;
  std::sort(files.begin(), files.end());
  const auto twice = std::adjacent_find(files.begin(), files.end());
  if (twice != files.end()) throw InputError("--runs", printable(*twice) + " is given twice");
}

ExitCode validate(const ValidateFlags& flags) {
  check_files(flags);
  if (!flags.samples.empty() || !flags.profiles.empty()) return validate_samples(flags);
  const Style style = style_of(flags.output);
  if (flags.runs.empty() && (flags.by_title || flags.keyed))
    throw InputError(flags.by_title ? "--by-title" : "--keyed", "needs --runs");
  if (flags.runs.empty() && (flags.system || flags.software)) {
    throw InputError(flags.system ? "--system" : "--software",
                     "needs --runs: the built-in cases name their own");
  }
  std::optional<Progress> progress(std::in_place, "reading runs");
  ValidateQuestion question{
      .measurements = {}, .skipped = {}, .group_by = traits_of(flags.group_by), .choices = flags.choices};
  if (flags.runs.empty()) {
    question.measurements = embedded_measurements();
  } else {
    std::vector<Problem> problems;
    std::vector<MeasuredRun> runs = read_run_files(flags.runs, problems);
    if (!problems.empty()) throw InputError(problems);
    if (flags.keyed) set_keys_by_title(runs);
    if (flags.by_title) {
      question.skipped = take_keys_by_title(runs);
    } else if (const std::size_t listed = listed_by_title(runs); listed > 0) {
      say(
          fmt::format("note: {} runs have a title that a published source lists (--keyed predicts them with "
                      "its system, stack and settings)",
                      listed));
    }
    note_names(flags);
    RunCases cases = cases_of(runs, flags.system, flags.software);
    question.measurements = std::move(cases.measurements);
    question.unread = std::move(cases.unread);
    question.skipped.insert(question.skipped.end(), cases.skipped.begin(), cases.skipped.end());
  }
  const ValidateReply reply = answer(question, progress->watch());
  progress.reset();
  if (reply.runs > 0) write_figures(flags, reply);
  write(flags.output, render(reply, style, flags.all));
  note_skipped(reply.skipped, style);
  if (reply.runs == 0) throw InputError("--runs", "holds no run that can be predicted");
  return met(reply) ? ExitCode::done : ExitCode::out_of_tolerance;
}

}  // namespace

void add_validate(Command program, ExitCode& exit_code) {
  Command command =
      program.add_command("validate", "Compares predictions with measured runs: the signed error of each");
  const auto flags = std::make_shared<ValidateFlags>();
  command.option("--runs", flags->runs, "FILE",
                 "Measured runs instead of the built-in cases; may be repeated");
  command.option(
      "--samples", flags->samples, "FILE",
      "Measured kernels and collectives (JSON, CSV or nccl-tests), instead of runs; may be repeated");
  command.option("--profile", flags->profiles, "FILE",
                 "The kernels of a training step, from a trace of PyTorch's profiler or an SQLite export of "
                 "nsys; may be "
                 "repeated");
  const Command output = command.in(topic::output);
  output.output("--html", flags->page, "Also write a page of the runs to FILE: plots, groups and every row");
  output.picture("--plot", flags->plot, "Also draw predicted against measured as one picture");
  command.option("--group-by", flags->group_by, "gpu|model|precision|kind,...",
                 "Group runs by these besides their source; kind is dense or MoE, with CP and FSDP");
  command.option("--system", flags->system, "SYSTEM", "System of all runs instead of their sources' own");
  command.option("--software", flags->software, "SOFTWARE",
                 "Training stack of all runs instead of their sources' own");
  command.flag("--by-title", flags->by_title,
               "Predict only runs whose whole source.title a published source lists, as runs of that source");
  command.flag("--keyed", flags->keyed,
               "Predict such runs as runs of that source, and the others as they are");
  command.flag("--choices", flags->choices,
               "Judge the choice that plan would have made among runs that differ in their strategy alone");
  command.flag("--all", flags->all, "Show every row, not only the worst of each group");
  add_output_flags(command, flags->output);
  command.examples({"headroom validate   # the published figures of K22",
                    "headroom validate --runs my-runs.json --system my-cluster.json --html runs.html",
                    "headroom validate --samples all_reduce.txt --system dgx-a100-80g --plot samples.svg"});
  command.footer(
      "docs/runs-files.md describes runs files, docs/calibration.md samples.\n"
      "Exit code: 0 all within their targets, 2 bad input, 4 out of tolerance.");
  command.on_run([flags, &exit_code] { exit_code = validate(*flags); });
}

}  // namespace headroom::cli
